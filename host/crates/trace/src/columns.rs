//! The columns that are read from a trace, and their names in its files.

use std::collections::{BTreeMap, HashMap};

use veeksha_ports::{CellType, Grouping, Layout, PluginFailure, PluginFailureKind, TimestampUnit};

use crate::error::TraceError;

/// A column that is read: first those of the layout, then those that only group, keep or order.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    /// Name for the flavor.
    pub(crate) name: String,
    /// Name as a JSON key, with its colon.
    pub(crate) json_key: String,
    /// Type of its cells.
    pub(crate) cell: CellType,
    /// True if every row must have it.
    pub(crate) required: bool,
}

/// A name in a file, and the columns it may denote, each with the name's rank among the column's
/// names: if several names are present, the lowest rank counts.
#[derive(Clone, Debug)]
pub(crate) struct FileName {
    /// Name in the file.
    pub(crate) name: String,
    /// Slots with ranks.
    pub(crate) targets: Vec<(u16, u16)>,
    /// True if the user renamed it.
    pub(crate) renamed: bool,
}

/// The columns of a trace.
#[derive(Clone, Debug)]
pub(crate) struct TraceColumns {
    /// All columns that are read.
    pub(crate) slots: Vec<Slot>,
    /// Number of columns that reach the flavor; they are the first ones.
    pub(crate) projected: usize,
    /// Names in files.
    pub(crate) names: Vec<FileName>,
    by_name: HashMap<String, usize>,
    /// Column that groups rows.
    pub(crate) key: Option<usize>,
    /// Columns of a tree: id and parent.
    pub(crate) tree: Option<(usize, usize)>,
    /// Column with the arrivals.
    pub(crate) arrival: Option<(usize, TimestampUnit)>,
    /// Column of which only the most frequent values are kept.
    pub(crate) keep: Option<usize>,
}

impl TraceColumns {
    /// Creates the columns of a layout, with the user's renames.
    pub(crate) fn new(
        layout: &Layout,
        renames: &BTreeMap<String, String>,
        flavor: &str,
    ) -> Result<Self, TraceError> {
        let mut columns = TraceColumns {
            slots: Vec::new(),
            projected: layout.columns.len(),
            names: Vec::new(),
            by_name: HashMap::new(),
            key: None,
            tree: None,
            arrival: None,
            keep: None,
        };
        for column in &layout.columns {
            if columns.slots.iter().any(|slot| slot.name == column.name) {
                return Err(PluginFailure::new(
                    flavor,
                    "flavor.layout",
                    PluginFailureKind::Result,
                    format!("duplicate column `{}` in its layout", column.name),
                )
                .into());
            }
            let slot = columns.slot(&column.name, column.cell, column.required);
            for (rank, alias) in column.aliases.iter().enumerate() {
                columns.bind(alias, slot, rank + 2);
            }
        }
        match &layout.grouping {
            Grouping::Column(name) => columns.key = Some(columns.slot_of(name)),
            Grouping::Tree { id, parent } => {
                columns.tree = Some((columns.slot_of(id), columns.slot_of(parent)));
            }
            Grouping::Row | Grouping::Pools => {}
        }
        columns.keep = layout.keep.as_ref().map(|keep| columns.slot_of(&keep.column));
        columns.arrival = layout
            .arrival
            .as_ref()
            .map(|arrival| (columns.slot_of(&arrival.column), arrival.unit));
        columns.rename(renames)?;
        Ok(columns)
    }

    /// Returns the index in [`TraceColumns::names`] of a name in a file.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Returns the flavor's names of the columns it reads.
    pub(crate) fn known(&self) -> Vec<String> {
        self.slots.iter().map(|slot| slot.name.clone()).collect()
    }

    /// Formats a slot's name for messages: the flavor's name, and the file's if it differs.
    pub(crate) fn called(&self, slot: usize, in_file: &str) -> String {
        let name = &self.slots[slot].name;
        match in_file {
            same if same == name => crate::text::quoted(name),
            other => format!("{} (`{name}`)", crate::text::quoted(other)),
        }
    }

    fn slot(&mut self, name: &str, cell: CellType, required: bool) -> usize {
        let slot = self.slots.len();
        self.slots.push(Slot {
            name: name.to_owned(),
            json_key: format!("{}:", serde_json::Value::from(name)),
            cell,
            required,
        });
        self.bind(name, slot, 1);
        slot
    }

    /// Returns the slot of a column that the layout mentions; adds one if the layout does not list
    /// it.
    fn slot_of(&mut self, name: &str) -> usize {
        match self.slots.iter().position(|slot| slot.name == name) {
            Some(slot) => slot,
            None => self.slot(name, CellType::Anything, false),
        }
    }

    fn bind(&mut self, name: &str, slot: usize, rank: usize) {
        let at = match self.find(name) {
            Some(at) => at,
            None => {
                self.by_name.insert(name.to_owned(), self.names.len());
                self.names.push(FileName {
                    name: name.to_owned(),
                    targets: Vec::new(),
                    renamed: false,
                });
                self.names.len() - 1
            }
        };
        let clip = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
        self.names[at].targets.push((clip(slot), clip(rank)));
    }

    /// A renamed name denotes only its new column.
    fn rename(&mut self, renames: &BTreeMap<String, String>) -> Result<(), TraceError> {
        let mut bound = Vec::new();
        for (from, to) in renames {
            let slots = match self.slots.iter().position(|slot| slot.name == *to) {
                Some(slot) => vec![slot],
                None => self
                    .find(to)
                    .map(|at| {
                        self.names[at]
                            .targets
                            .iter()
                            .map(|(slot, _)| usize::from(*slot))
                            .collect()
                    })
                    .unwrap_or_default(),
            };
            if slots.is_empty() {
                return Err(TraceError::RenameTo {
                    from: from.clone(),
                    to: to.clone(),
                    known: self.known(),
                });
            }
            bound.push((from, slots));
        }
        for (from, _) in &bound {
            if let Some(at) = self.find(from) {
                self.names[at].targets.clear();
            }
        }
        for (from, slots) in bound {
            for slot in slots {
                self.bind(from, slot, 0);
            }
            if let Some(at) = self.find(from) {
                self.names[at].renamed = true;
            }
        }
        Ok(())
    }
}
