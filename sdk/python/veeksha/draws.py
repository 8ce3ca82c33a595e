"""Randomness without state.

Every number is a function of (the run's seed, session, stream, position), so it does not depend on
the order of calls, the number of threads or earlier sessions. The draws are those of the Rust SDK
and of the host: the same words give the same numbers in every language.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

T = TypeVar("T")

#: The words `first .. first + count` of the sequence named by a session and a stream.
WordFunction: TypeAlias = Callable[[int, str, int, int], list[int]]

#: The session whose streams belong to the run as a whole: no workload has that many sessions.
_RUN = (1 << 53) - 1
_MASK32 = 0xFFFF_FFFF
_MASK64 = 0xFFFF_FFFF_FFFF_FFFF
#: Words fetched by the first call of a stream; each further call fetches twice as many.
_FIRST_BLOCK = 8
_LARGEST_BLOCK = 256


def _outside(_session: int, stream: str, _first: int, _count: int) -> list[int]:
    raise RuntimeError(
        f"the random stream `{stream}` was drawn outside the host; "
        "give the test Random.seeded(seed, session)"
    )


#: The host's `random.words`; set in a component.
_host_words: WordFunction = _outside


def set_host_words(words: WordFunction) -> None:
    """Sets the source of the streams of `Random(session)`."""
    global _host_words
    _host_words = words


def _mix(x: int) -> int:
    """The finalizer of SplitMix64: every bit of the input reaches every bit of the output."""
    x = (x + 0x9E37_79B9_7F4A_7C15) & _MASK64
    x = ((x ^ (x >> 30)) * 0xBF58_476D_1CE4_E5B9) & _MASK64
    x = ((x ^ (x >> 27)) * 0x94D0_49BB_1331_11EB) & _MASK64
    return x ^ (x >> 31)


class Random:
    """The random streams of one session.

    Streams have names, and different names are independent of one another: give each concern its
    own (`"lengths"`, `"waits"`), and a change in how one is drawn leaves the others as they were.
    """

    __slots__ = ("session", "_words")

    def __init__(self, session: int, words: WordFunction | None = None) -> None:
        """Opens the streams of a session: the host's, or those of a function, for tests."""
        self.session = session
        self._words = words

    @staticmethod
    def seeded(seed: int, session: int) -> Random:
        """Returns streams for tests: as good as the host's, but other numbers."""

        def words(session: int, stream: str, first: int, count: int) -> list[int]:
            name = _mix(seed)
            for byte in stream.encode():
                name = _mix(name ^ byte)
            key = _mix(name ^ _mix(session))
            return [_mix(key ^ ((first + i) & _MASK32)) & _MASK32 for i in range(count)]

        return Random(session, words)

    def stream(self, name: str) -> Draws:
        """Returns a stream of this session, from its beginning."""
        return Draws(self.session, name, self._words or _host_words)

    def shared_stream(self, name: str) -> Draws:
        """Returns a stream of the whole run, the same in every session, from its beginning."""
        return Draws(_RUN, name, self._words or _host_words)

    def words(self, stream: str, first: int, count: int) -> list[int]:
        """Returns the words `first .. first + count` of a stream: integers of 32 bits."""
        return (self._words or _host_words)(self.session, stream, first, count)


class Draws:
    """Draws numbers from one stream, in order. The stream repeats after 2^32 words."""

    __slots__ = ("_block", "_name", "_next", "_session", "_size", "_used", "_words")

    def __init__(self, session: int, name: str, words: WordFunction) -> None:
        self._session = session
        self._name = name
        self._words = words
        self._block: list[int] = []
        self._used = 0
        self._next = 0
        self._size = _FIRST_BLOCK

    def word(self) -> int:
        """Returns the next 32 bits."""
        used = self._used
        if used == len(self._block):
            self._block = self._words(self._session, self._name, self._next, self._size)
            self._next = (self._next + self._size) & _MASK32
            self._size = min(self._size * 2, _LARGEST_BLOCK)
            used = 0
        self._used = used + 1
        return self._block[used]

    def long_word(self) -> int:
        """Returns the next 64 bits; the first word is the upper half."""
        high = self.word()
        return high << 32 | self.word()

    def unit(self) -> float:
        """Returns a number that is uniform on [0, 1), with 53 bits."""
        return (self.long_word() >> 11) * (1.0 / (1 << 53))

    def unit_open(self) -> float:
        """Returns a number that is uniform on (0, 1], as a logarithm can take it."""
        return 1.0 - self.unit()

    def below(self, bound: int) -> int:
        """Returns an integer that is uniform on `0 .. bound - 1`; 0 for a bound of 0.

        Without bias (Lemire's multiply and reject). The bound is at most 2^32.
        """
        if not 0 <= bound <= 1 << 32:
            raise ValueError(f"bound: expected an integer from 0 to 2^32, got {bound!r}")
        if bound == 0:
            return 0
        threshold = (1 << 32) % bound
        while True:
            product = self.word() * bound
            if product & _MASK32 >= threshold:
                return product >> 32

    def between(self, low: int, high: int) -> int:
        """Returns an integer that is uniform on `low .. high`, both included.

        If `high` is below `low`, it is `low`.
        """
        return low + self.below(max(high - low, 0) + 1)

    def uniform(self, low: float, high: float) -> float:
        """Returns a number that is uniform on [low, high)."""
        return low + (high - low) * self.unit()

    def chance(self, probability: float) -> bool:
        """Returns True with a probability."""
        return self.unit() < probability

    def choice(self, values: Sequence[T]) -> T:
        """Returns one of the values, each with the same probability."""
        if not values:
            raise ValueError("choice: there is nothing to choose from")
        return values[self.below(len(values))]

    def exponential(self, mean: float = 1.0) -> float:
        """Returns an exponential number with this mean: −ln U, not clipped."""
        return -math.log(self.unit_open()) * mean

    def normal(self, mean: float = 0.0, deviation: float = 1.0) -> float:
        """Returns a normal number: √(−2 ln U₁) · cos(2π U₂) (Box and Muller).

        The second number of the pair is not kept, so that a draw takes the same words whatever was
        drawn before.
        """
        radius = math.sqrt(-2.0 * math.log(self.unit_open()))
        return mean + deviation * (radius * math.cos(math.tau * self.unit()))

    def lognormal(self, mu: float, sigma: float) -> float:
        """Returns a number whose logarithm is normal with mean `mu` and deviation `sigma`."""
        return math.exp(self.normal(mu, sigma))

    def gamma(self, shape: float, scale: float = 1.0) -> float:
        """Returns a gamma number (Marsaglia and Tsang, 2000): its mean is shape · scale.

        Shapes below 1 are drawn as Gamma(shape + 1) · U^(1/shape).
        """
        if not shape > 0:
            raise ValueError(f"shape: expected a positive number, got {shape!r}")
        if shape < 1.0:
            boost: float = self.unit_open() ** (1.0 / shape)
            # The order of the draws is the host's: the boost comes first.
            return self.gamma(shape + 1.0, scale) * boost
        d = shape - 1.0 / 3.0
        c = 1.0 / math.sqrt(9.0 * d)
        while True:
            x = self.normal()
            v = 1.0 + c * x
            v = v * v * v
            if v > 0.0:
                log_u = math.log(self.unit_open())
                if log_u < 0.5 * x * x + d - d * v + d * math.log(v):
                    return d * v * scale
