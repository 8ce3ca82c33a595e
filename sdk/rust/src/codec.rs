//! Plugins that add the API of an endpoint.
//!
//! A codec states once what a request looks like ([`Endpoint`]), and turns each event of an answer
//! into [`Parts`]. The host does the rest: it fills the request in, sends it, notes when each
//! byte arrived and cuts the answer into events; a codec is shown their bytes afterwards. Here, a
//! server that answers with lines of JSON:
//!
//! ```
//! use veeksha_plugin::codec::{self, Endpoint, EndpointCodec, Part, Parts};
//! use veeksha_plugin::{Error, Plugin};
//!
//! struct Parrot;
//!
//! #[derive(serde::Deserialize)]
//! struct Line {
//!     #[serde(default)]
//!     word: String,
//!     #[serde(default)]
//!     last: bool,
//! }
//!
//! impl Plugin for Parrot {
//!     type Config = ();
//!     const NAME: &'static str = "parrot";
//!     const VERSION: &'static str = "0.1.0";
//!     const SUMMARY: &'static str = "a server that sends words, one a line";
//! }
//!
//! impl EndpointCodec for Parrot {
//!     fn open(_config: ()) -> Result<Self, Error> {
//!         Ok(Parrot)
//!     }
//!
//!     fn endpoint(&self) -> Endpoint {
//!         Endpoint::lines("speak", r#"{"text": "{{prompt}}", "words": "{{max_tokens}}"}"#)
//!     }
//!
//!     fn decode(&self, event: &[u8], parts: &mut Parts) -> Result<(), Error> {
//!         let line: Line = codec::json(event)?;
//!         if !line.word.is_empty() {
//!             parts.content(line.word);
//!         }
//!         if line.last {
//!             parts.finish("stop");
//!         }
//!         Ok(())
//!     }
//! }
//!
//! veeksha_plugin::export_endpoint_codec!(Parrot);
//!
//! // The logic runs natively, so an ordinary test can check it:
//! let events = [br#"{"word": "hello"}"#.as_slice(), br#"{"word": "!", "last": true}"#];
//! let said = codec::decode(&Parrot, &events)?;
//! assert_eq!(said[0], [Part::Content("hello".into())]);
//! assert_eq!(said[1], [Part::Content("!".into()), Part::Finish("stop".into())]);
//! # Ok::<(), Error>(())
//! ```

use std::marker::PhantomData;

use serde::Deserialize;

use crate::bindings::endpoint_codec::exports::veeksha::plugin::endpoint_codec as contract;
use crate::frame;
use crate::plugin::Plugin;
use crate::types::{Error, TokenProbabilities, Usage};

pub use contract::{Endpoint, Framing, Part, Refusal, ToolPiece};

/// Knows the API of an endpoint.
///
/// The result of [`decode`](Self::decode) must depend on (configuration, event) and nothing else,
/// not on the events before: the host asks several instances, with a part of an answer each, and
/// may ask twice.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an endpoint codec",
    label = "does not implement `EndpointCodec`",
    note = "write `impl EndpointCodec for {Self} {{ .. }}`; the documentation of `EndpointCodec` has a whole one"
)]
pub trait EndpointCodec: Plugin {
    /// Opens the codec.
    ///
    /// # Errors
    /// A configuration that cannot be; say where with [`Error::config`].
    fn open(config: Self::Config) -> Result<Self, Error>;

    /// Returns the requests and framing of the endpoint.
    fn endpoint(&self) -> Endpoint;

    /// Adds the parts of an event to `parts`: none, one or several.
    ///
    /// # Errors
    /// An event that the codec does not understand; the request then counts as failed. What the
    /// server reports of its failure is not an error but a part: [`Parts::error`].
    fn decode(&self, event: &[u8], parts: &mut Parts) -> Result<(), Error>;
}

/// The parts of events, in order.
#[derive(Default)]
pub struct Parts(Vec<Part>);

impl Parts {
    /// Any part.
    pub fn push(&mut self, part: Part) {
        self.0.push(part);
    }

    /// Nothing was generated: the role, an empty delta, an opening frame.
    pub fn role(&mut self) {
        self.push(Part::Role);
    }

    /// Reasoning text.
    pub fn reasoning(&mut self, text: impl Into<String>) {
        self.push(Part::Reasoning(text.into()));
    }

    /// Visible text.
    pub fn content(&mut self, text: impl Into<String>) {
        self.push(Part::Content(text.into()));
    }

    /// A piece of the function call `index`, from 0. Its id and its name stand in one piece; in the
    /// others they are empty.
    pub fn tool(
        &mut self,
        index: u32,
        id: impl Into<String>,
        name: impl Into<String>,
        arguments: impl Into<String>,
    ) {
        self.push(Part::Tool(ToolPiece {
            index,
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
        }));
    }

