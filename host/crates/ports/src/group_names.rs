//! Naming groups of rows in messages, shortly however many they are.

use crate::flavor::TraceGroup;

/// Groups, and rows of a single group, that are named one by one.
const NAMED: usize = 8;
/// Characters of a group's key.
const KEY: usize = 60;

/// Groups as a report calls them: `groups 12..20` where they are a range, `groups 7, 3 and 12 more`
/// where they are not, and a single one with its key and the numbers of its rows: ``group 4, key
/// `chat-9`, rows 17, 18``.
pub fn name_groups(groups: &[TraceGroup]) -> String {
    let (Some(first), Some(last)) = (groups.first(), groups.last()) else {
        return "no groups".into();
    };
    if let [group] = groups {
        let key = match group.key.char_indices().nth(KEY) {
            _ if group.key.is_empty() => String::new(),
            None => format!(", key `{}`", group.key),
            Some((end, _)) => format!(", key `{}…`", &group.key[..end]),
        };
        let rows = listed(group.rows.iter().map(|row| row.number));
        return format!("group {}{key}, rows {rows}", group.index);
    }
    let range = groups
        .windows(2)
        .all(|pair| pair[0].index.checked_add(1) == Some(pair[1].index));
    if range {
        format!("groups {}..{}", first.index, last.index.saturating_add(1))
    } else {
        format!("groups {}", listed(groups.iter().map(|group| group.index)))
    }
}

fn listed(numbers: impl ExactSizeIterator<Item = u64>) -> String {
    let more = numbers.len().saturating_sub(NAMED);
    let shown: Vec<String> = numbers.take(NAMED).map(|number| number.to_string()).collect();
    match more {
        0 => shown.join(", "),
        _ => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TraceRow;

    fn group(index: u64, key: &str, rows: u64) -> TraceGroup {
        TraceGroup {
            index,
            key: key.into(),
            rows: (1..=rows)
                .map(|number| TraceRow {
                    number,
                    at: None,
                    fields: "{}".into(),
                })
                .collect(),
        }
    }

    fn all(indices: impl IntoIterator<Item = u64>) -> String {
        let groups: Vec<_> = indices.into_iter().map(|index| group(index, "", 1)).collect();
        name_groups(&groups)
    }

    #[test]
    fn group_names_are_short() {
        assert_eq!(all([]), "no groups");
        assert_eq!(all(12..20), "groups 12..20");
        assert_eq!(all([7, 3, 91]), "groups 7, 3, 91");
        assert_eq!(
            all((0..20).map(|i| 2 * i)),
            "groups 0, 2, 4, 6, 8, 10, 12, 14 and 12 more"
        );
        assert_eq!(all([u64::MAX, 0]), format!("groups {}, 0", u64::MAX));
        assert_eq!(name_groups(&[group(4, "", 2)]), "group 4, rows 1, 2");
        assert_eq!(
            name_groups(&[group(4, "chat-9", 1)]),
            "group 4, key `chat-9`, rows 1"
        );
        let long = name_groups(&[group(0, &"k".repeat(1 << 20), 100)]);
        assert!(long.len() < 200, "{long}");
        assert!(long.ends_with("7, 8 and 92 more"), "{long}");
    }
}
