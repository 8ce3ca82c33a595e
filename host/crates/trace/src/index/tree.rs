//! Trees of rows: each row names the row that it continues.

use crate::index::intern::Interner;
use crate::index::row_index::NONE;

/// A fault in the ids of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TreeFault {
    /// Two rows have the same id.
    Duplicate {
        /// The later row.
        row: u32,
        /// The earlier one.
        first: u32,
    },
    /// Rows that continue one another in a cycle, beginning with the first of the trace.
    Cycle(Vec<u32>),
}

/// Returns the row that each row continues, or [`NONE`] for a root. A hash of 0 is an absent id.
pub(crate) fn parents_of(ids: &[u128], parents: &[u128]) -> Result<Vec<u32>, Vec<TreeFault>> {
    let mut table = Interner::with_capacity(ids.len());
    let mut duplicates = Vec::new();
    for row in (0..ids.len() as u32).filter(|row| ids[*row as usize] != 0) {
        if row % 32 == 0 {
            table.touch(row..(ids.len() as u32).min(row + 32), ids);
        }
        let first = table.insert(row, ids);
        if first != row {
            duplicates.push(TreeFault::Duplicate { row, first });
        }
    }
    if !duplicates.is_empty() {
        return Err(duplicates);
    }
    let parent = |hash: &u128| match hash {
        0 => NONE,
        hash => table.get(*hash, ids).unwrap_or(NONE),
    };
    Ok(parents.iter().map(parent).collect())
}

/// Returns the root of each row, given the row that each one continues. Fails with all cycles,
/// whose rows have no root.
pub(crate) fn roots_of(parents: &[u32]) -> Result<Vec<u32>, Vec<TreeFault>> {
    const OPEN: u32 = NONE;
    const ON_PATH: u32 = NONE - 1;
    let mut roots = vec![OPEN; parents.len()];
    let mut path = Vec::new();
    let mut cycles = Vec::new();
    for row in 0..parents.len() as u32 {
        let mut at = row;
        let root = loop {
            match roots[at as usize] {
                OPEN => {
                    roots[at as usize] = ON_PATH;
                    path.push(at);
                    match parents[at as usize] {
                        NONE => break at,
                        parent => at = parent,
                    }
                }
                ON_PATH => {
                    let start = path.iter().position(|row| *row == at).unwrap_or(0);
                    let mut circle = path[start..].to_vec();
                    circle.sort_unstable();
                    cycles.push(TreeFault::Cycle(circle));
                    break at;
                }
                root => break root,
            }
        };
        for row in path.drain(..) {
            roots[row as usize] = root;
        }
    }
    if cycles.is_empty() { Ok(roots) } else { Err(cycles) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn roots(ids: &[u128], parents: &[u128]) -> Result<Vec<u32>, Vec<TreeFault>> {
        roots_of(&parents_of(ids, parents)?)
    }

    #[test]
    fn children_may_precede_their_parents() {
        // 30 continues 20, 20 continues 10; 40 continues an unknown row; a row without id continues
        // 10.
        assert_eq!(
            roots(&[30, 10, 20, 40, 0], &[20, 0, 10, 99, 10]),
            Ok(vec![1, 1, 1, 3, 1])
        );
    }

    #[test]
    fn reports_cycles_and_duplicates() {
        assert_eq!(
            roots(&[1, 2, 3, 4], &[4, 3, 2, 2]),
            Err(vec![TreeFault::Cycle(vec![1, 2])])
        );
        assert_eq!(roots(&[1], &[1]), Err(vec![TreeFault::Cycle(vec![0])]));
        assert_eq!(
            roots(&[7, 8, 7], &[0, 0, 0]),
            Err(vec![TreeFault::Duplicate { row: 2, first: 0 }])
        );
    }

    #[test]
    fn long_chain_does_not_recurse() {
        let n = 1_000_000u32;
        let parents: Vec<u32> = (0..n)
            .map(|row| if row + 1 == n { NONE } else { row + 1 })
            .collect();
        let roots = roots_of(&parents).unwrap();
        assert_eq!(roots.len(), parents.len());
        assert!(roots.iter().all(|root| *root == n - 1));
    }

    proptest! {
        /// The reference implementation walks up from each row.
        #[test]
        fn roots_are_where_the_walk_ends(parents in prop::collection::vec(prop::option::of(0u32..30), 30)) {
            let parents: Vec<u32> = parents.into_iter().map(|parent| parent.unwrap_or(NONE)).collect();
            let walk = |row: u32| {
                let mut at = row;
                for _ in 0..=30 {
                    match parents[at as usize] {
                        NONE => return Some(at),
                        parent => at = parent,
                    }
                }
                None
            };
            let judge: Option<Vec<u32>> = (0..30).map(walk).collect();
            match roots_of(&parents) {
                Ok(roots) => prop_assert_eq!(Some(roots), judge),
                Err(cycles) => {
                    prop_assert_eq!(None, judge);
                    for cycle in cycles {
                        let TreeFault::Cycle(rows) = cycle else { panic!("no ids here") };
                        // Each row's parent is in the cycle, and no row appears twice.
                        for row in &rows {
                            prop_assert!(rows.contains(&parents[*row as usize]));
                        }
                    }
                }
            }
        }
    }
}
