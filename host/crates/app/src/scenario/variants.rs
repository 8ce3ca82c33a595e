//! Scenarios of one file: their differences, and their errors.

use veeksha_model::shortened;
use veeksha_scenario::Setting;

use crate::failure::CommandFailure;
use crate::scenario::secrets;

/// Maximum number of scenarios that are listed for one error.
const LISTED: usize = 3;

/// One of the scenarios in a file.
pub struct Variant<L> {
    /// Settings that distinguish it from the others, with secrets redacted; empty if there is only
    /// one, or if they do not differ.
    pub settings: Vec<Setting>,
    /// Result of reading it.
    pub loaded: L,
}

impl<L> Variant<L> {
    /// Redacts secrets in the settings like `config.yml`, because they are written to files and
    /// messages.
    pub(crate) fn all(variants: impl IntoIterator<Item = (Vec<Setting>, L)>) -> Vec<Self> {
        let variant = |(mut settings, loaded): (Vec<Setting>, L)| {
            settings.iter_mut().for_each(secrets::redact);
            Variant { settings, loaded }
        };
        variants.into_iter().map(variant).collect()
    }

    /// `seed = 3, traffic_scheduler.target_concurrent_sessions = 4`.
    pub fn name(&self) -> String {
        let settings = self.settings.iter();
        let each: Vec<String> = settings
            .map(|setting| format!("{} = {}", setting.path, setting.text()))
            .collect();
        each.join(", ")
    }

    /// Applies `go_on` to the scenario and keeps the settings.
    pub fn and_then<M>(
        self: Variant<L>,
        go_on: impl FnOnce(L) -> Result<M, CommandFailure>,
    ) -> Variant<Result<M, CommandFailure>> {
        Variant {
            settings: self.settings,
            loaded: go_on(self.loaded),
        }
    }
}

/// Returns all scenarios if none has an error.
///
/// # Errors
/// All errors without duplicates, each with its scenarios. The exit code is that of the first
/// error.
pub fn collect_errors<L>(
    variants: Vec<Variant<Result<L, CommandFailure>>>,
) -> Result<Vec<Variant<L>>, CommandFailure> {
    let count = variants.len();
    let mut good = Vec::new();
    let mut errors: Vec<(CommandFailure, Vec<String>)> = Vec::new();
    for (index, variant) in variants.into_iter().enumerate() {
        let name = if variant.settings.is_empty() {
            format!("{}", index + 1)
        } else {
            format!("{} ({})", index + 1, variant.name())
        };
        match variant.loaded {
            Ok(loaded) => good.push(Variant {
                settings: variant.settings,
                loaded,
            }),
            Err(failure) => match errors.iter_mut().find(|(known, _)| *known == failure) {
                Some((_, names)) => names.push(name),
                None => errors.push((failure, vec![name])),
            },
        }
    }
    if errors.is_empty() {
        Ok(good)
    } else {
        Err(together(errors, count))
    }
}

fn together(errors: Vec<(CommandFailure, Vec<String>)>, count: usize) -> CommandFailure {
    let code = errors
        .first()
        .map_or(veeksha_exit::INTERNAL, |(first, _)| first.code);
    let alone = errors.len() == 1;
    let mut texts = Vec::new();
    let mut hint = None;
    for (failure, names) in errors {
        let mut text = failure.message;
        // With one scenario, or one error in all of them, there is nothing to distinguish.
        if count > 1 {
            text.push_str(&format!("\n  in {}", in_which(&names, count)));
        }
        match failure.hint {
            Some(of_this) if alone => hint = Some(of_this),
            Some(of_this) => text.push_str(&format!("\n  hint: {of_this}")),
            None => {}
        }
        texts.push(text);
    }
    CommandFailure {
        hint,
        ..CommandFailure::new(code, shortened(texts).join("\n"))
    }
}

/// `run 2 (seed = 5) of 4`, `all 4 runs`, `4 of 9 runs: 1 (seed = 1), ...`.
fn in_which(names: &[String], count: usize) -> String {
    match names {
        [one] => format!("run {one} of {count}"),
        all if all.len() == count => format!("all {count} runs"),
        several => {
            let shown = several
                .iter()
                .take(LISTED)
                .cloned()
                .collect::<Vec<_>>()
                .join(", ");
            let more = if several.len() > LISTED { ", ..." } else { "" };
            format!("{} of {count} runs: {shown}{more}", several.len())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variant(seed: u64, loaded: Result<u64, &str>) -> Variant<Result<u64, CommandFailure>> {
        let setting = Setting {
            path: "seed".to_owned(),
            value: seed.into(),
        };
        Variant {
            settings: vec![setting],
            loaded: loaded.map_err(CommandFailure::usage),
        }
    }

    fn error_of(variants: Vec<Variant<Result<u64, CommandFailure>>>) -> String {
        collect_errors(variants).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn lists_each_error_once_with_its_scenarios() {
        assert_eq!(
            collect_errors(vec![variant(1, Ok(1)), variant(2, Ok(2))])
                .ok()
                .map(|variants| variants.len()),
            Some(2)
        );
        assert_eq!(
            error_of(vec![variant(1, Ok(1)), variant(5, Err("no"))]),
            "error: no\n  in run 2 (seed = 5) of 2"
        );
        assert_eq!(
            error_of(vec![variant(1, Err("no")), variant(5, Err("no"))]),
            "error: no\n  in all 2 runs"
        );
        let alike = |loaded: Result<u64, &str>| Variant {
            settings: Vec::new(),
            loaded: loaded.map_err(CommandFailure::usage),
        };
        assert_eq!(
            error_of(vec![alike(Ok(1)), alike(Err("no"))]),
            "error: no\n  in run 2 of 2"
        );
        let mixed = (0..6).map(|seed| variant(seed, if seed == 2 { Err("other") } else { Err("no") }));
        assert_eq!(
            error_of(mixed.collect()),
            "error: no\n  in 5 of 6 runs: 1 (seed = 0), 2 (seed = 1), 4 (seed = 3), ...\nother\n  in run 3 (seed = 2) of 6"
        );
        let alone = Variant {
            settings: Vec::new(),
            loaded: Err::<u64, _>(CommandFailure::usage("no").hinted("yes")),
        };
        assert_eq!(error_of(vec![alone]), "error: no\nhint: yes");
    }

    #[test]
    fn lists_at_most_twenty_errors() {
        let messages: Vec<String> = (0..25).map(|seed| format!("no {seed}")).collect();
        let all = messages
            .iter()
            .zip(0..)
            .map(|(message, seed)| variant(seed, Err(message)));
        let error = error_of(all.collect());
        assert!(error.contains("no 19\n") && !error.contains("no 20"), "{error}");
        assert!(error.ends_with("\nand 5 more"), "{error}");
    }
}
