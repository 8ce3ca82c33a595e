//! An endpoint codec that misbehaves as its configuration states: `{"behaviour": "trap"}`. The
//! names are those of the arms below. Some of them misbehave only on an event that holds `bad`;
//! `calls` returns how often it was called (the parts of an event must not depend on that: the
//! tests use it to see when a store is replaced); `good` behaves: each event is visible text.

wit_bindgen::generate!({
    inline: "
        package fixtures:hostile-codec;
        world hostile-codec {
            import veeksha:plugin/log@0.2.0;
            export veeksha:plugin/endpoint-codec@0.2.0;
        }
    ",
    path: "../../../wit/0.2.0",
    generate_all,
});

use std::cell::Cell as Counter;

use exports::veeksha::plugin::endpoint_codec::{
    Codec, Descriptor, Endpoint, Error, Framing, Guest, GuestCodec, Part, Parts, ToolPiece,
};
use veeksha::plugin::log;

struct Plugin;

struct Hostile {
    behaviour: String,
    calls: Counter<u64>,
}

impl Guest for Plugin {
    type Codec = Hostile;

    fn describe() -> Descriptor {
        Descriptor {
            name: "hostile-codec".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: "misbehaves on demand".into(),
            config_schema: "{}".into(),
        }
    }
}

impl GuestCodec for Hostile {
    fn open(config: String) -> Result<Codec, Error> {
        std::panic::set_hook(Box::new(|info| log::write(log::Level::Error, &info.to_string())));
        let behaviour = config.rsplit('"').nth(1).unwrap_or("good").to_owned();
        assert_ne!(behaviour, "open-trap", "it does not open");
        Ok(Codec::new(Hostile {
            behaviour,
            calls: Counter::new(0),
        }))
    }

    fn endpoint(&self) -> Endpoint {
        let good = Endpoint {
            path: "speak".into(),
            headers: Vec::new(),
            request: "{}".into(),
            framing: Framing::Lines,
        };
        let path = |path: &str| Endpoint {
            path: path.into(),
            ..good.clone()
        };
        match self.behaviour.as_str() {
            "endpoint-trap" => panic!("no endpoint today"),
            "endpoint-loop" => endless(),
            "endpoint-path" => path("speak HTTP/1.1\r\nhost: elsewhere\r\n"),
            "endpoint-huge" => path(&"x".repeat(16 << 20)),
            "endpoint-header" => Endpoint {
                headers: vec![("transfer-encoding".into(), "chunked".into())],
                ..good
            },
            "endpoint-headers" => Endpoint {
                headers: vec![("a".into(), "b".into()); 100_000],
                ..good
            },
            "endpoint-request" => Endpoint {
                request: "[1]".into(),
                ..good
            },
            _ => good,
        }
    }

    fn decode(&self, bytes: Vec<u8>, ends: Vec<u32>) -> Result<Parts, Error> {
        self.calls.set(self.calls.get() + 1);
        let events = ends.len();
        let bad = bytes.windows(3).position(|three| three == b"bad");
        let each = |part: Part| Parts {
            parts: vec![part; events],
            ends: (1..=events as u32).collect(),
        };
        let ending = |ends: Vec<u32>| Parts {
            parts: vec![Part::Role; events],
            ends,
        };
        Ok(match self.behaviour.as_str() {
            "trap" if bad.is_some() => misread(bytes.len()),
            "loop" if bad.is_some() => endless(),
            "memory" => each(Part::Content(swell().to_string())),
            "swell" => {
                std::mem::forget(std::hint::black_box(vec![1u8; 8 << 20]));
                each(Part::Content(self.calls.get().to_string()))
            }
            "calls" => each(Part::Content(self.calls.get().to_string())),
            "huge" => each(Part::Content("x".repeat(16 << 20))),
            "many" => Parts {
                parts: vec![Part::Role; 500_000],
                ends: vec![500_000; events],
            },
            // What one call may say, in every call.
            "amplify" => Parts {
                parts: vec![Part::Content("x".repeat(5 << 20))],
                ends: vec![1; events],
            },
            "too-few" => ending((1..events as u32).collect()),
            "too-many" => ending((1..=events as u32 + 1).collect()),
            "none" => ending(Vec::new()),
            "backwards" => ending((0..events as u32).rev().collect()),
            "beyond" => ending(vec![u32::MAX; events]),
            "left-over" => ending(vec![0; events]),
            "call-index" => each(Part::Tool(ToolPiece {
                index: -1i32 as u32,
                id: String::new(),
                name: String::new(),
                arguments: String::new(),
            })),
            "long-word" => each(Part::Finish("x".repeat(8 << 10))),
            // Fails on many events and on none of them alone.
            "crowd" => {
                assert_eq!(events, 1, "a crowd");
                each(Part::Role)
            }
            "error" if bad.is_some() => {
                return Err(Error {
                    code: "event".into(),
                    message: "it is bad".into(),
                    hint: Some("send good ones".into()),
                    path: None,
                });
            }
            _ => {
                let mut start = 0;
                let text = |end: &u32| {
                    let event = &bytes[start..*end as usize];
                    start = *end as usize;
                    Part::Content(String::from_utf8_lossy(event).into_owned())
                };
                Parts {
                    parts: ends.iter().map(text).collect(),
                    ends: (1..=events as u32).collect(),
                }
            }
        })
    }
}

#[inline(never)]
fn misread(bytes: usize) -> ! {
    panic!("{bytes} bytes were misread");
}

#[expect(clippy::empty_loop, reason = "being endless is its purpose")]
fn endless() -> ! {
    loop {}
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
