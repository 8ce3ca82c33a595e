//! Positions of the rows of a trace, and their groups.

mod build;
mod groups;
mod intern;
mod row_index;
mod tree;

pub(crate) use build::{IndexedRows, build};
pub(crate) use groups::Groups;
pub(crate) use row_index::{NO_ARRIVAL, NONE, RowIndex, TIME_END};
