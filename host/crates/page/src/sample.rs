//! Selection of the requests on a page: all of a small run, the most informative ones of a large
//! run.

use std::collections::{BTreeMap, BinaryHeap, HashMap};

use veeksha_definitions::Observation;
use veeksha_events::{Event, RequestRecord};
use veeksha_model::{MetricSample, RequestId, SessionId};
use veeksha_stats::split_mix64;

use crate::request::{NodeNeverSent, PageRequest, PageSession, PageToolRun, RequestList};

/// The default number of bytes for chunk times: 4 MiB of the file.
const CHUNK_BYTES: usize = 3 << 20;

/// The number of requests never sent that are kept as nodes of their sessions' graphs.
const NEVER_SENT: usize = 5_000;

/// The number of custom metrics that are kept for each request.
const CUSTOM_METRICS: usize = 64;

/// Processes the events of a run, in any order, and keeps the requests of the page in bounded
/// memory.
///
/// Up to `limit` requests are all kept. Of more, these are kept: the slowest to the first chunk and
/// the slowest overall (a twentieth of the limit each), failed ones (up to a fifth), and of the
/// others those with the smallest hashes. The hash is ordered by session first and by node second,
/// so that whole sessions are kept and their graphs have no holes. It depends on the id alone, so
/// that neither the order of events nor the threads of the run affect the selection.
///
/// Chunk times are kept up to a number of bytes: of the slow and the failed requests first, then by
/// the same hash.
#[derive(Clone, Debug)]
pub struct RequestSample {
    limit: usize,
    chunk_bytes: usize,
    held_chunk_bytes: usize,
    total: u64,
    kept: HashMap<RequestId, KeptRequest>,
    lots: [RequestLot; 4],
    early: BTreeMap<(Hash, RequestId), PluginResults>,
    metrics: Vec<String>,
    sessions: BTreeMap<(u64, u64), PageSession>,
    never_sent: BTreeMap<(Hash, RequestId), NodeNeverSent>,
    tool_runs: BTreeMap<(Hash, RequestId), PageToolRun>,
}

/// The sampling key of a request: the session's hash, then the node's.
type Hash = (u64, u64);

#[derive(Clone, Debug)]
struct KeptRequest {
    request: PageRequest,
    results: PluginResults,
    /// The lots that hold the request, one bit each.
    claims: u8,
}

/// Plugins' results for a request.
#[derive(Clone, Debug, Default)]
struct PluginResults {
    good: Option<bool>,
    /// Metric, sum of weight × value, sum of weights.
    custom: Vec<(u32, f64, f64)>,
}

/// A bounded set of the requests with the smallest keys.
#[derive(Clone, Debug)]
struct RequestLot {
    room: usize,
    /// A max-heap: the largest key is evicted next.
    heap: BinaryHeap<(u64, Hash, RequestId)>,
}

impl RequestLot {
    fn new(room: usize) -> RequestLot {
        RequestLot {
            room,
            heap: BinaryHeap::new(),
        }
    }

    fn wants(&self, key: &(u64, Hash, RequestId)) -> bool {
        self.heap.len() < self.room || self.heap.peek().is_some_and(|greatest| key < greatest)
    }

    /// Adds the request and returns the evicted one, if any.
    fn take(&mut self, key: (u64, Hash, RequestId)) -> Option<RequestId> {
        self.heap.push(key);
        if self.heap.len() <= self.room {
            return None;
        }
        self.heap.pop().map(|(_, _, id)| id)
    }
}

/// The bit of [`KeptRequest::claims`] for the first lot, that of the smallest hashes. The others:
/// slow to the first chunk, slow overall, failed.
const BY_HASH: u8 = 1;

impl RequestSample {
    /// Creates a sample of at most `limit` requests. The page remains responsive with 20,000.
    pub fn new(limit: usize) -> RequestSample {
        RequestSample {
            limit,
            chunk_bytes: CHUNK_BYTES,
            held_chunk_bytes: 0,
            total: 0,
            kept: HashMap::new(),
            lots: [
                RequestLot::new(limit),
                RequestLot::new(limit.div_ceil(20)),
                RequestLot::new(limit.div_ceil(20)),
                RequestLot::new(limit.div_ceil(5)),
            ],
            early: BTreeMap::new(),
            metrics: Vec::new(),
            sessions: BTreeMap::new(),
            never_sent: BTreeMap::new(),
            tool_runs: BTreeMap::new(),
        }
    }

    /// Sets the bound on the bytes of chunk times. A gap of up to 2 s takes at most three bytes.
    pub fn with_chunk_bytes(self, chunk_bytes: usize) -> RequestSample {
        RequestSample { chunk_bytes, ..self }
    }

