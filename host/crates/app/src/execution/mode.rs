//! Purposes for which a scenario is loaded, and the shard of a process.

use std::str::FromStr;

use veeksha_scheduler::Shard;

/// The purpose for which a scenario is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// A run against a server.
    Run(ShardSpec),
    /// A run in virtual time, which must be reproducible.
    Simulate(ShardSpec),
    /// A check that sends nothing.
    Check,
}

impl Mode {
    /// Returns the shard of the sessions that this process drives.
    pub(crate) fn shard(self) -> Shard {
        match self {
            Mode::Run(shard) | Mode::Simulate(shard) => shard.0,
            Mode::Check => Shard::WHOLE,
        }
    }
}

/// A shard `N/M`: the N-th of M, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardSpec(pub(crate) Shard);

impl Default for ShardSpec {
    fn default() -> Self {
        ShardSpec(Shard::WHOLE)
    }
}

/// Maximum number of shards of a run.
const MAX_SHARDS: u32 = 10_000;

impl FromStr for ShardSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parsed = text
            .split_once('/')
            .and_then(|(part, of)| Some((part.parse::<u32>().ok()?, of.parse::<u32>().ok()?)));
        match parsed {
            Some((part, of)) if (1..=of).contains(&part) && of <= MAX_SHARDS => Ok(ShardSpec(Shard {
                index: part - 1,
                count: of,
            })),
            Some((part, of)) if part > of || part == 0 => Err(format!(
                "there is no shard {part} of {of}; shards are counted from 1"
            )),
            Some(_) => Err(format!("at most {MAX_SHARDS} shards")),
            None => Err("expected N/M, for example 1/4".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_counted_from_one() {
        let shard = |text: &str| text.parse::<ShardSpec>().map(|part| (part.0.index, part.0.count));
        assert_eq!(shard("1/4"), Ok((0, 4)));
        assert_eq!(shard("4/4"), Ok((3, 4)));
        for wrong in ["0/4", "5/4", "4", "a/b", "1/0", "1/10001", "-1/2", ""] {
            assert!(shard(wrong).is_err(), "{wrong}");
        }
    }
}
