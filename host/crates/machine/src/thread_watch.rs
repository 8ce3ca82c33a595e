//! Load of the threads of a run, and the time that they waited for a core.

use std::collections::HashMap;
use std::path::Path;

use veeksha_model::Nanos;

use crate::tree::Tree;

/// Activity of a thread between two samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadActivity {
    /// Name of the thread, for example `client-0`.
    pub thread: String,
    /// Time of the sample.
    pub at: Nanos,
    /// Nanoseconds since the previous sample.
    pub span: Nanos,
    /// Nanoseconds on a core.
    pub busy: Nanos,
    /// Nanoseconds in which the thread was runnable and had no core.
    pub waiting: Nanos,
}

/// A sampler of the threads of this process whose names have certain prefixes.
///
/// The kernel counts with its scheduler clock, whose nanoseconds may differ slightly from those of
/// the run's clock: over short spans `busy` may exceed `span` by a little. The activity of a thread
/// between the last sample and its end is lost.
#[derive(Debug)]
pub struct ThreadWatch {
    tree: Tree,
    prefixes: Vec<String>,
    looked_at: Nanos,
    seen: HashMap<u64, Seen>,
}

/// The previous counters of a thread; they are cumulative.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    name: String,
    busy: Nanos,
    waiting: Nanos,
}

impl ThreadWatch {
    /// Starts to watch the threads of this process whose names begin with one of `prefixes`. Kernel
    /// names have at most 15 bytes.
    pub fn new(prefixes: &[&str], now: Nanos) -> Self {
        ThreadWatch::under(Path::new("/"), prefixes, now)
    }

    /// Starts to watch like [`ThreadWatch::new`], with a `/proc` below `root`.
    pub fn under(root: &Path, prefixes: &[&str], now: Nanos) -> Self {
        let mut watch = ThreadWatch {
            tree: Tree::under(root),
            prefixes: prefixes.iter().map(|&prefix| prefix.to_owned()).collect(),
            looked_at: now,
            seen: HashMap::new(),
        };
        watch.seen = watch.look();
        watch
    }

    /// Returns the activity of each thread since the last sample, in the order of their names. A
    /// thread that is new since then is reported from its beginning, with the time since the last
    /// sample as its span. Returns nothing on a kernel that does not count (`CONFIG_SCHED_INFO`
    /// off: there is no `schedstat`).
    pub fn sample(&mut self, now: Nanos) -> Vec<ThreadActivity> {
        let current = self.look();
        let span = now.saturating_sub(self.looked_at);
        let mut samples: Vec<ThreadActivity> = current
            .iter()
            .map(|(id, thread)| {
                let before = self.seen.get(id).filter(|before| {
                    // An id may be reused for another thread after the first one has ended.
                    before.name == thread.name
                        && before.busy <= thread.busy
                        && before.waiting <= thread.waiting
                });
                let (busy, waiting) = before.map_or((0, 0), |before| (before.busy, before.waiting));
                ThreadActivity {
                    thread: thread.name.clone(),
                    at: now,
                    span,
                    busy: thread.busy - busy,
                    waiting: thread.waiting - waiting,
                }
            })
            .collect();
        samples.sort_unstable_by(|a, b| a.thread.cmp(&b.thread));
        self.seen = current;
        self.looked_at = now;
        samples
    }

    fn look(&self) -> HashMap<u64, Seen> {
        let mut found = HashMap::new();
        for name in self.tree.names("/proc/self/task") {
            let Ok(id) = name.parse() else { continue };
            // A thread may end between the listing and the reading.
            if let Some(thread) = self.thread(&name) {
                found.insert(id, thread);
            }
        }
        found
    }

