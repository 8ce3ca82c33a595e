//! Randomness without state: every number is a function of (the run's seed, session, stream,
//! position).

use std::borrow::Cow;
use std::fmt;
use std::rc::Rc;

/// The source of the words: the host, or a function in a native test.
#[derive(Clone)]
enum Source {
    Host,
    Function(Rc<WordFunction>),
}

/// Words `first .. first + count` of the sequence named by a session and a stream.
type WordFunction = dyn Fn(u64, &str, u32, u32) -> Vec<u32>;

/// The random streams of one session.
///
/// Streams have names, and different names are independent of one another: give each concern its
/// own (`"lengths"`, `"waits"`), and a change in how one is drawn leaves the others as they were.
///
/// ```
/// use veeksha_plugin::Random;
///
/// let random = Random::seeded(42, 7);
/// let mut lengths = random.stream("lengths");
/// let tokens = lengths.between(100, 200);
/// assert!((100..=200).contains(&tokens));
/// let again = random.stream("lengths").between(100, 200);
/// assert_eq!(tokens, again, "streams of the same name are equal");
/// ```
#[derive(Clone)]
pub struct Random {
    session: u64,
    /// The subagent that the streams belong to (`1.2`).
    subagent: Option<Rc<str>>,
    source: Source,
}

/// The session whose streams belong to the run as a whole: the largest number that every guest
/// language can carry. No workload has that many sessions.
const RUN: u64 = (1 << 53) - 1;

impl Random {
    /// The host's streams of a session. Outside the host there are none: use [`Random::seeded`] or
    /// [`Random::from_words`] in native tests.
    pub fn of_session(session: u64) -> Self {
        Random {
            session,
            subagent: None,
            source: Source::Host,
        }
    }

    /// Streams from a function of (session, stream, first, count) that returns `count` words, for
    /// native tests.
    pub fn from_words(session: u64, words: impl Fn(u64, &str, u32, u32) -> Vec<u32> + 'static) -> Self {
        Random {
            session,
            subagent: None,
            source: Source::Function(Rc::new(words)),
        }
    }

    /// Streams for native tests and examples: as good as the host's, but other numbers.
    #[cfg(not(target_family = "wasm"))]
    pub fn seeded(seed: u64, session: u64) -> Self {
        Random::from_words(session, move |session, stream, first, count| {
            let name = stream
                .bytes()
                .fold(mix(seed), |hash, byte| mix(hash ^ u64::from(byte)));
            let key = mix(name ^ mix(session));
            (0..count)
                .map(|i| mix(key ^ u64::from(first.wrapping_add(i))) as u32)
                .collect()
        })
    }

    /// The streams of a subagent of the session.
    pub(crate) fn of_subagent(&self, path: &str) -> Self {
        Random {
            subagent: Some(path.into()),
            ..self.clone()
        }
    }

    /// The session that the streams belong to.
    pub fn session(&self) -> u64 {
        self.session
    }

    /// A stream of this session, from its beginning.
    pub fn stream(&self, name: &'static str) -> Draws {
        let name = match &self.subagent {
            Some(subagent) => Cow::Owned(format!("{subagent}/{name}")),
            None => Cow::Borrowed(name),
        };
        self.draws(self.session, name)
    }

    fn draws(&self, session: u64, name: Cow<'static, str>) -> Draws {
        Draws {
            session,
            name,
            source: self.source.clone(),
            block: Vec::new(),
            used: 0,
            next: 0,
            size: FIRST_BLOCK,
        }
    }

    /// A stream of the whole run, the same in every session, from its beginning.
    pub fn shared_stream(&self, name: &'static str) -> Draws {
        self.draws(RUN, Cow::Borrowed(name))
    }
}

impl fmt::Debug for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Random")
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}

/// Words fetched by the first call to the host; each further call fetches twice as many, up to
/// [`LARGEST_BLOCK`]. A call costs as much as computing some ten words.
const FIRST_BLOCK: u32 = 8;
const LARGEST_BLOCK: u32 = 256;

