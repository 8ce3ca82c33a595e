"""The resources of the contract, called as the host calls them."""

import unittest
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from veeksha import (
    Agent,
    ArrivalProcess,
    Better,
    Cell,
    ChunkKind,
    Column,
    Completion,
    Definition,
    EndpointCodec,
    Endpoint,
    Error,
    Framing,
    Group,
    Layout,
    Metric,
    NoConfig,
    Opening,
    Parts,
    Random,
    Request,
    RequestCheck,
    Response,
    Samples,
    Session,
    SessionGenerator,
    Status,
    Step,
    Trace,
    TraceFlavor,
    Trigger,
    Usage,
    plugin,
)
from veeksha import _exports
from veeksha.completion import rows
from veeksha._plugin import config_type, registered


@dataclass
class Limit:
    limit: int = 3


class Registered(unittest.TestCase):
    def setUp(self) -> None:
        registered.clear()

    def error(self, call: Any, *arguments: Any) -> Error:
        with self.assertRaises(Error) as caught:
            call(*arguments)
        return caught.exception


class Kinds(Registered):
    def test_sessions_end_with_the_workload(self) -> None:
        @plugin
        class Five(SessionGenerator[Limit]):
            def length(self) -> int:
                return 5

            def session(self, index: int, random: Random) -> Request:
                return Request(index).user(str(self.config.limit))

        workload = _exports.Workload.open('{"limit": 9}')
        made = workload.sessions(3, 10)
        self.assertEqual(made, [Session([Request(i).user("9")]) for i in (3, 4)])

    def test_an_agent_keeps_its_state_until_it_is_done(self) -> None:
        @plugin
        class Twice(Agent):
            turn = 0

            def start(self) -> Opening:
                return Opening(Step.send(Request(0).user(str(self.index)))).label("a", "b")

            def answered(self, response: Response) -> Step:
                self.turn += 1
                return Step.end() if self.turn == 2 else Step.send(Request(self.turn).user("more"))

        agent, opening = _exports.Generator.open("{}").start(7)
        self.assertEqual(opening.labels, [("a", "b")])
        self.assertEqual(agent.answered(Response(0)).requests[0].node, 1)
        self.assertIsNotNone(agent.agent)
        self.assertTrue(agent.answered(Response(1)).done)
        self.assertIsNone(agent.agent, "its state is dropped")
        self.assertTrue(agent.answered(Response(1)).done)

    def test_an_exception_is_an_error_and_ends_the_agent_only(self) -> None:
        @plugin
        class Failing(Agent):
            def start(self) -> Step:
                return Step.send(Request(0).user("x"))

            def answered(self, response: Response) -> Step:
                return {}["absent"]  # type: ignore[index]

        generator = _exports.Generator.open("{}")
        agent, _ = generator.start(0)
        with self.assertNoLogsOnStderr():
            error = self.error(agent.answered, Response(0))
        self.assertEqual((error.code, error.message), ("exception", "KeyError: 'absent'"))
        self.assertIsNone(agent.agent)
        generator.start(1)

    def assertNoLogsOnStderr(self) -> Any:
        import contextlib
        import io

        return contextlib.redirect_stderr(io.StringIO())

    def test_arrivals_continue_from_batch_to_batch(self) -> None:
        @plugin
        class Ramp(ArrivalProcess):
            def next(self, session: int, random: Random) -> int | None:
                return None if session == 5 else session * 10

        process = _exports.Process.open("{}")
        self.assertEqual(process.next(2), [0, 10])
        self.assertEqual(process.next(8), [20, 30, 40])
        self.assertEqual(process.next(1), [])

    def test_rows_are_dataclasses_and_errors_name_their_row(self) -> None:
        @dataclass
        class Cells:
            length: int

        @plugin
        class Log(TraceFlavor[NoConfig, Cells]):
            def layout(self) -> Layout:
                return Layout([Column.required_as(Cell.COUNT, "length")])

            def session(self, trace: Trace[Cells], epoch: int, group: Group[Cells]) -> Session:
                row = group.rows[0]
                first = trace.first_row.length if trace.first_row else 0
                length = row.positive("length", row.cells.length)
                return Session([Request(0).user(str(first + length + epoch))])

        def group(fields: str) -> Any:
            row = SimpleNamespace(number=2, at=None, fields=fields)
            return SimpleNamespace(index=0, key="", rows=[row])

        # A local class is not found by its name.
        Log.__orig_bases__ = (TraceFlavor[NoConfig, Cells],)  # type: ignore[attr-defined]
        flavor = _exports.Flavor.open("{}")
        facts = SimpleNamespace(rows=1, groups=1, first_row='{"length": 100}')
        made = flavor.sessions(facts, 4, [group('{"length": 1}')])
        self.assertEqual(made, [Session([Request(0).user("105")])])
        error = self.error(flavor.sessions, facts, 0, [group('{"length": 0}')])
        self.assertEqual((error.code, error.message), ("row", "row 2: `length` is 0; it is 1 or more"))
        error = self.error(flavor.sessions, facts, 0, [group('{"length": "x"}')])
        self.assertEqual(
            error.message, 'row 2: `length`: expected an integer, found the text "x"'
        )

    def test_events_are_cut_out_of_the_bytes(self) -> None:
        @plugin
        class Lines(EndpointCodec):
            def endpoint(self) -> Endpoint:
                return Endpoint.of("speak", {"m": "{{model}}"}, Framing.LINES)

            def decode(self, event: bytes, parts: Parts) -> None:
                for word in event.decode().split():
                    parts.content(word)

        codec = _exports.Codec.open("{}")
        self.assertEqual(codec.endpoint().request, '{"m": "{{model}}"}')
        parts = codec.decode(b"a bc", [3, 3, 4])
        self.assertEqual([part.value for part in parts.parts], ["a", "b", "c"])
        self.assertEqual(parts.ends, [2, 2, 3])

    def test_samples_name_their_metric_and_request(self) -> None:
        @plugin
        class Tokens(Metric):
            def definitions(self) -> list[Definition]:
                return [
                    Definition("a", "1", Better.LESS, "one"),
                    Definition("b", "1", Better.LESS, "two"),
                ]

            def observe(self, request: Completion, samples: Samples) -> None:
                samples.add("b", request.output_tokens)
                if request.node == 2:
                    samples.add("c", 1)

            def finish(self, samples: Samples) -> None:
                samples.add_of_run(0, 0.5, weight=2.0)

        collector = _exports.Collector.open("{}")
        samples = collector.observe(batch())[:1]
        self.assertEqual([(s.metric, s.value, s.of) for s in samples], [(1, 0, 0)])
        last = collector.finish()
        self.assertEqual([(s.metric, s.value, s.weight, s.of) for s in last], [(0, 0.5, 2.0, None)])

    def test_an_unknown_metric_and_a_value_that_is_not_finite_are_refused(self) -> None:
        samples = Samples({"a": 0})
        self.assertIn("defined are `a`", self.error(samples.add, "b", 1.0).message)

        @plugin
        class Nothing(Metric):
            def definitions(self) -> list[Definition]:
                return [Definition("a", "1", Better.LESS, "one")]

            def observe(self, request: Completion, samples: Samples) -> None:
                samples.add("a", float("nan"))

        error = self.error(_exports.Collector.open("{}").observe, batch())
        self.assertEqual(error.message, "[0].value: expected a finite number, got nan")

    def test_a_check_returns_a_boolean(self) -> None:
        @plugin
        class Odd(RequestCheck):
            def is_good(self, request: Completion) -> bool:
                return "yes"  # type: ignore[return-value]

        error = self.error(_exports.RequestChecker.open("{}").judge, batch())
        self.assertEqual(error.message, "is_good: expected True or False, got 'yes'")


