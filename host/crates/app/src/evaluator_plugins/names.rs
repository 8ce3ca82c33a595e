//! Names of evaluators, which are unique because verdicts, judgements and metrics refer to them.

use std::collections::BTreeMap;

use crate::failure::CommandFailure;

/// The names in use, each with the key that uses it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(BTreeMap<String, String>);

impl Names {
    /// Reserves a user-defined name for the evaluator at `at`.
    ///
    /// # Errors
    /// If another evaluator has the name.
    pub(crate) fn reserve(&mut self, name: &str, at: &str) -> Result<(), CommandFailure> {
        match self.0.insert(name.to_owned(), at.to_owned()) {
            None => Ok(()),
            Some(other) => Err(CommandFailure::usage(format!(
                "{other} and {at} have the same name `{name}`, so their results could not be distinguished"
            ))
            .hinted("give one of them another `name`; a component is named after its file")),
        }
    }

    /// Reserves a name for a component: the name of its file, with a number from the second use on,
    /// because one file may be used several times with different configurations.
    pub(crate) fn reserve_numbered(&mut self, file: &str, at: &str) -> String {
        let mut name = file.to_owned();
        let mut number = 1;
        while self.0.contains_key(&name) {
            number += 1;
            name = format!("{file}#{number}");
        }
        self.0.insert(name.clone(), at.to_owned());
        name
    }

    /// Returns true if the name is in use.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_duplicate_names_and_numbers_components() {
        let mut names = Names::default();
        assert_eq!(names.reserve_numbered("tiers", "evaluators[1]"), "tiers");
        assert_eq!(names.reserve_numbered("tiers", "evaluators[2]"), "tiers#2");
        assert_eq!(names.reserve_numbered("tiers", "evaluators[3]"), "tiers#3");
        assert!(names.reserve("mine", "evaluators[4]").is_ok());
        let failure = names.reserve("tiers", "evaluators[5]").unwrap_err();
        assert_eq!(
            failure.message,
            "evaluators[1] and evaluators[5] have the same name `tiers`, so their results could not be distinguished"
        );
        assert_eq!(failure.code, veeksha_exit::USAGE);
        assert!(names.contains("tiers#2") && !names.contains("tiers#4"));
    }
}
