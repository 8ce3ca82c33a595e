//! Selection of the drawn samples.

/// Selects at most `most` of the values, at even distances, including the first and the last.
pub(super) fn select_evenly<T: Copy>(values: &[T], most: usize) -> Vec<T> {
    if values.len() <= most || most < 2 {
        return values.to_vec();
    }
    (0..most)
        .map(|place| values[place * (values.len() - 1) / (most - 1)])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selection_keeps_the_extremes() {
        let values: Vec<u32> = (0..1000).collect();
        let some = select_evenly(&values, 100);
        assert_eq!((some.len(), some[0], some[99]), (100, 0, 999));
        assert_eq!(select_evenly(&values[..5], 100), values[..5]);
    }
}
