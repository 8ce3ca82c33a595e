//! What a scenario is loaded for, and which part of it this process does.

use std::str::FromStr;

use veeksha_scheduler::Shard;

/// What a scenario is loaded for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// A run against a server.
    Run(Part),
    /// A run in virtual time: nothing in it may differ from one to the next.
    Simulate(Part),
    /// A look at the plan.
    Check,
}

impl Mode {
    /// The part of the sessions that this process drives.
    pub(crate) fn shard(self) -> Shard {
        match self {
            Mode::Run(part) | Mode::Simulate(part) => part.0,
            Mode::Check => Shard::WHOLE,
        }
    }
}

/// `k/n`: the k-th of n parts, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part(pub(crate) Shard);

impl Default for Part {
    fn default() -> Self {
        Part(Shard::WHOLE)
    }
}

/// More processes than that take part in no benchmark.
const MOST_PARTS: u32 = 10_000;

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parsed = text
            .split_once('/')
            .and_then(|(part, of)| Some((part.parse::<u32>().ok()?, of.parse::<u32>().ok()?)));
        match parsed {
            Some((part, of)) if (1..=of).contains(&part) && of <= MOST_PARTS => Ok(Part(Shard {
                index: part - 1,
                count: of,
            })),
            Some((part, of)) if part > of || part == 0 => {
                Err(format!("there is no part {part} of {of}; parts count from 1"))
            }
            Some(_) => Err(format!("at most {MOST_PARTS} parts")),
            None => Err("expected PART/PARTS, for example 1/4".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_count_from_one() {
        let shard = |text: &str| text.parse::<Part>().map(|part| (part.0.index, part.0.count));
        assert_eq!(shard("1/4"), Ok((0, 4)));
        assert_eq!(shard("4/4"), Ok((3, 4)));
        for wrong in ["0/4", "5/4", "4", "a/b", "1/0", "1/10001", "-1/2", ""] {
            assert!(shard(wrong).is_err(), "{wrong}");
        }
    }
}