    /// Generation ended, with the server's word for why.
    pub fn finish(&mut self, word: impl Into<String>) {
        self.push(Part::Finish(word.into()));
    }

    /// Token counts; the last ones of an answer count.
    pub fn usage(&mut self, usage: Usage) {
        self.push(Part::Usage(usage));
    }

    /// The next piece of the server's proof that the reasoning is its own, which later turns send
    /// back.
    pub fn signature(&mut self, piece: impl Into<String>) {
        self.push(Part::Signature(piece.into()));
    }

    /// Log-probabilities of the next tokens of the answer.
    pub fn log_probabilities(&mut self, tokens: TokenProbabilities) {
        self.push(Part::LogProbabilities(tokens));
    }

    /// The id that the server gave the answer; the first one counts.
    pub fn response_id(&mut self, id: impl Into<String>) {
        self.push(Part::ResponseId(id.into()));
    }

    /// The end marker: what follows does not count.
    pub fn done(&mut self) {
        self.push(Part::Done);
    }

    /// A keep-alive.
    pub fn comment(&mut self) {
        self.push(Part::Comment);
    }

    /// The request failed, in the server's words and with its code where it is a number.
    pub fn error(&mut self, message: impl Into<String>, code: Option<u16>) {
        self.push(Part::Error(Refusal {
            message: message.into(),
            code,
        }));
    }
}

impl Endpoint {
    /// An endpoint at `path`, appended to the target's address, whose answers are server-sent
    /// events. `request` is the text of a JSON object with placeholders such as `{{messages}}`.
    pub fn event_stream(path: impl Into<String>, request: impl Into<String>) -> Self {
        Endpoint {
            path: path.into(),
            headers: Vec::new(),
            request: request.into(),
            framing: Framing::EventStream,
        }
    }

    /// As [`event_stream`](Self::event_stream), with an event on each line of the answer.
    pub fn lines(path: impl Into<String>, request: impl Into<String>) -> Self {
        Endpoint {
            framing: Framing::Lines,
            ..Endpoint::event_stream(path, request)
        }
    }

    /// As [`event_stream`](Self::event_stream), with the whole answer as one event.
    pub fn whole(path: impl Into<String>, request: impl Into<String>) -> Self {
        Endpoint {
            framing: Framing::Whole,
            ..Endpoint::event_stream(path, request)
        }
    }

    /// Adds a header to every request.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }
}

/// Reads an event that is JSON. Texts may be borrowed from it as `Cow<str>` with
/// `#[serde(borrow)]`.
///
/// # Errors
/// Code `event`: it is not JSON, or does not fit `T`.
pub fn json<'a, T: Deserialize<'a>>(event: &'a [u8]) -> Result<T, Error> {
    serde_json::from_slice(event)
        .map_err(|error| Error::new("event", format!("the event does not fit: {error}")))
}

/// Returns the parts of each event, for tests: the host's calls have the same results.
///
/// # Errors
/// The first one that the codec gives.
pub fn decode<T: EndpointCodec>(codec: &T, events: &[&[u8]]) -> Result<Vec<Vec<Part>>, Error> {
    let one = |event: &&[u8]| {
        let mut parts = Parts::default();
        codec.decode(event, &mut parts)?;
        Ok(parts.0)
    };
    events.iter().map(one).collect()
}

/// A call of the host: events one after the other go in, parts one after the other come out.
fn batch<T: EndpointCodec>(codec: &T, bytes: &[u8], ends: &[u32]) -> Result<contract::Parts, Error> {
    // Nearly every event has one part.
    let mut parts = Parts(Vec::with_capacity(ends.len()));
    let mut counts = Vec::with_capacity(ends.len());
    let mut start = 0;
    for &end in ends {
        let end = end as usize;
        codec.decode(&bytes[start..end], &mut parts)?;
        start = end;
        counts.push(parts.0.len() as u32);
    }
    Ok(contract::Parts {
        parts: parts.0,
        ends: counts,
    })
}

/// A codec as the contract sees it.
pub struct Exported<T>(PhantomData<T>);

/// An open codec as the contract sees it.
pub struct Open<T>(T);

impl<T: EndpointCodec> contract::Guest for Exported<T> {
    type Codec = Open<T>;

    frame::describe!(T);
}

impl<T: EndpointCodec> contract::GuestCodec for Open<T> {
    fn open(config: String) -> Result<contract::Codec, Error> {
        Ok(contract::Codec::new(Open(frame::open(&config, T::open)?)))
    }

    fn endpoint(&self) -> Endpoint {
        self.0.endpoint()
    }

    fn decode(&self, bytes: Vec<u8>, ends: Vec<u32>) -> Result<contract::Parts, Error> {
        batch(&self.0, &bytes, &ends)
    }
}

