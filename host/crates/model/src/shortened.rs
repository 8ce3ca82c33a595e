//! Lists in messages.

/// The most items of a list in a message: more are not read, and hide what comes after them.
const MOST_ITEMS: usize = 20;

/// Shortens a list for a message: the first 20 items, and the number of the others as the last one.
pub fn shortened(mut items: Vec<String>) -> Vec<String> {
    let more = items.len().saturating_sub(MOST_ITEMS);
    if more > 0 {
        items.truncate(MOST_ITEMS);
        items.push(format!("and {more} more"));
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_end_with_the_number_of_omitted_items() {
        let items = |count: usize| (0..count).map(|item| item.to_string()).collect::<Vec<_>>();
        assert_eq!(shortened(items(20)), items(20));
        let cut = shortened(items(23));
        assert_eq!(
            (cut.len(), cut[19].as_str(), cut[20].as_str()),
            (21, "19", "and 3 more")
        );
    }
}
