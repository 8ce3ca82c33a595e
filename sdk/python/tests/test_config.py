"""Configurations: reading, errors with their place, schema."""

import unittest
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Any, Literal

from veeksha import Error, NoConfig, Range
from veeksha.config import from_json
from veeksha.schema import schema


class Order(Enum):
    FIRST = "first"
    LAST = "last"


@dataclass
class Fixed:
    type: Literal["fixed"]
    value: int


@dataclass
class Uniform:
    type: Literal["uniform"]
    min: Annotated[int, Range(1)]
    max: int

    def __post_init__(self) -> None:
        if self.max < self.min:
            raise ValueError("`max` is below `min`")


@dataclass
class Config:
    """How sessions are made.

    More of it.
    """

    turns: Annotated[int, Range(1, 10), "Turns of a session."]
    rate: Annotated[float, Range(0.5)] = 1.0
    lengths: list[Fixed | Uniform] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)
    order: Order = Order.FIRST
    mode: Literal["fast", "slow"] = "fast"
    limit: int | None = None
    further: Any = None


class Reading(unittest.TestCase):
    def error(self, text: str) -> Error:
        with self.assertRaises(Error) as caught:
            from_json(Config, text)
        self.assertEqual(caught.exception.code, "config")
        return caught.exception

    def refuses(self, text: str, path: str, message: str, hint: str | None = None) -> None:
        error = self.error(text)
        self.assertEqual((error.path, error.message, error.hint), (path, message, hint))

    def test_reads_each_type(self) -> None:
        config = from_json(
            Config,
            '{"turns": 3.0, "rate": 2, "order": "last", "mode": "slow", "limit": 4, "further": [1],'
            ' "labels": {"a": "b"}, "lengths": [{"type": "fixed", "value": 8}]}',
        )
        lengths: list[Fixed | Uniform] = [Fixed("fixed", 8)]
        expected = Config(3, 2.0, lengths, {"a": "b"}, Order.LAST, "slow", 4, [1])
        self.assertEqual(config, expected)
        self.assertIsInstance(config.turns, int)
        self.assertIsInstance(config.rate, float)

    def test_absent_keys_have_their_defaults(self) -> None:
        self.assertEqual(from_json(Config, '{"turns": 1}'), Config(1))
        self.assertEqual(from_json(NoConfig, "null"), NoConfig())

    def test_a_wrong_value_is_refused_with_its_place(self) -> None:
        self.refuses("{}", "", "the key `turns` is missing")
        self.refuses("[]", "", "expected an object, found a list")
        self.refuses('{"turns": "x"}', "/turns", 'expected an integer from 1 to 10, found the text "x"')
        self.refuses('{"turns": 11}', "/turns", "expected an integer from 1 to 10, found 11")
        self.refuses('{"turns": 1.5}', "/turns", "expected an integer from 1 to 10, found 1.5")
        self.refuses('{"turns": true}', "/turns", "expected an integer from 1 to 10, found true")
        self.refuses('{"turns": null}', "/turns", "expected an integer from 1 to 10, found null")
        self.refuses(
            '{"turns": 1, "rate": 0.1}', "/rate", "expected a number of at least 0.5, found 0.1"
        )
        self.refuses(
            '{"turns": 1, "labels": {"a/b~c": 1}}', "/labels/a~1b~0c", "expected a text, found 1"
        )
        self.refuses(
            '{"turns": 1, "lengths": [{"type": "fixed", "value": 1}, {"type": "uniform", "min": 0}]}',
            "/lengths/1/min",
            "expected an integer of at least 1, found 0",
        )
        self.refuses(
            '{"turns": 1, "lengths": [{"type": "uniform", "min": 3, "max": 2}]}',
            "/lengths/0",
            "`max` is below `min`",
        )

    def test_a_misspelt_name_is_answered_with_the_nearest(self) -> None:
        self.refuses(
            '{"turns": 1, "ratte": 2}',
            "/ratte",
            "unknown key `ratte`; known here: `turns`, `rate`, `lengths`, `labels`, `order`, "
            "`mode`, `limit`, `further`",
            "did you mean `rate`?",
        )
        self.refuses(
            '{"turns": 1, "order": "frist"}',
            "/order",
            'expected one of "first", "last", found the text "frist"',
            "did you mean `first`?",
        )
        self.refuses(
            '{"turns": 1, "lengths": [{"type": "unifrom"}]}',
            "/lengths/0/type",
            'expected one of "fixed", "uniform", found the text "unifrom"',
            "did you mean `uniform`?",
        )
        self.assertIsNone(self.error('{"turns": 1, "dodecahedron": 1}').hint)

    def test_text_that_is_not_json_is_refused(self) -> None:
        self.assertTrue(self.error("{").message.startswith("the configuration is not JSON: "))


class Schema(unittest.TestCase):
    def test_states_types_ranges_descriptions_and_defaults(self) -> None:
        made = schema(Config)
        properties = made["properties"]
        self.assertEqual((made["title"], made["description"]), ("Config", "How sessions are made."))
        self.assertEqual(made["required"], ["turns"])
        self.assertIs(made["additionalProperties"], False)
        self.assertEqual(
            properties["turns"],
            {"type": "integer", "minimum": 1, "maximum": 10, "description": "Turns of a session."},
        )
        self.assertEqual(properties["rate"], {"type": "number", "minimum": 0.5, "default": 1.0})
        self.assertEqual(properties["order"], {"enum": ["first", "last"], "default": "first"})
        self.assertEqual(properties["mode"], {"enum": ["fast", "slow"], "default": "fast"})
        self.assertEqual(
            properties["limit"], {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None}
        )
        self.assertEqual(
            properties["labels"],
            {"type": "object", "additionalProperties": {"type": "string"}, "default": {}},
        )
        self.assertEqual(properties["further"], {"default": None})
        fixed, uniform = properties["lengths"]["items"]["anyOf"]
        self.assertEqual(fixed["properties"]["type"], {"const": "fixed"})
        self.assertEqual(uniform["required"], ["type", "min", "max"])

    def test_a_class_without_docstring_has_no_description(self) -> None:
        self.assertNotIn("description", schema(Fixed))

    def test_a_type_that_json_does_not_have_is_refused(self) -> None:
        @dataclass
        class Odd:
            when: complex

        Odd.__annotations__ = {"when": complex}
        with self.assertRaisesRegex(TypeError, "Odd.when: a configuration cannot have the type"):
            schema(Odd)


if __name__ == "__main__":
    unittest.main()