/// Draws numbers from one stream, in order. The stream repeats after 2^32 words.
pub struct Draws {
    session: u64,
    name: Cow<'static, str>,
    source: Source,
    block: Vec<u32>,
    used: usize,
    next: u32,
    size: u32,
}

impl Draws {
    /// The next 32 bits.
    pub fn word(&mut self) -> u32 {
        if self.used == self.block.len() {
            self.fetch();
        }
        let word = self.block.get(self.used).copied().unwrap_or(0);
        self.used += 1;
        word
    }

    #[cold]
    fn fetch(&mut self) {
        self.block = match &self.source {
            Source::Host => host_words(self.session, &self.name, self.next, self.size),
            Source::Function(words) => words(self.session, &self.name, self.next, self.size),
        };
        assert_eq!(
            self.block.len(),
            self.size as usize,
            "random.words answered with another count"
        );
        self.used = 0;
        self.next = self.next.wrapping_add(self.size);
        self.size = (self.size * 2).min(LARGEST_BLOCK);
    }

    /// The next 64 bits; the first word is the upper half.
    pub fn long_word(&mut self) -> u64 {
        (u64::from(self.word()) << 32) | u64::from(self.word())
    }

    /// Uniform on `[0, 1)`, 53 bits.
    pub fn unit(&mut self) -> f64 {
        (self.long_word() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform on `(0, 1]`: what a logarithm can take.
    pub fn unit_open(&mut self) -> f64 {
        1.0 - self.unit()
    }

    /// Uniform on `0 .. bound`, without bias (Lemire's multiply and reject); 0 for a bound of 0.
    pub fn below(&mut self, bound: u32) -> u32 {
        if bound == 0 {
            return 0;
        }
        let threshold = bound.wrapping_neg() % bound;
        loop {
            let product = u64::from(self.word()) * u64::from(bound);
            if product as u32 >= threshold {
                return (product >> 32) as u32;
            }
        }
    }

    /// Uniform on `min ..= max`, both included. With `max` below `min`, `min`.
    pub fn between(&mut self, min: u32, max: u32) -> u32 {
        match max.saturating_sub(min).checked_add(1) {
            Some(width) => min + self.below(width),
            None => self.word(),
        }
    }

    /// True with a probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Exponential with mean 1: −ln U, not clipped.
    pub fn exponential(&mut self) -> f64 {
        -self.unit_open().ln()
    }

    /// Standard normal: √(−2 ln U₁) · cos(2π U₂) (Box and Muller; the second of the pair is not
    /// kept, so that a draw takes the same words whatever was drawn before).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.unit_open().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Gamma of a shape, with scale 1: mean and variance are the shape (Marsaglia and Tsang, 2000).
    /// Shapes below 1 are drawn as Gamma(shape + 1) · U^(1/shape).
    pub fn gamma(&mut self, shape: f64) -> f64 {
        if shape < 1.0 {
            let boost = self.unit_open().powf(1.0 / shape);
            return self.gamma(shape + 1.0) * boost;
        }
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let v = (1.0 + c * x).powi(3);
            if v > 0.0 && self.unit_open().ln() < 0.5 * x * x + d - d * v + d * v.ln() {
                return d * v;
            }
        }
    }
}

#[cfg(target_family = "wasm")]
fn host_words(session: u64, name: &str, first: u32, count: u32) -> Vec<u32> {
    crate::bindings::capabilities::veeksha::plugin::random::words(session, name, first, count)
}

#[cfg(not(target_family = "wasm"))]
#[expect(
    clippy::panic,
    reason = "a native test that reaches for the host has to be changed, not handled"
)]
fn host_words(_session: u64, name: &str, _first: u32, _count: u32) -> Vec<u32> {
    panic!(
        "the random stream `{name}` was drawn outside the host; give the test Random::seeded(seed, session)"
    )
}