class Decorator(Registered):
    def test_a_class_of_no_kind_is_refused(self) -> None:
        with self.assertRaisesRegex(TypeError, "derive it from one of"):
            plugin(int)  # type: ignore[type-var]

    def test_two_plugins_of_a_kind_are_refused(self) -> None:
        class One(SessionGenerator):
            def session(self, index: int, random: Random) -> Request:
                return Request(0)

        class Two(One):
            pass

        plugin(One)
        with self.assertRaisesRegex(TypeError, "Two and One are both of the kind"):
            plugin(Two)

    def test_a_missing_method_is_named(self) -> None:
        class Empty(Agent):
            def start(self) -> Step:
                return Step.wait()

        with self.assertRaisesRegex(TypeError, "Empty has no method `answered`"):
            plugin(Empty)

    def test_the_configuration_is_the_type_argument(self) -> None:
        class With(SessionGenerator[Limit]):
            pass

        class Derived(With):
            pass

        self.assertIs(config_type(Derived), Limit)
        self.assertIs(config_type(SessionGenerator), NoConfig)


def batch() -> Any:
    """Two requests: one as plain as can be, one with all that a request may have."""
    none, never = 0xFFFF_FFFF, (1 << 53) - 1
    columns: dict[str, Any] = {
        name: [0, 0]
        for name in (
            "wait_after_ready intended_at held dispatched_at completed_at target_prompt_tokens "
            "prompt_tokens total_prompt_tokens template_tokens"
        ).split()
    }
    columns |= {
        name: [none, 10 + place]
        for place, name in enumerate(
            "history_parent http_status target_output_tokens usage_prompt usage_completion "
            "usage_cached ideal_cached_tokens".split()
        )
    }
    columns |= {name: [never, 30] for name in ("picked_up_at", "sent_at", "first_byte_at")}
    columns |= {
        name: [False, True]
        for name in "connection_reused retried output_tokens_from_usage chunk_tokens_known".split()
    }
    return SimpleNamespace(
        **columns,
        session=[7, 7],
        node=[1, 3],
        session_requests=[1, 1],
        measured=[True, False],
        status=[Status.OK, Status.FAILED],
        finish_reason=[none, 2],
        server=[0, 1],
        output_tokens=[0, 5],
        usage_reasoning=[none, none],
        parents_end=[0, 1],
        parents=[9],
        parent_triggers=b"\x01",
        parent_delays=[77],
        chunks_end=[1, 3],
        chunk_at=[10, 20, 30],
        chunk_tokens=[0, 4, 5],
        chunk_kinds=b"\x01\x07\x00",
        labels_end=[0, 2],
        label_names=[0, 0],
        label_values=[1, 2],
        texts=["tier", "gold", "stop"],
        failures=[SimpleNamespace(request=1, code="timeout", message="too late")],
        connections=[SimpleNamespace(request=1, resolve=21, connect=None, tls=22)],
        replays=[SimpleNamespace(request=1, at=23, latency=None)],
        further=[
            SimpleNamespace(name="cache_evicted_tokens", values=[float("nan"), 3.0]),
            SimpleNamespace(name="response_id", values=[2.0, float("nan")]),
        ],
    )


