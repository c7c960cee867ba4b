"""Data has one way in: what happens, in which order, and what is left when it is refused."""

from collections.abc import Callable
from fractions import Fraction
from math import inf
from pathlib import Path
from typing import Any

import pytest

from fpinq.client import protect as embedded
from fpinq.engines.files import Files
from fpinq.engines.interface import Fingerprint
from fpinq.model.actions import Assign, Query
from fpinq.model.errors import BadData, BadTransformation, DataChanged, FpinqError, LedgerError, ProgramError
from fpinq.model.expressions import Schema, Type
from fpinq.model.queries import Count
from fpinq.model.transformations import Concat
from fpinq.runtime import Answered, InMemory, ProtectedSystem, ReferenceEngine, registration
from fpinq.runtime import contents as contents_module
from fpinq.runtime.deadline import within
from fpinq.runtime.registration import Given, Offer, register
from fpinq.server import house

ROWS = [{"a": i, "s": "x" * i} for i in range(5)]
TYPES = {"a": Type.INT64, "s": Type.STRING}


class Watched(ReferenceEngine):
    """The reference engine, with a diary."""

    def __init__(self, diary: list[str]) -> None:
        super().__init__()
        self.diary = diary
        self.seconds: list[float] = []

    def add_root(self, name: str, source: object, *rest: Any, **given: Any) -> Schema:
        self.diary.append(f"add {type(source).__name__}")
        return super().add_root(name, source, *rest, **given)

    def rows_in(self, root: str) -> dict[str, int]:
        self.diary.append("count")
        return super().rows_in(root)

    def forget(self, name: str) -> None:
        self.diary.append("forget")
        super().forget(name)

    def measure(self, plan: Any, by: Any, statistics: Any, seconds: float = inf) -> Any:
        self.seconds.append(seconds)
        return super().measure(plan, by, statistics, seconds)


class Kept(InMemory):
    """A record with a diary, which may refuse."""

    def __init__(self, diary: list[str]) -> None:
        super().__init__()
        self.diary, self.refusing = diary, ""

    def check(self, name: str, budget: object, **facts: Any) -> None:
        self.diary.append("may it")
        if self.refusing == "check":
            raise LedgerError("no")
        super().check(name, budget, **facts)

    def register(self, name: str, shape: Any, budget: object, **facts: Any) -> Any:
        self.diary.append("register")
        if self.refusing == "register":
            raise LedgerError("no")
        return super().register(name, shape, budget, **facts)


class World:
    """A system whose engine and record keep one diary."""

    def __init__(self) -> None:
        self.diary: list[str] = []
        self.engine, self.record = Watched(self.diary), Kept(self.diary)
        self.system = ProtectedSystem(self.engine, record=self.record)

    def register(self, source: Any, check: Callable[..., object] = lambda *_: None, **given: Any) -> Any:
        table = Given(source, TYPES, **given)
        return register(self.system, self.engine, Offer("d", Fraction(1), {"t": table}), check)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "t.csv"
    path.write_text("a,s\n1,x\n2,y\n")
    return path


