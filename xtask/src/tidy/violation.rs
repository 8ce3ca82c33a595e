//! One violation of a convention.

use std::fmt;

/// A convention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// Modules of a crate that use each other, directly or through others.
    Cycle,
    /// A line of a comment or of prose past the column limit.
    Width,
    /// A phrase that the style guide replaces.
    Phrase,
    /// One type name for several types.
    Name,
}

impl Rule {
    /// Every rule, in the order of the report.
    pub const ALL: [Rule; 4] = [Rule::Cycle, Rule::Width, Rule::Phrase, Rule::Name];

    /// The rule's name on the command line and in the list of exceptions.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Rule::Cycle => "cycle",
            Rule::Width => "width",
            Rule::Phrase => "phrase",
            Rule::Name => "name",
        }
    }
}

/// A place that breaks a rule.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The broken rule.
    pub rule: Rule,
    /// Path below the repository's root.
    pub path: String,
    /// One-based line.
    pub line: usize,
    /// The subject that an exception names: the phrase, the function, the type.
    pub subject: String,
    /// The problem and its fix.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{}:{}: {}: {}",
            self.path,
            self.line,
            self.rule.name(),
            self.message
        )
    }
}
