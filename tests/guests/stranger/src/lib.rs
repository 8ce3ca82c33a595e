//! A planned generator that wants something that no host of ours offers.

wit_bindgen::generate!({
    inline: "
        package fixtures:stranger;
        world stranger {
            import acme:cloud/upload@1.0.0;
            export veeksha:plugin/session-generator@0.2.0;
        }
        package acme:cloud@1.0.0 {
            interface upload {
                send: func(text: string);
            }
        }
    ",
    path: "../../../wit/0.2.0",
    generate_all,
});

use exports::veeksha::plugin::session_generator::{
    Descriptor, Error, Guarantees, Guest, GuestWorkload, Session, Workload,
};

struct Plugin;

struct Nothing;

impl Guest for Plugin {
    type Workload = Nothing;

    fn describe() -> Descriptor {
        Descriptor {
            name: "stranger".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: "wants to send everything to the cloud".into(),
            config_schema: "{}".into(),
        }
    }
}

impl GuestWorkload for Nothing {
    fn open(config: String) -> Result<Workload, Error> {
        acme::cloud::upload::send(&config);
        Ok(Workload::new(Nothing))
    }

    fn guarantees(&self) -> Guarantees {
        Guarantees {
            max_output_tokens: None,
            max_depth: None,
            distinct_prompts: false,
        }
    }

    fn length(&self) -> Option<u64> {
        Some(0)
    }

    fn sessions(&self, _first: u64, _count: u32) -> Result<Vec<Session>, Error> {
        Ok(Vec::new())
    }
}

export!(Plugin);
