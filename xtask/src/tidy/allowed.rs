//! The reviewed exceptions, `xtask/tidy-exceptions.txt`.

use std::path::Path;

use super::violation::Violation;

/// Path of the list below the repository's root.
const LIST: &str = "xtask/tidy-exceptions.txt";

/// One exception: `rule | path prefix | subject | reason`.
struct Exception {
    line: String,
    rule: String,
    path: String,
    subject: String,
}

impl Exception {
    fn permits(&self, violation: &Violation) -> bool {
        self.rule == violation.rule.name()
            && violation.path.starts_with(&self.path)
            && (self.subject == "*" || self.subject == violation.subject)
    }
}

/// The list of exceptions.
pub(super) struct Allowed(Vec<Exception>);

impl Allowed {
    /// Reads the list below `root`; a missing list has no exceptions.
    pub(super) fn read(root: &Path) -> Result<Allowed, String> {
        let Ok(text) = std::fs::read_to_string(root.join(LIST)) else {
            return Ok(Allowed(Vec::new()));
        };
        let lines = text
            .lines()
            .filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
        lines.map(parse).collect::<Result<_, _>>().map(Allowed)
    }

    pub(super) fn permits(&self, violation: &Violation) -> bool {
        self.0.iter().any(|exception| exception.permits(violation))
    }

    /// Exceptions that match none of `violations`.
    pub(super) fn unused(&self, violations: &[Violation]) -> Vec<String> {
        let unused = self
            .0
            .iter()
            .filter(|exception| !violations.iter().any(|violation| exception.permits(violation)));
        unused.map(|exception| exception.line.clone()).collect()
    }
}

fn parse(line: &str) -> Result<Exception, String> {
    let fields: Vec<&str> = line.split('|').map(str::trim).collect();
    match fields.as_slice() {
        [rule, path, subject, reason] if !reason.is_empty() => Ok(Exception {
            line: line.to_owned(),
            rule: (*rule).to_owned(),
            path: (*path).to_owned(),
            subject: (*subject).to_owned(),
        }),
        _ => Err(format!(
            "{LIST}: expected `rule | path prefix | subject | reason`, got `{line}`"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::super::violation::Rule;
    use super::*;

    #[test]
    fn exception_needs_a_reason() {
        assert!(parse("phrase | docs/ | lorem |").is_err());
        assert!(parse("phrase | docs/ | lorem").is_err());
    }

    #[test]
    fn exception_matches_rule_path_and_subject() {
        let exception = parse("phrase | docs/ | lorem | a quotation").expect("valid");
        let violation = |rule, path: &str, subject: &str| Violation {
            rule,
            path: path.into(),
            line: 1,
            subject: subject.into(),
            message: String::new(),
        };
        assert!(exception.permits(&violation(Rule::Phrase, "docs/a.md", "lorem")));
        assert!(!exception.permits(&violation(Rule::Width, "docs/a.md", "lorem")));
        assert!(!exception.permits(&violation(Rule::Phrase, "README.md", "lorem")));
        assert!(!exception.permits(&violation(Rule::Phrase, "docs/a.md", "ipsum")));
    }
}
