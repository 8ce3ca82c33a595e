//! Assignment of rows to groups, each of which becomes a session.

use crate::index::row_index::NONE;

/// The groups of a trace.
#[derive(Debug)]
pub(crate) enum Groups {
    /// Each row is a group.
    Rows {
        /// Number of groups.
        count: u32,
    },
    /// Group `g` has the rows `rows[starts[g]..starts[g + 1]]`. 4 bytes per row and per group.
    Listed {
        /// First row of each group, and the end of the last.
        starts: Vec<u32>,
        /// Rows of the first group, of the second, ...
        rows: Vec<u32>,
    },
}

impl Groups {
    /// Builds groups from the representative row of each row. Groups are numbered by first
    /// appearance.
    pub(crate) fn of(mut stands_for: Vec<u32>) -> Self {
        // Number of the group of each representative. A number is assigned when the first row of a
        // group is met, which is not necessarily the representative.
        let mut number = vec![NONE; stands_for.len()];
        let mut groups = 0;
        for entry in &mut stands_for {
            let number = &mut number[*entry as usize];
            if *number == NONE {
                *number = groups;
                groups += 1;
            }
            *entry = *number;
        }
        drop(number);
        let mut starts = vec![0u32; groups as usize + 1];
        for group in &stands_for {
            starts[*group as usize + 1] += 1;
        }
        for group in 1..starts.len() {
            starts[group] += starts[group - 1];
        }
        let mut rows = vec![0; stands_for.len()];
        let mut next = starts.clone();
        for (row, group) in stands_for.iter().enumerate() {
            let place = &mut next[*group as usize];
            rows[*place as usize] = row as u32;
            *place += 1;
        }
        Groups::Listed { starts, rows }
    }

    /// Returns the number of groups.
    pub(crate) fn len(&self) -> u32 {
        match self {
            Groups::Rows { count } => *count,
            Groups::Listed { starts, .. } => starts.len().saturating_sub(1) as u32,
        }
    }

    /// Returns the rows of a group, in the order of the trace.
    pub(crate) fn rows(&self, group: u32) -> impl ExactSizeIterator<Item = u32> + Clone + '_ {
        let (list, range) = match self {
            Groups::Rows { .. } => (&[][..], group..group + 1),
            Groups::Listed { starts, rows } => {
                (&rows[..], starts[group as usize]..starts[group as usize + 1])
            }
        };
        range.map(move |at| list.get(at as usize).copied().unwrap_or(at))
    }

    /// Returns the number of rows in all groups.
    pub(crate) fn total(&self) -> u64 {
        match self {
            Groups::Rows { count } => u64::from(*count),
            Groups::Listed { rows, .. } => rows.len() as u64,
        }
    }

    /// Returns the groups that are not dropped, renumbered in the same order.
    pub(crate) fn without(&self, dropped: impl Fn(u32) -> bool) -> Groups {
        let mut starts = vec![0];
        let mut rows = Vec::new();
        for group in (0..self.len()).filter(|group| !dropped(*group)) {
            rows.extend(self.rows(group));
            starts.push(rows.len() as u32);
        }
        Groups::Listed { starts, rows }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(groups: &Groups) -> Vec<Vec<u32>> {
        (0..groups.len())
            .map(|group| groups.rows(group).collect())
            .collect()
    }

    #[test]
    fn groups_are_numbered_by_first_appearance() {
        // Row 3 represents rows 0, 3, 4; row 1 represents rows 1 and 5.
        let groups = Groups::of(vec![3, 1, 2, 3, 3, 1]);
        assert_eq!(lists(&groups), [vec![0, 3, 4], vec![1, 5], vec![2]]);
        assert_eq!(groups.total(), 6);
        let fewer = groups.without(|group| group == 1);
        assert_eq!(lists(&fewer), [vec![0, 3, 4], vec![2]]);
        let rows = Groups::Rows { count: 3 };
        assert_eq!(lists(&rows), [[0], [1], [2]]);
        assert_eq!(lists(&rows.without(|group| group == 0)), [[1], [2]]);
        assert_eq!(lists(&Groups::of(Vec::new())), Vec::<Vec<u32>>::new());
    }
}