/// Makes a type that is an [`EndpointCodec`](crate::codec::EndpointCodec) the endpoint codec of
/// this component.
///
/// The crate must be a `cdylib`. On other targets than WebAssembly nothing is exported, so that the
/// plugin's own tests run natively.
#[macro_export]
macro_rules! export_endpoint_codec {
    ($codec:ty) => {
        $crate::__export!(
            $codec,
            $crate::codec::EndpointCodec,
            ExportedCodec,
            endpoint_codec
        );
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives each event as many parts as it has bytes; an event of three is an error.
    struct Counting;

    impl Plugin for Counting {
        type Config = ();
        const NAME: &'static str = "counting";
        const VERSION: &'static str = "1";
        const SUMMARY: &'static str = "counts bytes";
    }

    impl EndpointCodec for Counting {
        fn open(_config: ()) -> Result<Self, Error> {
            Ok(Counting)
        }

        fn endpoint(&self) -> Endpoint {
            Endpoint::whole("count", "{}").header("x-a", "b")
        }

        fn decode(&self, event: &[u8], parts: &mut Parts) -> Result<(), Error> {
            if event.len() == 3 {
                return Err(Error::new("event", "three"));
            }
            for byte in event {
                parts.content(char::from(*byte));
            }
            Ok(())
        }
    }

    fn content(word: &str) -> Vec<Part> {
        word.chars().map(|char| Part::Content(char.into())).collect()
    }

    /// As the host calls it.
    #[test]
    fn a_batch_keeps_the_events_apart() {
        let parts =
            contract::GuestCodec::decode(&Open(Counting), b"ababcdx".to_vec(), vec![0, 2, 2, 6, 7]).unwrap();
        assert_eq!(parts.ends, [0, 2, 2, 6, 7]);
        assert_eq!(parts.parts, content("ababcdx"));
        let none = batch(&Counting, b"", &[]).unwrap();
        assert_eq!((none.parts.len(), none.ends.len()), (0, 0));
        let refused = batch(&Counting, b"abcde", &[2, 5]).unwrap_err();
        assert_eq!(refused.message, "three");
    }

    #[test]
    fn a_test_sees_what_the_host_sees() {
        assert_eq!(
            decode(&Counting, &[b"ab", b"", b"c"]),
            Ok(vec![content("ab"), vec![], content("c")])
        );
        assert_eq!(
            decode(&Counting, &[b"ab", b"abc"]),
            Err(Error::new("event", "three"))
        );
    }

    #[test]
    fn every_part_has_a_constructor() {
        let mut parts = Parts::default();
        let usage = Usage {
            prompt: 1,
            completion: 2,
            cached: None,
            reasoning: Some(1),
        };
        parts.role();
        parts.reasoning("why");
        parts.tool(1, "id", "f", "{");
        parts.finish("stop");
        parts.usage(usage);
        parts.signature("c2ln");
        let tokens = TokenProbabilities {
            logarithms: vec![-0.5],
            greedy: vec![true],
        };
        parts.log_probabilities(tokens.clone());
        parts.response_id("resp-1");
        parts.done();
        parts.comment();
        parts.error("busy", Some(503));
        let expected = [
            Part::Role,
            Part::Reasoning("why".into()),
            Part::Tool(ToolPiece {
                index: 1,
                id: "id".into(),
                name: "f".into(),
                arguments: "{".into(),
            }),
            Part::Finish("stop".into()),
            Part::Usage(usage),
            Part::Signature("c2ln".into()),
            Part::LogProbabilities(tokens),
            Part::ResponseId("resp-1".into()),
            Part::Done,
            Part::Comment,
            Part::Error(Refusal {
                message: "busy".into(),
                code: Some(503),
            }),
        ];
        assert_eq!(parts.0, expected);
    }

    #[test]
    fn an_endpoint_has_short_constructors() {
        let endpoint = Counting.endpoint();
        assert_eq!(
            (endpoint.framing, &endpoint.headers[..]),
            (Framing::Whole, &[("x-a".to_owned(), "b".to_owned())][..])
        );
        assert_eq!(Endpoint::lines("a", "{}").framing, Framing::Lines);
        assert_eq!(Endpoint::event_stream("a", "{}").framing, Framing::EventStream);
    }

    #[test]
    fn an_event_that_does_not_fit_is_an_error_with_the_reason() {
        assert_eq!(json::<u32>(b" 7 "), Ok(7));
        let refused = json::<u32>(b"\"x\"").unwrap_err();
        assert_eq!(refused.code, "event");
        assert!(
            refused
                .message
                .starts_with("the event does not fit: invalid type: string \"x\""),
            "{}",
            refused.message
        );
        assert!(json::<u32>(b"\xff").is_err());
    }
}
