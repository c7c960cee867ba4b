"""The seam: every engine has the same doors, and nobody asks which engine it is."""

import ast
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from inspect import signature
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

import fpinq
from fpinq.engines.interface import Engine
from fpinq.engines.registry import KINDS, engine_of, made
from fpinq.engines.stopping import abandoned_after, stopped_after
from fpinq.model.errors import EngineError, ProgramError
from fpinq.model.expressions import Apply, Column, Literal
from fpinq.model.plans import RootTable, Term
from fpinq.model.statistics import Records
from fpinq.model.transformations import First, GroupBy, Join
from fpinq.runtime import ReferenceEngine

DOORS = [name for name in vars(Engine) if not name.startswith("_")]
SOURCE = Path(fpinq.__file__).parent
ENGINES = [kind.name for kind in KINDS.values()]


def class_of(name: str) -> Any:
    return getattr(import_module(KINDS[name].module), KINDS[name].name)


def parameters(function: Callable[..., Any]) -> list[tuple[str, object, object]]:
    return [(p.name, p.kind, p.default) for p in signature(function).parameters.values()]


def test_the_seam_is_these_doors() -> None:
    assert sorted(DOORS) == [
        "add_persons",
        "add_root",
        "check_asked",
        "check_unchanged",
        "close",
        "costs",
        "fingerprint",
        "forget",
        "measure",
        "owns",
        "rows_in",
    ]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", KINDS)
def test_every_engine_has_every_door_as_it_is_declared(name: str, door: str) -> None:
    found = vars(class_of(name)).get(door)
    assert found is not None, "declared by the class itself, not inherited"
    assert parameters(found) == parameters(getattr(Engine, door))


def test_an_engine_is_meant_by_its_name_or_by_itself() -> None:
    engine = ReferenceEngine()
    assert engine_of(engine) is engine
    assert isinstance(engine_of("reference"), ReferenceEngine)
    without = type("Without", (), {door: print for door in DOORS if door != "check_unchanged"})
    for wrong in ("oracle", None, 7, ReferenceEngine, without(), ["duckdb"]):
        with pytest.raises(ProgramError, match=r"unknown engine .*'duckdb', 'spark'"):
            engine_of(wrong)


# ── nobody asks ──────────────────────────────────────────────────────────────────────


def asked(tree: ast.AST) -> Iterator[str]:
    """Where a module asks what an engine is."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="hasattr" | "getattr" | "isinstance" | "type"), args=[of, *_]):
                if "engine" in ast.unparse(of).lower() or any(name in ast.unparse(node) for name in ENGINES):
                    yield ast.unparse(node)
            case ast.MatchValue(value=ast.Constant(value=name)) if name in KINDS:
                yield f"case {name!r}"
            case ast.Compare():
                literals = {n.value for n in ast.walk(node) if isinstance(n, ast.Constant)}
                if literals.intersection(KINDS):
                    yield ast.unparse(node)


@pytest.mark.parametrize(
    "question",
    [
        "hasattr(self.engine, 'cancel')",
        "getattr(engine, 'check_unchanged', None)",
        "isinstance(found, Spark)",
        "kind == 'spark'",
        "match kind:\n    case 'duckdb':\n        pass",
        "isinstance(self._engine(plan), Engine)",
    ],
)
def test_a_question_is_recognised(question: str) -> None:
    assert list(asked(ast.parse(question)))


def test_nobody_but_the_registry_asks_what_an_engine_is() -> None:
    outside = [path for path in SOURCE.rglob("*.py") if "engines" not in path.relative_to(SOURCE).parts]
    assert len(outside) > 80
    found = {str(path): list(asked(ast.parse(path.read_text(encoding="utf-8")))) for path in outside}
    assert not {path: questions for path, questions in found.items() if questions}


# ── deadlines ────────────────────────────────────────────────────────────────────────

EVERYTHING = Join(
    (Literal.of(1),), (Literal.of(1),), First(3000), First(3000),
    (("v", Apply("add", (Column("l.a"), Column("r.a")))),),
)  # fmt: skip
LONG = Term(GroupBy((("v", Column("v")),), ()), (Term(EVERYTHING, (RootTable("t"), RootTable("t"))),))


@pytest.mark.parametrize("name", ["duckdb", "reference"])
def test_a_measurement_ends_with_its_time_and_the_next_is_not_disturbed(name: str) -> None:
    engine = made(name)
    try:
        engine.add_root("t", [{"a": i} for i in range(3000 if name == "duckdb" else 300)])
        began = time.monotonic()
        with pytest.raises(EngineError):
            engine.measure(LONG, None, [Records()], 0.02)
        assert time.monotonic() - began < 10
        for _ in range(20):
            assert engine.measure(RootTable("t"), None, [Records()], 60)[0][0] in (3000, 300)
    finally:
        engine.close()


def test_something_is_stopped_again_and_again_until_it_ends_and_not_afterwards() -> None:
    calls: list[int] = []
    third = Event()

    def stop() -> None:
        calls.append(1)
        if len(calls) == 3:
            third.set()

    with stopped_after(0.001, stop):
        assert third.wait(20)
    stopped = len(calls)
    time.sleep(0.2)
    assert len(calls) == stopped


def test_without_a_limit_nothing_is_started() -> None:
    mine: list[object] = []

    def work() -> int:
        mine.append(Thread.__init__)
        return 7

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fpinq.engines.stopping.Thread", None)
        assert abandoned_after(float("inf"), work) == 7
        with stopped_after(float("inf"), pytest.fail):
            pass


def test_what_cannot_be_stopped_is_cancelled_and_left_to_itself() -> None:
    done, cancelled = Event(), []
    with pytest.raises(TimeoutError):
        abandoned_after(0.01, lambda: done.wait(20), cancelled.append)
    assert len(cancelled) == 1
    done.set()
    with pytest.raises(KeyError):
        abandoned_after(20, lambda: {}["none"], cancelled.append)
    with pytest.raises(TimeoutError):
        abandoned_after(20, lambda: (_ for _ in ()).throw(TimeoutError), cancelled.append)
    assert len(cancelled) == 1