def test_data_is_found_hashed_allowed_read_checked_and_then_registered(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    hashes = contents_module.hashes_of
    monkeypatch.setattr(
        contents_module, "hashes_of", lambda *given: world.diary.append("hash") or hashes(*given)
    )
    unchanged = contents_module.Contents.check_unchanged
    monkeypatch.setattr(
        contents_module.Contents,
        "check_unchanged",
        lambda self, root: world.diary.append("unchanged") or unchanged(self, root),
    )
    world.register(str(file), lambda *_: world.diary.append("check"), rows_at_most=2)
    assert world.diary == [
        "hash", "unchanged", "may it", "add Files", "count", "check", "unchanged", "register",
    ]  # fmt: skip


def refuse(*_: object) -> None:
    raise ProgramError("wrong")


REFUSED: dict[str, Callable[[World, str, pytest.MonkeyPatch], object]] = {
    "too many rows": lambda world, path, _: world.register(path, rows_at_most=1),
    "a check": lambda world, path, _: world.register(path, refuse),
    "changed data": lambda world, path, _: world.register(
        path, lambda *_: Path(path).write_text("a,s\n1,y\n")
    ),
    "the record": lambda world, path, patch: (
        patch.setattr(world.record, "refusing", "register"),
        world.register(path),
    ),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_was_refused_is_forgotten_and_can_be_said_again(
    why: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    with pytest.raises(FpinqError) as refused, monkeypatch.context() as patch:
        REFUSED[why](world, str(file), patch)
    assert isinstance(refused.value, BadData | ProgramError | DataChanged | LedgerError)
    assert world.diary[-1] == "forget"
    assert not world.engine._database
    assert not world.system.roots()
    world.register(str(file))
    assert isinstance(world.system.act(Query("d", Fraction(1, 2), (Count(),))), Answered)


def test_the_record_may_refuse_before_an_engine_reads_anything(file: Path) -> None:
    world = World()
    world.record.refusing = "check"
    with pytest.raises(LedgerError):
        world.register(str(file))
    assert world.diary == ["may it"]


class Elsewhere(Watched):
    """An engine with sources of its own."""

    said: Any = "version 7"

    def owns(self, source: object) -> bool:
        return isinstance(source, str) and source.startswith("there:")

    def fingerprint(self, source: object) -> Any:
        return self.said

    def add_root(self, name: str, source: object, *rest: Any, **given: Any) -> Schema:
        return super().add_root(name, ROWS if self.owns(source) else source, *rest, **given)


@pytest.mark.parametrize("said", ["version 7", Fingerprint(Schema.of(TYPES), 5, 2**200)])
def test_what_only_an_engine_can_reach_is_known_by_what_the_engine_finds(said: Any) -> None:
    world = World()
    engine = Elsewhere(world.diary)
    engine.said = said
    offer = Offer("d", Fraction(1), {"t": Given("there:people")})
    taken = register(world.system, engine, offer, lambda *_: None)
    assert taken.read_off == []
    (hashed,) = world.system.roots()["d"].contents
    assert hashed.startswith("said:" if isinstance(said, str) else "sum:")


def test_an_engine_is_given_the_files_that_were_found(file: Path) -> None:
    seen: list[object] = []

    class Seeing(ReferenceEngine):
        def add_root(self, name: str, source: object, *rest: Any, **given: Any) -> Schema:
            seen.append(source)
            return super().add_root(name, source, *rest, **given)

    for recorded in (True, False):
        system = ProtectedSystem(Seeing())
        offer = Offer("d", Fraction(1), {"t": Given(str(file.parent / "*.csv"), TYPES)})
        register(system, system.engine, offer, lambda *_: None, recorded=recorded)
    assert all(isinstance(source, Files) and source.paths == (str(file),) for source in seen)


def test_a_program_and_a_server_register_by_the_same_function() -> None:
    assert embedded.register is house.register is registration.register


# ── several engines in one system ────────────────────────────────────────────────────


def test_a_root_is_measured_by_the_engine_that_holds_it_and_by_no_other() -> None:
    own, other = Watched([]), Watched([])
    system = ProtectedSystem(own)
    for name, engine, rows in (("a", own, ROWS), ("b", other, ROWS[1:])):
        register(system, engine, Offer(name, Fraction(9), {"t": Given(rows, TYPES)}), lambda *_: None)
    for name in ("b", "a", "b"):
        assert isinstance(system.act(Query(name, Fraction(1), (Count(),))), Answered)
    # The second time it was in the cache.
    assert [len(own.seconds), len(other.seconds)] == [1, 1]
    system.act(Assign("both", Concat(), ("a", "b")))
    left = system.configuration().accounts
    with pytest.raises(BadTransformation, match="different engines"):
        system.act(Query("both", Fraction(1), (Count(),)))
    assert system.configuration().accounts == left


def test_an_engine_is_told_what_is_left_of_the_time() -> None:
    engine = Watched([])
    system = ProtectedSystem(engine)
    register(system, engine, Offer("a", Fraction(9), {"t": Given(ROWS, TYPES)}), lambda *_: None)
    with within(50):
        system.act(Query("a", Fraction(1), (Count(),)))
    assert 0 < engine.seconds[0] <= 50
