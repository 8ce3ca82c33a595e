"""Draws. `tests/runs/python_guests.rs` compares them with those of the Rust SDK."""

import unittest
from collections.abc import Callable

from veeksha import Random


def counting(session: int, stream: str, first: int, count: int) -> list[int]:
    """Words that are their own index."""
    assert (session, stream) == (3, "s")
    return list(range(first, first + count))


class Draws(unittest.TestCase):
    def test_words_come_in_order_across_blocks(self) -> None:
        draws = Random(3, counting).stream("s")
        self.assertEqual([draws.word() for _ in range(2000)], list(range(2000)))

    def test_a_long_word_begins_with_its_upper_half(self) -> None:
        self.assertEqual(Random(3, counting).stream("s").long_word(), 1)

    def test_a_host_stream_is_refused_outside_the_host(self) -> None:
        with self.assertRaisesRegex(RuntimeError, "give the test Random.seeded"):
            Random(0).stream("lengths").word()

    def test_shared_streams_do_not_depend_on_the_session(self) -> None:
        def shared(session: int) -> int:
            return Random.seeded(1, session).shared_stream("prefix").long_word()

        def own(session: int) -> int:
            return Random.seeded(1, session).stream("prefix").long_word()

        self.assertEqual(shared(0), shared(99))
        self.assertNotEqual(own(0), own(99))

    def test_integers_reach_both_ends_of_their_range(self) -> None:
        draws = Random.seeded(5, 0).stream("range")
        seen = [0] * 7
        for _ in range(7000):
            seen[draws.between(6, 12) - 6] += 1
        # Binomial(7000, 1/7): standard deviation 29; five of them.
        self.assertTrue(all(abs(count - 1000) < 147 for count in seen), seen)
        self.assertEqual(draws.between(9, 9), 9)
        self.assertEqual(draws.between(9, 3), 9)
        self.assertLess(draws.between(0, 0xFFFF_FFFF), 1 << 32)

    def test_distributions_have_their_means(self) -> None:
        draws = Random.seeded(3, 0).stream("moments")
        n = 20_000

        def mean(draw: Callable[[], float]) -> float:
            return sum(draw() for _ in range(n)) / n

        # Five standard errors.
        self.assertAlmostEqual(mean(draws.unit), 0.5, delta=0.0103)
        self.assertAlmostEqual(mean(lambda: draws.exponential(2.0)), 2.0, delta=0.071)
        self.assertAlmostEqual(mean(lambda: draws.normal(5.0, 2.0)), 5.0, delta=0.071)
        self.assertAlmostEqual(mean(lambda: draws.gamma(0.25, 4.0)), 1.0, delta=0.071)
        self.assertAlmostEqual(mean(lambda: draws.gamma(4.0)), 4.0, delta=0.071)
        self.assertAlmostEqual(mean(lambda: draws.uniform(2, 4)), 3.0, delta=0.0205)


if __name__ == "__main__":
    unittest.main()
