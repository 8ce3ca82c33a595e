//! A plugin of all kinds that measure and judge, which misbehaves as its configuration states:
//! `{"behaviour": "trap"}`. The names are those of the arms below. A request is `bad` when it asked
//! for 13 output tokens; some behaviours need one. `good` behaves: a sample for each request, every
//! request is good, one verdict.

wit_bindgen::generate!({
    inline: "
        package fixtures:hostile-measure;
        world hostile-measure {
            import veeksha:plugin/log@0.2.0;
            import veeksha:plugin/results@0.2.0;
            export veeksha:plugin/metric@0.2.0;
            export veeksha:plugin/request-check@0.2.0;
            export veeksha:plugin/slo-check@0.2.0;
        }
    ",
    path: "../../../wit/0.2.0",
    generate_all,
});

use std::cell::Cell;

use exports::veeksha::plugin::metric::{Better, Definition, Sample};
use exports::veeksha::plugin::slo_check::Verdict;
use exports::veeksha::plugin::{metric, request_check, slo_check};
use veeksha::plugin::log;
use veeksha::plugin::records::Batch;
use veeksha::plugin::results::Results;
use veeksha::plugin::types::{Descriptor, Error};

struct Plugin;

struct Hostile {
    behaviour: String,
    seen: Cell<usize>,
}

impl Hostile {
    fn open(config: &str) -> Self {
        std::panic::set_hook(Box::new(|info| log::write(log::Level::Error, &info.to_string())));
        let behaviour = config.rsplit('"').nth(1).unwrap_or("good").to_owned();
        assert_ne!(behaviour, "open-trap", "it does not open");
        Hostile {
            behaviour,
            seen: Cell::new(0),
        }
    }

    /// The misbehaviour of every kind on a bad request.
    fn meets(&self, batch: &Batch) -> Result<(), Error> {
        let bad = batch.target_output_tokens.contains(&13);
        match self.behaviour.as_str() {
            "trap" if bad => miscounted(),
            "loop" if bad => endless(),
            "error" if bad => {
                return Err(Error {
                    code: "bad".into(),
                    message: "it is bad".into(),
                    hint: Some("send good ones".into()),
                    path: None,
                });
            }
            // Fails on many requests and on none of them alone.
            "crowd" => assert_eq!(batch.session.len(), 1, "a crowd"),
            "memory" => {
                std::hint::black_box(swell());
            }
            // Keeps a MiB of each call.
            "leak" => std::mem::forget(std::hint::black_box(vec![1u8; 1 << 20])),
            _ => {}
        }
        Ok(())
    }
}

fn describe() -> Descriptor {
    Descriptor {
        name: "hostile-measure".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        summary: "misbehaves on demand".into(),
        config_schema: "{}".into(),
    }
}

impl metric::Guest for Plugin {
    type Collector = Hostile;

    fn describe() -> Descriptor {
        describe()
    }
}

impl metric::GuestCollector for Hostile {
    fn open(config: String) -> Result<metric::Collector, Error> {
        Ok(metric::Collector::new(Hostile::open(&config)))
    }

    fn definitions(&self) -> Vec<Definition> {
        let definition = |name: &str| Definition {
            name: name.into(),
            unit: "1".into(),
            better: Better::Neither,
            summary: "hostile".into(),
        };
        match self.behaviour.as_str() {
            "definitions-trap" => panic!("nothing is defined today"),
            "definitions-none" => Vec::new(),
            "definitions-name" => vec![definition("Not a name")],
            "definitions-twice" => vec![definition("one"), definition("two"), definition("one")],
            "definitions-many" => (0..300).map(|i| definition(&format!("m{i}"))).collect(),
            "definitions-huge" => vec![definition(&"x".repeat(16 << 20))],
            "definitions-text" => vec![definition(&no_text())],
            _ => vec![definition("one"), definition("two")],
        }
    }

    fn observe(&self, batch: Batch) -> Result<Vec<Sample>, Error> {
        self.meets(&batch)?;
        let count = batch.session.len();
        let seen = self.seen.get();
        self.seen.set(seen + count);
        let sample = |of: usize| Sample {
            metric: 0,
            value: (seen + of) as f64,
            weight: 1.0,
            of: Some(of as u32),
        };
        let bad = batch.target_output_tokens.iter().position(|tokens| *tokens == 13);
        let mut samples: Vec<Sample> = (0..count).map(sample).collect();
        if let Some(bad) = bad {
            let sample = &mut samples[bad];
            match self.behaviour.as_str() {
                "nan" => sample.value = f64::NAN,
                "infinite" => sample.value = f64::NEG_INFINITY,
                "weight-infinite" => sample.weight = f64::INFINITY,
                "weight-zero" => sample.weight = 0.0,
                "weight-negative" => sample.weight = -1.0,
                "metric" => sample.metric = 2,
                "of" => sample.of = Some(count as u32),
                _ => {}
            }
        }
        match self.behaviour.as_str() {
            // Only after a hundred requests: showing it the one that it stopped on shows nothing.
            "late" => assert!(seen + count <= 100, "a hundred is enough"),
            "huge" => return Ok(vec![sample(0); 500_000]),
            "ten-million" => return Ok(vec![sample(0); 10_000_000]),
            _ => {}
        }
        Ok(samples)
    }

