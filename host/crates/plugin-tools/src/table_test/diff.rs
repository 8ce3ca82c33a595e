//! Differences between two texts, line by line.

/// Lines around a difference.
const CONTEXT: usize = 2;
/// Maximum number of lines that are compared by their longest common part; longer texts are
/// compared from the first difference on.
const MAX_LINES: usize = 2_000;
/// Maximum number of printed lines.
const MAX_PRINTED: usize = 60;

/// Returns the lines that differ, with `-` for those of `expected` and `+` for those of `found`.
pub fn diff(expected: &str, found: &str) -> String {
    let (expected, found): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), found.lines().collect());
    let start = expected
        .iter()
        .zip(&found)
        .take_while(|(one, other)| one == other)
        .count();
    let (old, new) = (&expected[start..], &found[start..]);
    let end = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take_while(|(one, other)| one == other)
        .count();
    let (old_end, new_end) = (old.len() - end, new.len() - end);
    let mut lines: Vec<(char, &str)> = expected[..start].iter().map(|line| (' ', *line)).collect();
    lines.extend(changes(&old[..old_end], &new[..new_end]));
    lines.extend(old[old_end..].iter().map(|line| (' ', *line)));
    print(&lines)
}

/// Returns the lines of both texts, in order, by their longest common part.
fn changes<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<(char, &'t str)> {
    if old.len().max(new.len()) > MAX_LINES {
        let removed = old.iter().map(|line| ('-', *line));
        return removed.chain(new.iter().map(|line| ('+', *line))).collect();
    }
    // common[i][j]: the length of the longest common part of old[i..] and new[j..].
    let width = new.len() + 1;
    let mut common = vec![0_u32; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i * width + j] = if old[i] == new[j] {
                common[(i + 1) * width + j + 1] + 1
            } else {
                common[(i + 1) * width + j].max(common[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut lines = Vec::new();
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            lines.push((' ', old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || i < old.len() && common[(i + 1) * width + j] >= common[i * width + j + 1]
        {
            lines.push(('-', old[i]));
            i += 1;
        } else {
            lines.push(('+', new[j]));
            j += 1;
        }
    }
    lines
}

/// Prints the differences with their context.
fn print(lines: &[(char, &str)]) -> String {
    let near = |at: usize| {
        let from = at.saturating_sub(CONTEXT);
        let to = (at + CONTEXT + 1).min(lines.len());
        lines[from..to].iter().any(|(sign, _)| *sign != ' ')
    };
    let mut text = Vec::new();
    let mut is_gap = false;
    for (at, (sign, line)) in lines.iter().enumerate() {
        if !near(at) {
            is_gap = true;
            continue;
        }
        if text.len() >= MAX_PRINTED {
            text.push("…".to_owned());
            break;
        }
        if std::mem::take(&mut is_gap) {
            text.push("…".to_owned());
        }
        text.push(format!("{sign} {line}").trim_end().to_owned());
    }
    text.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_changes_with_their_context() {
        let expected = "a\nb\nc\nd\ne\nf\ng\n";
        let found = "a\nb\nc\nX\ne\nf\ng\nh\n";
        assert_eq!(diff(expected, found), "…\n  b\n  c\n- d\n+ X\n  e\n  f\n  g\n+ h");
        assert_eq!(diff(expected, expected), "");
        assert_eq!(diff("", "a"), "+ a");
    }

    proptest::proptest! {
        /// The lines with `-` or a space are the old text, those with `+` or a space the new one.
        #[test]
        fn both_texts_follow_from_the_changes(
            old in proptest::collection::vec("[abc]", 0..12),
            new in proptest::collection::vec("[abc]", 0..12),
        ) {
            let old: Vec<&str> = old.iter().map(String::as_str).collect();
            let new: Vec<&str> = new.iter().map(String::as_str).collect();
            let lines = changes(&old, &new);
            let side = |sign: char| -> Vec<&str> {
                lines.iter().filter(|(found, _)| *found == ' ' || *found == sign).map(|(_, line)| *line).collect()
            };
            proptest::prop_assert_eq!(side('-'), old);
            proptest::prop_assert_eq!(side('+'), new);
        }
    }
}
