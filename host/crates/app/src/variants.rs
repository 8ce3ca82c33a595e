//! The scenarios of one file: what tells each from the others, and what is said where some of them are wrong.

use veeksha_scenario::Setting;

use crate::failure::Failure;
use crate::secrets;

/// Scenarios that are named where many have the same fault.
const NAMED: usize = 3;

/// One scenario of those in a file.
pub struct Variant<L> {
    /// What tells it from the others, but for secrets; empty where there is only one, or where they do not differ.
    pub settings: Vec<Setting>,
    /// What came of reading it.
    pub loaded: L,
}

impl<L> Variant<L> {
    /// What is said of them goes into files and onto the terminal: what may be secret in their settings is replaced, as in `config.yml`.
    pub(crate) fn all(cells: impl IntoIterator<Item = (Vec<Setting>, L)>) -> Vec<Self> {
        let cells = cells
            .into_iter()
            .map(|(settings, loaded)| Variant { settings, loaded });
        let mut cells: Vec<Self> = cells.collect();
        secrets::mask(cells.iter_mut().flat_map(|cell| &mut cell.settings));
        cells
    }

    /// `seed = 3, traffic_scheduler.target_concurrent_sessions = 4`.
    pub fn name(&self) -> String {
        let settings = self.settings.iter();
        let each: Vec<String> = settings
            .map(|setting| format!("{} = {}", setting.path, setting.text()))
            .collect();
        each.join(", ")
    }

    /// The same cell, gone on with.
    pub fn and_then<M>(
        self: Variant<L>,
        go_on: impl FnOnce(L) -> Result<M, Failure>,
    ) -> Variant<Result<M, Failure>> {
        Variant {
            settings: self.settings,
            loaded: go_on(self.loaded),
        }
    }
}

/// All scenarios, if nothing is wrong with any.
///
/// # Errors
/// Everything that is wrong, each fault once with the scenarios that have it; the exit code is that of the first.
pub fn collect_errors<L>(cells: Vec<Variant<Result<L, Failure>>>) -> Result<Vec<Variant<L>>, Failure> {
    let count = cells.len();
    let mut good = Vec::new();
    let mut faults: Vec<(Failure, Vec<String>)> = Vec::new();
    for (index, cell) in cells.into_iter().enumerate() {
        let name = match cell.settings.is_empty() {
            true => format!("{}", index + 1),
            false => format!("{} ({})", index + 1, cell.name()),
        };
        match cell.loaded {
            Ok(loaded) => good.push(Variant {
                settings: cell.settings,
                loaded,
            }),
            Err(failure) => match faults.iter_mut().find(|(known, _)| *known == failure) {
                Some((_, names)) => names.push(name),
                None => faults.push((failure, vec![name])),
            },
        }
    }
    match faults.is_empty() {
        true => Ok(good),
        false => Err(together(faults, count)),
    }
}

fn together(faults: Vec<(Failure, Vec<String>)>, count: usize) -> Failure {
    let code = faults
        .first()
        .map_or(veeksha_exit::INTERNAL, |(first, _)| first.code);
    let alone = faults.len() == 1;
    let mut texts = Vec::new();
    let mut hint = None;
    for (failure, names) in faults {
        let mut text = failure.message;
        // Where there is one scenario, or all have the one fault, there is nothing to tell apart.
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
    Failure {
        hint,
        ..Failure::new(code, texts.join("\n"))
    }
}

/// `run 2 (seed = 5) of 4`, `all 4 runs`, `4 of 9 runs: 1 (seed = 1), ...`.
fn in_which(names: &[String], count: usize) -> String {
    match names {
        [one] => format!("run {one} of {count}"),
        all if all.len() == count => format!("all {count} runs"),
        several => {
            let shown = several.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
            let more = if several.len() > NAMED { ", ..." } else { "" };
            format!("{} of {count} runs: {shown}{more}", several.len())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(seed: u64, loaded: Result<u64, &str>) -> Variant<Result<u64, Failure>> {
        let setting = Setting {
            path: "seed".to_owned(),
            value: seed.into(),
        };
        Variant {
            settings: vec![setting],
            loaded: loaded.map_err(Failure::usage),
        }
    }

    fn said(cells: Vec<Variant<Result<u64, Failure>>>) -> String {
        collect_errors(cells).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn each_fault_is_told_once_with_those_that_have_it() {
        assert_eq!(
            collect_errors(vec![cell(1, Ok(1)), cell(2, Ok(2))])
                .ok()
                .map(|cells| cells.len()),
            Some(2)
        );
        assert_eq!(
            said(vec![cell(1, Ok(1)), cell(5, Err("no"))]),
            "error: no\n  in run 2 (seed = 5) of 2"
        );
        assert_eq!(
            said(vec![cell(1, Err("no")), cell(5, Err("no"))]),
            "error: no\n  in all 2 runs"
        );
        let alike = |loaded: Result<u64, &str>| Variant {
            settings: Vec::new(),
            loaded: loaded.map_err(Failure::usage),
        };
        assert_eq!(
            said(vec![alike(Ok(1)), alike(Err("no"))]),
            "error: no\n  in run 2 of 2"
        );
        let mixed = (0..6).map(|seed| cell(seed, if seed == 2 { Err("other") } else { Err("no") }));
        assert_eq!(
            said(mixed.collect()),
            "error: no\n  in 5 of 6 runs: 1 (seed = 0), 2 (seed = 1), 4 (seed = 3), ...\nother\n  in run 3 (seed = 2) of 6"
        );
        let alone = Variant {
            settings: Vec::new(),
            loaded: Err::<u64, _>(Failure::usage("no").hinted("yes")),
        };
        assert_eq!(said(vec![alone]), "error: no\nhint: yes");
    }
}
