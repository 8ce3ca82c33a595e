"""A session generator that misbehaves as its configuration states.

Each function returns what the method `session` returns; the tests look for the line numbers of the
lines that are marked with their name.
"""

import datetime
import json
import logging
import os
import random
import secrets
import socket
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veeksha import Error, Random, Request, Session, SessionGenerator, plugin, synthetic


@dataclass
class Config:
    """The misbehavior."""

    mode: str = "none"
    session: int = 0


def good(tokens: Any = 8) -> Request:
    return Request(0).user(synthetic(1, 16)).output_exactly(tokens)


def deep(n: int) -> int:
    return deep(n + 1) + 1


def modes() -> dict[str, Any]:
    return {
        "exception": lambda: json.loads("[1"),  # line: exception
        "key": lambda: {}["absent"],  # line: key
        "typed": lambda: (_ for _ in ()).throw(Error("no-plan", "there is no plan", "make one")),
        "exit": lambda: sys.exit(3),  # line: exit
        "text_for_number": lambda: good("abc"),  # line: text_for_number
        "negative": lambda: good(-1),  # line: negative
        "fraction": lambda: good(2.5),
        "none": lambda: None,
        "surrogate": lambda: Request(0).user("\ud800").output_exactly(1),
        "bool_for_number": lambda: good(True),
        "tuple_for_list": lambda: Session((good(),)),  # type: ignore[arg-type]
        "label": lambda: good().label("tier", 1),  # type: ignore[arg-type]
        "wait": lambda: good().wait(0.5),  # type: ignore[arg-type]
        "random": lambda: random.randint(1, 6),  # line: random
        "random_seeded": lambda: good(random.Random(5).randint(1, 6)),
        "random_unseeded": lambda: random.Random().random(),
        "secrets": lambda: secrets.token_hex(4),
        "urandom": lambda: os.urandom(4),
        "clock": lambda: time.time(),  # line: clock
        "perf_counter": lambda: time.perf_counter(),
        "sleep": lambda: time.sleep(1),
        "now": lambda: datetime.datetime.now(),  # line: now
        "today": lambda: datetime.date.today(),
        "environ": lambda: os.environ["HOME"],  # line: environ
        "getenv": lambda: os.getenv("HOME"),
        "open": lambda: open("data.json"),  # line: open
        "path": lambda: Path("data.json").read_text(),  # line: path
        "listdir": lambda: os.listdir("/"),
        "socket": lambda: socket.create_connection(("localhost", 80)),  # line: socket
        "raw_socket": lambda: socket.socket(),
        "thread": lambda: threading.Thread(target=print).start(),  # line: thread
        "late_import": lambda: __import__("wave"),  # line: late_import
        "recursion": lambda: deep(0),
        "memory": lambda: bytearray(1 << 30),
        "loop": lambda: [None for _ in iter(int, 1)],
    }


@plugin
class Hostile(SessionGenerator[Config]):
    """Sessions before the configured one are fine."""

    def session(self, index: int, random: Random) -> Any:
        mode = self.config.mode
        if index < self.config.session or mode == "fine":
            return good()
        if mode == "print":
            print("printed", index)
            print("two\nlines", end="")
            print("to stderr", file=sys.stderr)
            logging.getLogger("lengths").warning("logged %d", index)
            logging.info("informed")
            return good()
        if mode == "type":
            # The arithmetic of types that are replaced still works.
            day = datetime.datetime(2026, 1, 31) + datetime.timedelta(days=1)
            assert isinstance(day, datetime.datetime) and day.month == 2
            return good()
        return modes()[mode]()