/// The finaliser of SplitMix64: every bit of the input reaches every bit of the output.
#[cfg(not(target_family = "wasm"))]
fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words that are their own index, to see what is asked for.
    fn counting() -> Random {
        Random::from_words(3, |session, stream, first, count| {
            assert_eq!((session, stream), (3, "s"));
            (first..first + count).collect()
        })
    }

    #[test]
    fn words_come_in_order_across_blocks() {
        let mut draws = counting().stream("s");
        assert!((0..2000).all(|index| draws.word() == index));
    }

    #[test]
    fn a_long_word_begins_with_its_upper_half() {
        assert_eq!(counting().stream("s").long_word(), 1);
    }

    #[test]
    fn shared_streams_do_not_depend_on_the_session() {
        let shared = |session| Random::seeded(1, session).shared_stream("prefix").long_word();
        let own = |session| Random::seeded(1, session).stream("prefix").long_word();
        assert_eq!(shared(0), shared(99));
        assert_ne!(own(0), own(99));
        assert_ne!(own(0), shared(0));
    }

    #[test]
    fn draws_stay_in_the_range_and_reach_its_ends() {
        let mut draws = Random::seeded(5, 0).stream("range");
        let mut seen = [0; 7];
        for _ in 0..7000 {
            seen[draws.between(6, 12) as usize - 6] += 1;
        }
        // Binomial(7000, 1/7): standard deviation 29; five of them.
        assert!(
            seen.iter().all(|&count| (count - 1000i32).abs() < 147),
            "{seen:?}"
        );
        assert_eq!(draws.between(9, 9), 9);
        draws.between(0, u32::MAX);
    }

    fn moments(mut sample: impl FnMut() -> f64) -> (f64, f64) {
        let n = 200_000;
        let values: Vec<f64> = (0..n).map(|_| sample()).collect();
        let mean = values.iter().sum::<f64>() / n as f64;
        (
            mean,
            values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n as f64,
        )
    }

    fn near(value: f64, expected: f64, tolerance: f64) {
        assert!(
            (value - expected).abs() < tolerance,
            "{value} is not {expected} ± {tolerance}"
        );
    }

    /// Mean and variance by the formulas; tolerances are about five standard errors at 200,000
    /// draws.
    #[test]
    fn distributions_have_their_moments() {
        let mut draws = Random::seeded(3, 0).stream("moments");
        let (mean, variance) = moments(|| draws.unit());
        near(mean, 0.5, 0.0033);
        near(variance, 1.0 / 12.0, 0.001);
        let (mean, variance) = moments(|| draws.exponential());
        near(mean, 1.0, 0.012);
        near(variance, 1.0, 0.035);
        let (mean, variance) = moments(|| draws.normal());
        near(mean, 0.0, 0.012);
        near(variance, 1.0, 0.017);
        for shape in [0.25, 1.0, 4.0] {
            let (mean, variance) = moments(|| draws.gamma(shape));
            near(mean, shape, 0.012 * shape.sqrt().max(1.0));
            near(variance, shape, 0.06 * shape.max(1.0));
        }
    }

    /// The tail that Veeksha clips: P(X > 3) = e^-3.
    #[test]
    fn the_exponential_tail_is_whole() {
        let mut draws = Random::seeded(9, 0).stream("tail");
        let n = 200_000;
        let beyond = (0..n).filter(|_| draws.exponential() > 3.0).count() as f64 / f64::from(n);
        near(beyond, (-3.0f64).exp(), 0.0025);
    }

    /// From the host's words, the SDK draws the host's numbers.
    #[test]
    fn draws_agree_with_the_hosts_own() {
        let random = Random::from_words(7, |session, stream, first, count| {
            let mut words = vec![0; count as usize];
            veeksha_stats::RandomStream::new(42, session, stream).fill(u64::from(first), &mut words);
            words
        });
        let mut ours = random.stream("lengths");
        let mut hosts = veeksha_stats::RandomStream::new(42, 7, "lengths").draws();
        for _ in 0..100 {
            assert_eq!(ours.unit(), hosts.unit());
            assert_eq!(ours.below(1000), hosts.below(1000));
            assert_eq!(ours.exponential(), hosts.exponential());
            assert_eq!(ours.normal(), hosts.normal());
            assert_eq!(ours.gamma(0.5), hosts.gamma(0.5));
        }
    }
}
