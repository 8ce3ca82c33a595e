//! What evaluators are called. Verdicts, judgements and metrics are told apart by it, so no two have the same name.

use std::collections::BTreeMap;

use crate::failure::Failure;

/// The names that are taken, and by what.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(BTreeMap<String, String>);

impl Names {
    /// A name that somebody chose, for what stands at `at`.
    ///
    /// # Errors
    /// If something else has it.
    pub(crate) fn take(&mut self, name: &str, at: &str) -> Result<(), Failure> {
        match self.0.insert(name.to_owned(), at.to_owned()) {
            None => Ok(()),
            Some(other) => Err(Failure::usage(format!(
                "{other} and {at} are both called `{name}`, so what they say could not be told apart"
            ))
            .hinted("give one of them another `name`; a component is called as its file is")),
        }
    }

    /// A component's name: its file's, which may be used several times with other configurations; from the second use on, its number
    /// is part of the name.
    pub(crate) fn number(&mut self, file: &str, at: &str) -> String {
        let mut name = file.to_owned();
        let mut number = 1;
        while self.0.contains_key(&name) {
            number += 1;
            name = format!("{file}#{number}");
        }
        self.0.insert(name.clone(), at.to_owned());
        name
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_evaluators_have_one_name() {
        let mut names = Names::default();
        assert_eq!(names.number("tiers", "evaluators[1]"), "tiers");
        assert_eq!(names.number("tiers", "evaluators[2]"), "tiers#2");
        assert_eq!(names.number("tiers", "evaluators[3]"), "tiers#3");
        assert!(names.take("mine", "evaluators[4]").is_ok());
        let failure = names.take("tiers", "evaluators[5]").unwrap_err();
        assert_eq!(
            failure.message,
            "evaluators[1] and evaluators[5] are both called `tiers`, so what they say could not be told apart"
        );
        assert_eq!(failure.code, crate::exit::USAGE);
        assert!(names.has("tiers#2") && !names.has("tiers#4"));
    }
}
