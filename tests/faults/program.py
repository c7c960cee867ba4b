"""A program whose every step has a request id: what a client does, and does again after a crash."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from threading import Barrier
from typing import Any

from fpinq.ledger import Ledger
from fpinq.model.actions import Action, Assign, Partition, Query
from fpinq.model.expressions import Apply, Column, Literal, Schema, Type
from fpinq.model.queries import Count
from fpinq.model.transformations import Partitioning, Where
from fpinq.runtime import Observation, ProtectedSystem, ReferenceEngine

ROWS = [{"a": i % 3} for i in range(30)]
SHAPE = Schema((("a", Type.INT64),))
BUDGET = Fraction(2)
SPENT = Fraction(1, 4) + Fraction(1, 3) + Fraction(1, 6) + Fraction(1, 8) + Fraction(1, 10)

ONE, BY = (Count(),), Partitioning(Column("a"), (0, 1, 2))
PROGRAM: list[tuple[str, str | None, Action]] = [
    ("s", None, Assign("t", Where(Apply("less", (Column("a"), Literal.of(2)))), ("data",))),
    ("s", None, Query("t", Fraction(1, 4), ONE)),
    ("s", None, Partition(("p", "q", "r"), "data", BY)),
    ("s", None, Query("p", Fraction(1, 3), ONE)),
    ("s", None, Query("q", Fraction(1, 3), ONE)),  # free: the maximum does not grow
    ("s", None, Query("q", Fraction(1, 6), ONE)),
    ("s", None, Query("t", Fraction(2), ONE)),  # ⊥
    ("other", "alice", Query("data", Fraction(1, 8), ONE * 3, BY)),
    ("other", "alice", Query("data", Fraction(1, 8), ONE)),  # ⊥: her cap
    ("third", None, Query("data", Fraction(1, 10), ONE)),
]


def noise(query: object, statistic: object, epsilon: object) -> tuple[int, ...]:
    """Never the same twice, so that a second draw would show."""
    return (int.from_bytes(os.urandom(8)),)


def system_over(ledger: Ledger) -> ProtectedSystem:
    """The protected system over a ledger, with the data in it."""
    engine = ReferenceEngine()
    system = ProtectedSystem(engine, record=ledger, mechanism=noise)
    engine.add_root("data", ROWS)
    system.protect("data", SHAPE, BUDGET, contents=["data"], caps={"alice": "1/5"})
    return system


def run(system: ProtectedSystem, told: Callable[[str, Observation], Any]) -> None:
    """The whole program; each observation is told as soon as it is released."""
    for number, (session, analyst, action) in enumerate(PROGRAM):
        request = f"r{number}"
        told(request, system.act(action, session=session, request_id=request, analyst=analyst))


THREADS, TURNS, EACH = 6, 3, Fraction(1, 50)


def run_together(system: ProtectedSystem, told: Callable[[str, Observation], Any]) -> None:
    """Several sessions that ask at the same time, each in a thread of its own."""
    here = Barrier(THREADS)

    def session(number: int) -> None:
        for turn in range(TURNS):
            here.wait(30)
            request = f"r{number}.{turn}"
            asked = Query("data", EACH, ONE)
            told(request, system.act(asked, session=f"s{number}", request_id=request))

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(session, range(THREADS)))
