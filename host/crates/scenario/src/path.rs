//! Paths into a scenario: `session_generator.channels[0].body_length_generator.value`,
//! `client.headers[X-Run]`.

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A key after a dot.
    Key(String),
    /// The contents of brackets: an index into a list, or a key of a map.
    Bracket(String),
}

/// Splits a path into its steps; the error describes the problem.
pub(crate) fn parse(path: &str) -> Result<Vec<Step>, &'static str> {
    if path.is_empty() {
        return Err("it is empty");
    }
    let mut steps = Vec::new();
    let mut rest = path;
    loop {
        if let Some(inner) = rest.strip_prefix('[') {
            if steps.is_empty() {
                return Err("it begins with a bracket");
            }
            let (index, after) = inner.split_once(']').ok_or("a bracket is not closed")?;
            if index.is_empty() {
                return Err("a pair of brackets is empty");
            }
            steps.push(Step::Bracket(index.to_owned()));
            rest = after;
        } else {
            let (key, after) = rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len()));
            if key.is_empty() {
                return Err("a key is empty");
            }
            steps.push(Step::Key(key.to_owned()));
            rest = after;
        }
        if rest.is_empty() {
            return Ok(steps);
        }
        if let Some(after) = rest.strip_prefix('.') {
            if after.starts_with('[') {
                return Err("a key is empty");
            }
            rest = after;
            if rest.is_empty() {
                return Err("a key is empty");
            }
        } else if !rest.starts_with('[') {
            return Err("a dot is missing after a bracket");
        }
    }
}

/// Returns the path of a key below a path.
pub(crate) fn join(path: &str, key: &str) -> String {
    let plain = !key.is_empty() && !key.contains(['.', '[', ']']);
    match (path.is_empty(), plain) {
        (true, _) => key.to_owned(),
        (false, true) => format!("{path}.{key}"),
        (false, false) => format!("{path}[{key}]"),
    }
}

/// Returns the path of an item below a path.
pub(crate) fn item(path: &str, index: usize) -> String {
    format!("{path}[{index}]")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Step {
        Step::Key(name.to_owned())
    }

    fn bracket(name: &str) -> Step {
        Step::Bracket(name.to_owned())
    }

    #[test]
    fn paths_split_at_dots_and_brackets() {
        assert_eq!(parse("seed"), Ok(vec![key("seed")]));
        assert_eq!(
            parse("a.b[0].c[x.y]"),
            Ok(vec![key("a"), key("b"), bracket("0"), key("c"), bracket("x.y")])
        );
        assert_eq!(parse("a[0][1]"), Ok(vec![key("a"), bracket("0"), bracket("1")]));
    }

    #[test]
    fn invalid_paths_name_their_problem() {
        assert_eq!(parse(""), Err("it is empty"));
        assert_eq!(parse(".a"), Err("a key is empty"));
        assert_eq!(parse("a..b"), Err("a key is empty"));
        assert_eq!(parse("a."), Err("a key is empty"));
        assert_eq!(parse("a[0"), Err("a bracket is not closed"));
        assert_eq!(parse("a[]"), Err("a pair of brackets is empty"));
        assert_eq!(parse("[0]"), Err("it begins with a bracket"));
        assert_eq!(parse("a[0]b"), Err("a dot is missing after a bracket"));
    }
}