    /// Processes an event.
    pub fn on(&mut self, event: &Event) {
        match event {
            Event::Finished(record) => self.finished(record),
            Event::Judged { request, good, .. } => self.with_results(*request, |results| {
                results.good = Some(results.good.unwrap_or(true) && *good);
            }),
            Event::Sampled(sample) => self.sampled(sample),
            Event::SessionStarted {
                session,
                at,
                requests,
            } => {
                let at = *at;
                self.session(*session, *requests, |session| session.started = Some(at));
            }
            Event::SessionFinished {
                session,
                at,
                end,
                requests,
            } => {
                let (at, end) = (*at, *end);
                self.session(*session, *requests, |session| {
                    (session.finished, session.end) = (Some(at), Some(end));
                });
            }
            Event::NeverSent { request, reason, at } => {
                let node = NodeNeverSent {
                    id: *request,
                    reason: *reason,
                    at: *at,
                };
                put(&mut self.never_sent, (hash(*request), *request), node, NEVER_SENT);
            }
            Event::ToolRan(record) => {
                self.session(record.id.session, 0, |session| session.tool_runs += 1);
                let key = (hash(record.id), record.id);
                put(&mut self.tool_runs, key, PageToolRun::of(record), self.limit);
            }
            Event::RunStarted(_)
            | Event::ToolDropped(_)
            | Event::SessionPlanned { .. }
            | Event::PluginCalled(_)
            | Event::Dispatched { .. }
            | Event::MetricDefined(_)
            | Event::Starved { .. }
            | Event::ThreadSampled(_)
            | Event::ClockStepped { .. }
            | Event::ArrivalsMissed { .. }
            | Event::TimeoutReached { .. }
            | Event::Interrupted { .. }
            | Event::RunJudged { .. }
            | Event::PluginFailed(_)
            | Event::RunEnded { .. } => {}
        }
    }

    /// Returns the requests of the page so far.
    pub fn snapshot(&self) -> RequestList {
        self.snapshot_of(self.limit)
    }

    /// Returns at most `most` requests so far, for a page that is updated repeatedly during the
    /// run.
    pub fn snapshot_of(&self, most: usize) -> RequestList {
        let mut chosen: Vec<&KeptRequest> = self.kept.values().collect();
        let most = most.min(self.limit);
        if chosen.len() > most {
            // Slow and failed requests have precedence: the same number of others is dropped.
            chosen.sort_unstable_by_key(|kept| kept.rank());
            chosen.truncate(most);
        }
        chosen.sort_unstable_by_key(|kept| (kept.request.intended, kept.request.id));
        let rows: Vec<PageRequest> = chosen.into_iter().map(KeptRequest::row).collect();
        let shown: std::collections::HashSet<u64> = rows.iter().map(|row| row.id.session.0).collect();
        let of_shown = |session: u64| shown.contains(&session);
        let runs_of_shown = self.tool_runs.values().filter(|run| of_shown(run.id.session.0));
        let mut tool_runs: Vec<PageToolRun> = runs_of_shown.cloned().collect();
        tool_runs.sort_unstable_by_key(|run| run.id);
        RequestList {
            tool_runs,
            total: self.total,
            sessions: self
                .sessions
                .values()
                .filter(|session| of_shown(session.session))
                .copied()
                .collect(),
            never_sent: self
                .never_sent
                .values()
                .filter(|node| of_shown(node.id.session.0))
                .copied()
                .collect(),
            custom_metrics: self.metrics.clone(),
            rows,
        }
    }

    /// Returns the requests of the page.
    pub fn finish(self) -> RequestList {
        self.snapshot()
    }

    fn finished(&mut self, record: &RequestRecord) {
        self.total += 1;
        let (id, place) = (record.id, hash(record.id));
        let early = self.early.remove(&(place, id));
        let observed = Observation::of(record);
        let slowness =
            |since: Option<u64>| since.map(|at| u64::MAX - at.saturating_sub(record.dispatched_at));
        let scores = [
            Some(0),
            slowness(observed.first.get()),
            slowness(observed.last.get().filter(|_| record.is_ok())),
            record.is_failed().then_some(0),
        ];
        let mut claims = 0;
        let mut gone = Vec::new();
        for (bit, (lot, score)) in self.lots.iter_mut().zip(scores).enumerate() {
            let Some(key) = score.map(|score| (score, place, id)) else {
                continue;
            };
            if lot.wants(&key) {
                claims |= 1 << bit;
                gone.extend(lot.take(key).map(|id| (id, bit)));
            }
        }
        if claims != 0 {
            let kept = KeptRequest {
                request: PageRequest::of(record),
                results: early.unwrap_or_default(),
                claims,
            };
            self.held_chunk_bytes += kept.chunk_bytes();
            if let Some(twice) = self.kept.insert(id, kept) {
                self.held_chunk_bytes -= twice.chunk_bytes();
            }
        }
        for (id, bit) in gone {
            self.release(id, bit);
        }
        if self.held_chunk_bytes > 2 * self.chunk_bytes {
            self.shed_chunks();
        }
    }