    fn finish(&self) -> Result<Vec<Sample>, Error> {
        let sample = |value: f64, of: Option<u32>| Sample {
            metric: 1,
            value,
            weight: 1.0,
            of,
        };
        Ok(match self.behaviour.as_str() {
            "finish-trap" => panic!("it does not end"),
            "finish-nan" => vec![sample(f64::NAN, None)],
            "finish-of" => vec![sample(1.0, Some(0))],
            _ => vec![sample(self.seen.get() as f64, None)],
        })
    }
}

impl request_check::Guest for Plugin {
    type Checker = Hostile;

    fn describe() -> Descriptor {
        describe()
    }
}

impl request_check::GuestChecker for Hostile {
    fn open(config: String) -> Result<request_check::Checker, Error> {
        Ok(request_check::Checker::new(Hostile::open(&config)))
    }

    fn judge(&self, batch: Batch) -> Result<Vec<bool>, Error> {
        self.meets(&batch)?;
        let count = batch.session.len();
        Ok(match self.behaviour.as_str() {
            "too-few" => vec![true; count - 1],
            "too-many" => vec![true; count + 1],
            "none" => Vec::new(),
            "huge" => vec![true; 16 << 20],
            _ => vec![true; count],
        })
    }
}

impl slo_check::Guest for Plugin {
    type Checker = Hostile;

    fn describe() -> Descriptor {
        describe()
    }
}

impl slo_check::GuestChecker for Hostile {
    fn open(config: String) -> Result<slo_check::Checker, Error> {
        Ok(slo_check::Checker::new(Hostile::open(&config)))
    }

    fn check(&self, results: Results) -> Result<Vec<Verdict>, Error> {
        let verdict = |name: &str| Verdict {
            name: name.into(),
            met: true,
            observed: Some(1.0),
            threshold: 2.0,
            detail: "a\ndetail".into(),
        };
        Ok(match self.behaviour.as_str() {
            "trap" => miscounted(),
            "loop" => endless(),
            "memory" => vec![verdict(&swell().to_string())],
            "error" => {
                return Err(Error {
                    code: "bad".into(),
                    message: "it is bad".into(),
                    hint: None,
                    path: Some("/behaviour".into()),
                });
            }
            "empty" => Vec::new(),
            "nameless" => vec![verdict(" ")],
            "twice" => vec![verdict("a"), verdict("b"), verdict("a")],
            "many" => (0..2000).map(|i| verdict(&i.to_string())).collect(),
            "huge" => vec![verdict(&"x".repeat(16 << 20))],
            "text" => vec![verdict(&no_text())],
            "observed" => vec![Verdict {
                observed: Some(f64::NAN),
                ..verdict("a")
            }],
            "unobserved" => vec![Verdict {
                observed: None,
                ..verdict("a")
            }],
            "threshold" => vec![Verdict {
                threshold: f64::INFINITY,
                ..verdict("a")
            }],
            "percent" => vec![Verdict {
                observed: results.percentile("ttfc", 101.0, &[]),
                ..verdict("a")
            }],
            "percent-nan" => vec![Verdict {
                observed: results.percentile("ttfc", f64::NAN, &[]),
                ..verdict("a")
            }],
            "windows" => vec![Verdict {
                observed: Some(results.windows("ttfc", &[], 0).len() as f64),
                ..verdict("a")
            }],
            // Keeps what it was handed: it goes with the store.
            "keep" => {
                std::mem::forget(results);
                vec![verdict("a")]
            }
            _ => vec![verdict("a")],
        })
    }
}

#[inline(never)]
fn miscounted() -> ! {
    panic!("a request was miscounted");
}

#[expect(clippy::empty_loop, reason = "being endless is its purpose")]
fn endless() -> ! {
    loop {}
}

/// Bytes that are not UTF-8, where the contract has a text.
fn no_text() -> String {
    // SAFETY: it is not read here; it is only handed over.
    unsafe { String::from_utf8_unchecked(vec![b'a', 0xff, 0xfe]) }
}

fn swell() -> u32 {
    let mut kept = Vec::new();
    loop {
        kept.push(std::hint::black_box(vec![1u8; 1 << 20]));
        if kept.len() > 100_000 {
            return kept.len() as u32;
        }
    }
}

export!(Plugin);
