"""Sessions: building them, and checks of what a plugin returns."""

import unittest
from typing import Any

from veeksha import (
    Edge,
    Error,
    Message,
    Request,
    Role,
    Seed,
    Session,
    Step,
    ToolRun,
    Trigger,
    milliseconds,
    result_of,
    seconds,
    seed_of,
    synthetic,
    text,
)
from veeksha import blocks
from veeksha._returned import check_of, expect


class Building(unittest.TestCase):
    def test_a_history_parent_is_a_parent_once(self) -> None:
        request = Request(3).after(1).history(1).after(2).after(2)
        self.assertEqual(request.parents, [Edge(1), Edge(2)])
        self.assertEqual(request.history_parent, 1)

    def test_a_later_edge_replaces_one_to_the_same_event(self) -> None:
        chunk = Edge.first_chunk(1, 3)
        request = Request(3).after(1, Edge.first_chunk(1), Edge.dispatched(0)).after(chunk)
        self.assertEqual(request.parents, [Edge(1), chunk, Edge.dispatched(0)])

    def test_the_history_keeps_a_delay_after_its_node(self) -> None:
        later = Edge(1, delay=3)
        self.assertEqual(Request(3).after(later).history(1).parents, [later])
        self.assertEqual(Request(3).history(1).after(later).parents, [later])

    def test_content_is_strings_and_segments(self) -> None:
        request = Request(0).user("a", synthetic(7, 3), ["b", result_of(ToolRun(2))]).system("c")
        self.assertEqual(
            request.messages,
            [
                Message(Role.USER, [text("a"), synthetic(7, 3), text("b"), result_of(2)]),
                Message(Role.SYSTEM, [text("c")]),
            ],
        )

    def test_a_seed_has_two_words(self) -> None:
        self.assertEqual(Seed.of((5 << 32) + 9), Seed(5, 9))
        for wrong in (-1, 1 << 64, True, 1.0):
            with self.assertRaises(Error):
                Seed.of(wrong)  # type: ignore[arg-type]

    def test_durations_are_rounded_to_nanoseconds(self) -> None:
        self.assertEqual((seconds(0.1), milliseconds(1.5)), (100_000_000, 1_500_000))

    def test_steps_take_requests_and_tool_runs(self) -> None:
        step = Step.send(Request(0), ToolRun(1), cancel=[4], done=True)
        self.assertEqual(step, Step([Request(0)], [ToolRun(1)], [4], True))

    def test_hash_blocks_share_text_by_id(self) -> None:
        # 100 tokens in blocks of 64: a whole block and the beginning of another.
        made = blocks([7, 8], 64, 100, seed=lambda id: id * 10, rest=1)
        self.assertEqual(made, [synthetic(70, 64), synthetic(80, 36)])
        made = blocks([7], 64, 100, seed=lambda id: id, rest=1, partial=False)
        self.assertEqual(made, [synthetic(7, 64), synthetic(1, 36)])
        with self.assertRaisesRegex(ValueError, "3 hash ids for 100 tokens, which have 2 blocks"):
            blocks([1, 2, 3], 64, 100, seed=lambda id: id, rest=1)

    def test_seeds_of_scopes_differ(self) -> None:
        self.assertNotEqual(seed_of("a", [1]), seed_of("a", [2]))
        self.assertNotEqual(seed_of("a", [1]), seed_of("b", [1]))


class Checks(unittest.TestCase):
    def refuses(self, hint: Any, value: object, message: str) -> None:
        with self.assertRaises(Error) as caught:
            expect(check_of(hint), hint, value, "answered")
        self.assertEqual((caught.exception.code, caught.exception.message), ("wrong-value", message))

    def accepts(self, hint: Any, value: object) -> None:
        expect(check_of(hint), hint, value, "answered")

    def test_a_whole_session_is_accepted(self) -> None:
        request = (
            Request(0, client="judge", body="{}")
            .user("é", synthetic(1, 2))
            .cancel_after(5)
            .log_probabilities(2)
            .label("a", "b")
        )
        self.accepts(Session, Session([request], [ToolRun(1, tool="x").after(0)], arrives_at=3))

    def test_subclasses_of_the_right_types_are_accepted(self) -> None:
        class Number(int):
            pass

        self.accepts(Step, Step(cancel=[Number(4)]))

    def test_a_wrong_value_is_named_by_its_place(self) -> None:
        u32 = "expected an integer from 0 to 4294967295"
        step = Step.send(Request(0), Request(1), Request(2).output_at_most("abc"))  # type: ignore[arg-type]
        self.refuses(Step, step, f"requests[2].output.target_tokens: {u32}, got 'abc'")
        self.refuses(Step, Step.send(Request(-1)), f"requests[0].node: {u32}, got -1")
        self.refuses(Step, Step(cancel=[1, 1 << 32]), f"cancel[1]: {u32}, got 4294967296")
        self.refuses(Step, Step(cancel=[True]), f"cancel[0]: {u32}, got True")
        self.refuses(Step, Step(cancel=(1,)), "cancel: expected a list, got (1,)")  # type: ignore[arg-type]
        self.refuses(Step, Step(done=0), "done: expected True or False, got 0")  # type: ignore[arg-type]
        self.refuses(Step, Step.send("x"), "requests[0]: expected a Request, got 'x'")  # type: ignore[arg-type]
        edge = Request(1).after(Edge(0, "completed"))  # type: ignore[arg-type]
        self.refuses(
            Step,
            Step.send(edge),
            "requests[0].parents[0].trigger: expected a Trigger (Trigger.DISPATCHED, "
            "Trigger.FIRST_CHUNK, Trigger.COMPLETED), got 'completed'",
        )
        segment = Request(1).user([7])  # type: ignore[list-item]
        self.refuses(
            Step,
            Step.send(segment),
            "requests[0].messages[0].content[0]: expected one of TextSegment, SyntheticSegment, "
            "MediaSegment, TokenIdsSegment, ResultSegment, got 7",
        )
        labels = Request(1).label("a", 1)  # type: ignore[arg-type]
        self.refuses(Step, Step.send(labels), "requests[0].labels[0][1]: expected a string, got 1")

    def test_times_must_be_nanoseconds(self) -> None:
        self.refuses(
            Step,
            Step.send(Request(0).wait(0.5)),  # type: ignore[arg-type]
            "requests[0].wait_after_ready: expected an integer of nanoseconds from 0 to "
            "9007199254740991 (seconds() and milliseconds() return one), got 0.5",
        )

    def test_text_must_be_utf_8(self) -> None:
        self.refuses(
            Step,
            Step.send(Request(0).user("\ud800")),
            "requests[0].messages[0].content[0].value: expected text that can be encoded as UTF-8 "
            "(it has lone surrogates), got '\\ud800'",
        )

    def test_a_missing_return_is_recognized(self) -> None:
        self.refuses(
            Step, None, "answered: expected a Step, got None; did you forget `return`?"
        )

    def test_a_trigger_is_its_own_class(self) -> None:
        self.accepts(list[Edge], [Edge(0, Trigger.FIRST_CHUNK)])


if __name__ == "__main__":
    unittest.main()
