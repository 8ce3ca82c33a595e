//! The template of a request.

use serde_json::{Map, Value, json};
use veeksha_plugin::codec::{Endpoint, EndpointCodec, Parts};
use veeksha_plugin::{Error, Plugin};

use crate::answer;
use crate::config::{Api, Config, Think};

/// An open codec.
pub struct Ollama {
    config: Config,
}

impl Plugin for Ollama {
    type Config = Config;
    const NAME: &'static str = "ollama";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str = "Ollama's own API: /api/chat and /api/generate";

    fn config_schema() -> String {
        include_str!("../schema.json").into()
    }
}

impl EndpointCodec for Ollama {
    fn open(config: Config) -> Result<Self, Error> {
        if config.options.contains_key("num_predict") {
            return Err(Error::config(
                "/options/num_predict",
                "the length of an answer is set by each request",
            )
            .hint("set the output length of the session generator"));
        }
        if config.raw && config.api == Api::Chat {
            return Err(
                Error::config("/raw", "`chat` has messages, which cannot be sent raw")
                    .hint("set `api` to `generate`"),
            );
        }
        Ok(Ollama { config })
    }

    fn endpoint(&self) -> Endpoint {
        let Config {
            api,
            keep_alive,
            think,
            raw,
            options,
        } = &self.config;
        let mut options = options.clone();
        options.insert("num_predict".into(), "{{max_tokens}}".into());
        let mut request = Map::new();
        let mut set = |name: &str, value: Value| request.insert(name.into(), value);
        set("model", "{{model}}".into());
        set("stream", true.into());
        set("options", options.into());
        if let Some(keep_alive) = keep_alive {
            set("keep_alive", keep_alive.as_str().into());
        }
        if let Some(think) = think {
            set("think", self::think(*think));
        }
        let path = match api {
            Api::Chat => {
                set("messages", "{{messages}}".into());
                "api/chat"
            }
            Api::Generate => {
                set("prompt", "{{prompt}}".into());
                if *raw {
                    set("raw", true.into());
                }
                "api/generate"
            }
        };
        Endpoint::lines(path, Value::Object(request).to_string())
    }

    fn decode(&self, event: &[u8], parts: &mut Parts) -> Result<(), Error> {
        answer::decode(event, parts)
    }
}

fn think(think: Think) -> Value {
    match think {
        Think::Off => json!(false),
        Think::On => json!(true),
        Think::Low => json!("low"),
        Think::Medium => json!("medium"),
        Think::High => json!("high"),
    }
}

#[cfg(test)]
mod tests {
    use veeksha_plugin::codec::Framing;

    use super::*;

    fn open(config: &str) -> Result<Ollama, Error> {
        Ollama::open(veeksha_plugin::config::from_json(config)?)
    }

    fn request(config: &str) -> (String, Value) {
        let endpoint = open(config).unwrap().endpoint();
        assert_eq!(endpoint.framing, Framing::Lines);
        (endpoint.path, serde_json::from_str(&endpoint.request).unwrap())
    }

    #[test]
    fn a_chat_asks_for_messages() {
        assert_eq!(
            request("{}"),
            (
                "api/chat".into(),
                json!({
                    "model": "{{model}}",
                    "messages": "{{messages}}",
                    "stream": true,
                    "options": {"num_predict": "{{max_tokens}}"},
                })
            )
        );
    }

    #[test]
    fn every_key_has_its_place() {
        let config = r#"{"api": "generate", "keep_alive": "-1s", "think": "low", "raw": true,
            "options": {"temperature": 0.5, "stop": ["\n"]}}"#;
        assert_eq!(
            request(config),
            (
                "api/generate".into(),
                json!({
                    "model": "{{model}}",
                    "prompt": "{{prompt}}",
                    "stream": true,
                    "raw": true,
                    "keep_alive": "-1s",
                    "think": "low",
                    "options": {"temperature": 0.5, "stop": ["\n"], "num_predict": "{{max_tokens}}"},
                })
            )
        );
        for (word, value) in [
            ("off", json!(false)),
            ("on", json!(true)),
            ("medium", json!("medium")),
            ("high", json!("high")),
        ] {
            let (_, request) = request(&format!("{{\"think\": \"{word}\"}}"));
            assert_eq!(request["think"], value);
        }
    }

    #[test]
    fn refuses_invalid_values_with_their_place() {
        let place = |config: &str| open(config).err().unwrap().path.unwrap();
        assert_eq!(
            place(r#"{"options": {"num_predict": 5}}"#),
            "/options/num_predict"
        );
        assert_eq!(place(r#"{"raw": true}"#), "/raw");
        assert_eq!(place(r#"{"api": "embed"}"#), "/api");
        assert_eq!(place(r#"{"keepalive": "5m"}"#), "/keepalive");
    }
}
