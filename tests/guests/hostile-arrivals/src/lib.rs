//! An arrival process that misbehaves as its configuration states: `{"behaviour": "trap"}`. The
//! names are in [`GuestProcess::next`]; `good` behaves: an arrival every millisecond. A behaviour
//! whose name ends with `-at-99` begins with session 99.

wit_bindgen::generate!({
    inline: "
        package fixtures:hostile-arrivals;
        world hostile-arrivals {
            import veeksha:plugin/log@0.2.0;
            export veeksha:plugin/arrival-process@0.2.0;
        }
    ",
    path: "../../../wit/0.2.0",
    generate_all,
});

use std::cell::Cell;

use exports::veeksha::plugin::arrival_process::{Descriptor, Error, Guest, GuestProcess, Nanos, Process};
use veeksha::plugin::log;

struct Plugin;

struct Hostile {
    behaviour: String,
    /// The session from which on it misbehaves.
    from: u64,
    /// The session whose arrival is next.
    session: Cell<u64>,
}

impl Guest for Plugin {
    type Process = Hostile;

    fn describe() -> Descriptor {
        Descriptor {
            name: "hostile-arrivals".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: "misbehaves on demand".into(),
            config_schema: "{}".into(),
        }
    }
}

impl GuestProcess for Hostile {
    fn open(config: String) -> Result<Process, Error> {
        std::panic::set_hook(Box::new(|info| log::write(log::Level::Error, &info.to_string())));
        let name = config.rsplit('"').nth(1).unwrap_or("good");
        let (behaviour, from) = match name.strip_suffix("-at-99") {
            Some(behaviour) => (behaviour, 99),
            None => (name, 0),
        };
        if behaviour == "refuse" {
            return Err(error("`refuse` is not a behaviour"));
        }
        Ok(Process::new(Hostile {
            behaviour: behaviour.to_owned(),
            from,
            session: Cell::new(0),
        }))
    }

    fn next(&self, count: u32) -> Result<Vec<Nanos>, Error> {
        let first = self.session.get();
        let end = first + u64::from(count);
        self.session.set(end);
        let arrivals: Vec<Nanos> = (first..end).map(|session| session * 1_000_000).collect();
        if end <= self.from {
            return Ok(arrivals);
        }
        // What begins with session 0 would be its first arrival.
        let place = self.from.max(1).saturating_sub(first) as usize;
        let with = |at: Nanos| {
            let mut arrivals = arrivals.clone();
            if let Some(bad) = arrivals.get_mut(place) {
                *bad = at;
            }
            Ok(arrivals)
        };
        match self.behaviour.as_str() {
            "backwards" => Ok(arrivals.into_iter().rev().collect()),
            "negative" => with(u64::MAX),
            "beyond" => with(1 << 53),
            "trap" => arrive(first),
            "loop" => endless(),
            "too-many" => Ok([arrivals, vec![end * 1_000_000]].concat()),
            "empty" => Ok(Vec::new()),
            "error" => Err(error("no further arrivals")),
            "by-batch" => Ok(arrivals.iter().map(|at| at + u64::from(count)).collect()),
            _ => Ok(arrivals),
        }
    }
}

fn error(message: &str) -> Error {
    Error {
        code: "bad".into(),
        message: message.into(),
        hint: None,
        path: None,
    }
}

#[inline(never)]
fn arrive(session: u64) -> ! {
    panic!("session {session} never arrives");
}

#[expect(clippy::empty_loop, reason = "being endless is its purpose")]
fn endless() -> ! {
    loop {}
}

export!(Plugin);