class Rows(unittest.TestCase):
    def test_absent_values_are_none(self) -> None:
        plain, full = rows(batch())
        self.assertEqual(
            [plain.history_parent, plain.http_status, plain.usage, plain.picked_up_at, plain.tls],
            [None] * 5,
        )
        self.assertEqual((plain.error_class, plain.finish_reason, plain.recorded), (None,) * 3)
        self.assertEqual(full.usage, Usage(13, 14, 15, None))
        self.assertEqual((full.history_parent, full.http_status, full.picked_up_at), (10, 11, 30))
        self.assertEqual((full.resolve, full.connect, full.tls), (21, None, 22))
        self.assertEqual((full.error_class, full.error_message), ("timeout", "too late"))
        self.assertEqual(full.finish_reason, "stop")

    def test_each_request_has_its_part_of_the_columns(self) -> None:
        plain, full = rows(batch())
        self.assertEqual((plain.chunk_at, plain.chunk_tokens), ([10], None))
        self.assertEqual((full.chunk_at, full.chunk_tokens), ([20, 30], [4, 5]))
        self.assertEqual(plain.chunk_kinds, [ChunkKind.CONTENT])
        self.assertEqual(full.chunk_kinds, [ChunkKind.OTHER, ChunkKind.REASONING])
        self.assertEqual((plain.parents, full.parents), ([], [9]))
        self.assertEqual(full.parent_triggers, [Trigger.FIRST_CHUNK])
        self.assertEqual(full.labels, {"tier": "stop"}, "the last of a name")
        self.assertEqual((plain.labels, full.label("tier")), ({}, "stop"))
        self.assertEqual(plain.further, {"response_id": "stop"})
        self.assertEqual(full.further, {"cache_evicted_tokens": 3.0})
        self.assertTrue(plain.is_ok() and not full.is_ok())


if __name__ == "__main__":
    unittest.main()
