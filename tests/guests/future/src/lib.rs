//! A planned generator for the contract's next version, which does not exist yet: `wit/` here is a
//! copy of an earlier state under another number.

wit_bindgen::generate!({
    inline: "
        package fixtures:next-version;
        world next-version {
            export veeksha:plugin/session-generator@0.3.0;
        }
    ",
    path: "wit",
    generate_all,
});

use exports::veeksha::plugin::session_generator::{
    Descriptor, Error, Guest, GuestWorkload, Session, Workload,
};

struct Plugin;

struct Nothing;

impl Guest for Plugin {
    type Workload = Nothing;

    fn describe() -> Descriptor {
        Descriptor {
            name: "future".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: "comes from the future".into(),
            config_schema: "{}".into(),
        }
    }
}

impl GuestWorkload for Nothing {
    fn open(_config: String) -> Result<Workload, Error> {
        Ok(Workload::new(Nothing))
    }

    fn length(&self) -> Option<u64> {
        Some(0)
    }

    fn sessions(&self, _first: u64, _count: u32) -> Result<Vec<Session>, Error> {
        Ok(Vec::new())
    }
}

export!(Plugin);