    /// Removes one lot's claim on a request, and drops the request if no other lot holds it.
    fn release(&mut self, id: RequestId, bit: usize) {
        let Some(kept) = self.kept.get_mut(&id) else {
            return;
        };
        kept.claims &= !(1 << bit);
        if kept.claims == 0 {
            self.held_chunk_bytes -= kept.chunk_bytes();
            self.kept.remove(&id);
        }
    }

    /// Drops the chunk times of the least interesting requests until the others fit.
    fn shed_chunks(&mut self) {
        let mut order: Vec<(Rank, RequestId)> = self
            .kept
            .values()
            .map(|kept| (kept.rank(), kept.request.id))
            .collect();
        order.sort_unstable();
        let mut bytes = 0;
        for (_, id) in order {
            let Some(kept) = self.kept.get_mut(&id) else {
                continue;
            };
            if bytes + kept.chunk_bytes() > self.chunk_bytes {
                kept.request.chunks = None;
            }
            bytes += kept.chunk_bytes();
        }
        self.held_chunk_bytes = bytes;
    }

    fn sampled(&mut self, sample: &MetricSample) {
        let Some(request) = sample.request else {
            return;
        };
        let known = self.metrics.iter().position(|name| *name == sample.metric);
        let metric = match known {
            Some(metric) => metric,
            None if self.metrics.len() < CUSTOM_METRICS => {
                self.metrics.push(sample.metric.clone());
                self.metrics.len() - 1
            }
            None => return,
        };
        let metric = metric as u32;
        let (value, weight) = (sample.value, sample.weight);
        self.with_results(request, |results| {
            match results.custom.iter_mut().find(|(known, _, _)| *known == metric) {
                Some((_, sum, weights)) => (*sum, *weights) = (*sum + weight * value, *weights + weight),
                None => results.custom.push((metric, weight * value, weight)),
            }
        });
    }

    /// Records a plugin's result for a request, also before the request itself arrives. Results of
    /// early requests are kept for the smallest hashes, up to the size of the sample, so that the
    /// sample by hash is always complete.
    fn with_results(&mut self, id: RequestId, change: impl FnOnce(&mut PluginResults)) {
        if let Some(kept) = self.kept.get_mut(&id) {
            return change(&mut kept.results);
        }
        let key = (hash(id), id);
        change(self.early.entry(key).or_default());
        if self.early.len() > self.limit.max(1) {
            self.early.pop_last();
        }
    }

    fn session(&mut self, session: SessionId, requests: u32, change: impl FnOnce(&mut PageSession)) {
        let key = (split_mix64(session.0), session.0);
        let mut entry = self.sessions.get(&key).copied().unwrap_or(PageSession {
            session: session.0,
            started: None,
            finished: None,
            end: None,
            requests: 0,
            tool_runs: 0,
        });
        entry.requests = entry.requests.max(requests);
        change(&mut entry);
        put(&mut self.sessions, key, entry, self.limit);
    }
}

/// Less interesting requests have larger ranks.
type Rank = (bool, Hash);

impl KeptRequest {
    fn rank(&self) -> Rank {
        let special = self.claims & !BY_HASH != 0;
        (!special, hash(self.request.id))
    }

    fn chunk_bytes(&self) -> usize {
        self.request
            .chunks
            .as_ref()
            .map_or(0, crate::chunk_times::ChunkTimes::bytes)
    }

    /// Returns the request with the plugins' results. A request that is not measured has no samples
    /// of plugin metrics, as it has none of built-in ones.
    fn row(&self) -> PageRequest {
        let custom = self.results.custom.iter().filter(|_| self.request.measured);
        PageRequest {
            good: self.results.good,
            custom: custom
                .map(|&(metric, sum, weights)| (metric, sum / weights))
                .collect(),
            ..self.request.clone()
        }
    }
}

/// Inserts a value into a map that holds at most `room` entries, those with the smallest keys.
fn put<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, value: V, room: usize) {
    map.insert(key, value);
    if map.len() > room {
        map.pop_last();
    }
}

fn hash(id: RequestId) -> Hash {
    (split_mix64(id.session.0), split_mix64(u64::from(id.node.0)))
}