    fn thread(&self, id: &str) -> Option<Seen> {
        let name = self.tree.text(&format!("/proc/self/task/{id}/comm"))?;
        let name = name.trim_end_matches('\n');
        if !self
            .prefixes
            .iter()
            .any(|prefix| name.starts_with(prefix.as_str()))
        {
            return None;
        }
        let counters = self.tree.text(&format!("/proc/self/task/{id}/schedstat"))?;
        let mut counters = counters.split_whitespace().map(str::parse);
        Some(Seen {
            name: name.to_owned(),
            busy: counters.next()?.ok()?,
            waiting: counters.next()?.ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use veeksha_clock::RunClock;

    use super::*;
    use crate::tree::tests::tree;

    fn write(root: &Path, id: u32, comm: &str, schedstat: &str) {
        let folder = root.join(format!("proc/self/task/{id}"));
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("comm"), comm).expect("a name");
        std::fs::write(folder.join("schedstat"), schedstat).expect("counters");
    }

    #[test]
    fn differences_of_the_threads_that_are_watched() {
        let (folder, _tree) = tree(&[]);
        let root = folder.path();
        write(root, 10, "veeksha-host\n", "5 5 5\n");
        write(root, 11, "client-0\n", "1000 200 7\n");
        let mut watch = ThreadWatch::under(root, &["client-", "dispatcher-"], 50);
        write(root, 11, "client-0\n", "1600 250 9\n");
        write(root, 12, "dispatcher-0\n", "30 4 1\n");
        let expected = [("client-0", 600, 50), ("dispatcher-0", 30, 4)];
        let samples = watch.sample(1_050);
        assert_eq!(samples.len(), 2);
        for (sample, (thread, busy, waiting)) in samples.iter().zip(expected) {
            assert_eq!(
                *sample,
                ThreadActivity {
                    thread: thread.into(),
                    at: 1_050,
                    span: 1_000,
                    busy,
                    waiting
                }
            );
        }
        // One thread has ended, and another thread reuses its id.
        std::fs::remove_dir_all(root.join("proc/self/task/11")).expect("an end");
        write(root, 12, "client-1\n", "40 1 1\n");
        let samples = watch.sample(2_000);
        assert_eq!(samples.len(), 1);
        assert_eq!(
            (samples[0].thread.as_str(), samples[0].busy, samples[0].span),
            ("client-1", 40, 950)
        );
    }

    #[test]
    fn threads_without_counters_are_left_out() {
        let (folder, _tree) = tree(&[]);
        for (id, text) in [(1, ""), (2, "x y z"), (3, "7"), (4, "-1 2 3")] {
            write(folder.path(), id, "client-0", text);
        }
        assert!(
            ThreadWatch::under(folder.path(), &["client-"], 0)
                .sample(1)
                .is_empty()
        );
    }

    #[test]
    fn a_thread_that_spins_is_busy_and_one_that_sleeps_is_not() {
        let clock = RunClock::starting_now();
        let (ready, begun) = channel();
        let (stop, stopped) = channel::<()>();
        let sleeper = std::thread::Builder::new()
            .name("watched-b".into())
            .spawn(move || {
                ready.send(()).expect("the test");
                let _ = stopped.recv();
            })
            .expect("a thread");
        begun.recv().expect("the thread");
        let mut watch = ThreadWatch::new(&["watched-"], clock.now());
        let (ready, begun) = channel();
        let (quit, quitting) = channel::<()>();
        let spinner = std::thread::Builder::new()
            .name("watched-a".into())
            .spawn(move || {
                // Runs until the thread itself has had 50 ms of a core, however loaded the machine
                // is.
                while rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime).tv_nsec < 50_000_000 {
                }
                ready.send(()).expect("the test");
                let _ = quitting.recv();
            })
            .expect("a thread");
        begun.recv().expect("the thread");
        let samples = watch.sample(clock.now());
        drop((stop, quit));
        sleeper.join().expect("the sleeper");
        spinner.join().expect("the spinner");
        let names: Vec<&str> = samples.iter().map(|sample| sample.thread.as_str()).collect();
        assert_eq!(names, ["watched-a", "watched-b"]);
        // A running thread is counted up to its last clock tick, which is at most 10 ms ago.
        assert!(samples[0].busy >= 40_000_000, "{samples:?}");
        assert!(samples[1].busy < 20_000_000, "{samples:?}");
    }
}
