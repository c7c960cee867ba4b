"""Environments: names that are numbered stand for what each of them would, at the cost of one."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import pytest

from fpinq.checker.scope import SCHEMA, UNARY
from fpinq.model.accounts import Part, Root
from fpinq.model.actions import Action, Assign, Partition, Query
from fpinq.model.environments import Environment, Numbered, bind, bind_all, place, things, unbind
from fpinq.model.errors import BadAction, BadPartition, BadTransformation, ProgramError, UnknownTable
from fpinq.model.expressions import Column
from fpinq.model.keys import MAX_PARTS
from fpinq.model.maps import Each
from fpinq.model.plans import MAX_DEPTH, RootTable, Term
from fpinq.model.queries import Count
from fpinq.model.semantics import Configuration, initial, step
from fpinq.model.transformations import Distinct, Partitioning, PartOf
from growth.counting import allocated, calls

K = Column("k")
FILTER = next(iter(UNARY.values()))
# Those that look alike, and are or are not numbered.
STEMS = ("p", "p.1", "", "q.")
NAMES = [
    *STEMS,
    *(f"{stem}.{end}" for stem in STEMS for end in ("0", "1", "2", "3", "01", "-1", "x", "", "٣")),
]


def opened(*roots: str) -> Configuration:
    return initial({name: (SCHEMA, Fraction(100)) for name in roots})


def by(parts: int) -> Partitioning:
    return Partitioning(K, range(parts))


def count(table: str) -> Query:
    return Query(table, Fraction(1), (Count(),))


# ── names ────────────────────────────────────────────────────────────────────────────


def test_numbered_names_are_a_sequence_of_names() -> None:
    names = Numbered("p", 3)
    assert list(names) == list(names[:]) == ["p.0", "p.1", "p.2"]
    assert (names[-1], names[1:], len(names)) == ("p.2", ["p.1", "p.2"], 3)
    with pytest.raises(IndexError):
        names[3]


def test_a_name_is_numbered_in_one_way() -> None:
    for stem in STEMS:
        for number in (0, 1, 9, 10, 123, MAX_PARTS - 1):
            assert place(f"{stem}.{number}") == (stem, number)
    for name in ("p", "p.", "p.01", "p.-1", "p.+1", "p. 1", "p.1_0", "p.٣", "p.²", "p." + "9" * 5_000, ""):
        assert place(name)[1] < 0


def test_a_name_is_among_numbered_ones_if_it_is_one_of_them() -> None:
    for stem in STEMS:
        names = Numbered(stem, 3)
        assert [name for name in NAMES if name in names] == [name for name in NAMES if name in list(names)]
    assert 0 not in Numbered("p", 3)


@pytest.mark.parametrize("number", [-1, MAX_PARTS + 1, 10**30, True, 1.0, "1", None])
def test_numbered_names_are_no_more_than_parts_may_be(number: Any) -> None:
    with pytest.raises(BadPartition):
        Numbered("p", number)


# ── what they stand for ──────────────────────────────────────────────────────────────


def random_step(random: Random) -> tuple[Any, Any]:
    """A change of an environment, and the same of a dict."""
    name, more = random.choice(NAMES), random.randint(0, 4)
    value, numbered = f"{random.random()}", Numbered(random.choice(STEMS), more)
    values = [f"{value}/{i}" for i in range(more)]
    tables = {random.choice(NAMES): f"{value}/{i}" for i in range(more)}
    return random.choice(
        [
            (lambda e: bind(e, {name: value}), lambda d: {**d, name: value}),
            (lambda e: bind(e, tables), lambda d: {**d, **tables}),
            (
                lambda e: bind_all(e, numbered, Each(more, lambda number: values[number])),
                lambda d: {**d, **dict(zip(numbered, values, strict=True))},
            ),
            (lambda e: bind_all(e, tuple(tables), list(tables.values())), lambda d: {**d, **tables}),
            (lambda e: unbind(e, name), lambda d: {n: v for n, v in d.items() if n != name}),
            (
                lambda e: unbind(e, numbered),
                lambda d: {n: v for n, v in d.items() if n not in list(numbered)},
            ),
        ]
    )


@pytest.mark.parametrize("seed", range(200))
def test_an_environment_is_the_mapping_that_has_each_name(seed: int) -> None:
    random = Random(seed)
    environment: Any = {}
    plain: dict[str, str] = {}
    for _ in range(30):
        change, of_plain = random_step(random)
        before, was = environment, dict(environment)
        environment, plain = change(environment), of_plain(plain)
        assert environment == plain
        assert (len(environment), sorted(environment)) == (len(plain), sorted(plain))
        assert [environment.get(name) for name in NAMES] == [plain.get(name) for name in NAMES]
        assert [name in environment for name in NAMES] == [name in plain for name in NAMES]
        assert things(environment) <= len(plain) + len(STEMS)
        assert dict(before) == was  # it never changes


def test_an_environment_says_what_is_not_there() -> None:
    environment = bind_all({}, Numbered("p", 2), ["a", "b"])
    assert type(environment) is Environment
    assert repr(environment) == "Environment({'p.0': 'a', 'p.1': 'b'})"
    assert (environment.get("p.2", "none"), None in environment) == ("none", False)
    for name in ("p", "p.2", "q"):
        with pytest.raises(KeyError):
            environment[name]


# ── in the rules ─────────────────────────────────────────────────────────────────────


def random_program(random: Random) -> list[Action]:
    """Tables, parts and counts, of names that come again, and are those of parts at times."""
    names = ["A", "B.1", "t", "p", "p.0", "p.1", "p.2", "p.1.0", "p.01"]
    program: list[Action] = []
    for _ in range(12):
        table, target = random.choice(names), random.choice(names)
        match random.randint(0, 3):
            case 0:
                program.append(Assign(target, FILTER, (table,)))
            case 1 | 2:
                stem, parts = random.choice(["p", "p.1", "t", "B"]), random.randint(1, 3)
                program.append(Partition(Numbered(stem, parts), table, by(parts)))
            case _:
                program.append(count(table))
    return program


@pytest.mark.parametrize("seed", range(100))
def test_a_program_with_numbered_names_does_what_it_does_with_each_of_them(seed: int) -> None:
    one = other = opened("A", "B.1")
    for action in random_program(Random(seed)):
        spelled = action
        if isinstance(action, Partition):
            spelled = replace(action, targets=tuple(action.targets))
        try:
            after = step(one, action)
        except ProgramError as refused:
            with pytest.raises(type(refused)):
                step(other, spelled)
            continue
        expected = step(other, spelled)
        assert (after.rule, after.label) == (expected.rule, expected.label)
        one, other = after.configuration, expected.configuration
        assert one == other


def test_each_part_is_a_source_of_its_own() -> None:
    c = step(opened("A"), Partition(Numbered("p", 1_000), "A", by(1_000))).configuration
    assert [c.table(f"p.{i}").sensitivity for i in (0, 999)] == [{Part(0, 0): 1}, {Part(0, 999): 1}]
    c = step(step(c, count("p.7")).configuration, count("p.8")).configuration
    assert c.accounts.counters[Root("A")] == 1
    assert step(c, count("p.7")).configuration.accounts.counters[Root("A")] == 2
    with pytest.raises(UnknownTable):
        step(c, count("p.1000"))


@pytest.mark.parametrize("others", [0, 20])
def test_a_root_is_not_bound_as_one_of_many(others: int) -> None:
    c = opened("A", "p.5", *(f"r{i}" for i in range(others)))
    for parts in (6, 10, 30):
        with pytest.raises(BadTransformation, match="root"):
            step(c, Partition(Numbered("p", parts), "A", by(parts)))
    assert step(c, Partition(Numbered("p", 5), "A", by(5))).configuration.table("p.4")


def hostile(stem: Any, number: Any) -> Numbered:
    """Numbered names that were not made as they should be."""
    made = object.__new__(Numbered)
    for name, value in {"stem": stem, "number": number, "op": "numbered"}.items():
        object.__setattr__(made, name, value)
    return made


class _Names(Numbered):
    """A class that could answer differently each time it is asked."""


@pytest.mark.parametrize(
    ("targets", "error"),
    [
        (Numbered("p", 2), BadPartition),
        (Numbered("p", 4), BadPartition),
        (Numbered("\ud800", 3), BadTransformation),
        (hostile("p", 10**30), BadPartition),
        (hostile("p", -1), BadPartition),
        (hostile("p", True), BadAction),
        (hostile(1, 3), BadAction),
        (_Names("p", 3), BadAction),
        (["p", "q", "r"], BadAction),
    ],
)
def test_names_that_are_none_are_refused_before_anything_changes(
    targets: Sequence[str], error: type[Exception]
) -> None:
    with pytest.raises(error):
        step(opened("A"), Partition(targets, "A", by(3)))  # type: ignore[arg-type]


def test_parts_that_would_be_too_deep_are_refused_where_they_are_bound() -> None:
    c = opened("A")
    for _ in range(MAX_DEPTH):
        c = step(c, Assign("t", Distinct(), ("A" if "t" not in c.environment else "t",))).configuration
    for targets in (Numbered("p", 2), ("p.0", "p.1")):
        with pytest.raises(BadTransformation, match="too large"):
            step(c, Partition(targets, "t", by(2)))


@pytest.mark.parametrize("counted", [calls, allocated])
def test_to_bind_and_to_forget_parts_costs_the_same_however_many_they_are(counted: Any) -> None:
    def binding(parts: int) -> Any:
        c, names = opened("A"), Numbered("p", parts)

        def work() -> None:
            bound = step(c, Partition(names, "A", by(parts))).configuration
            assert bound.table(f"p.{parts - 1}")
            assert len(unbind(bound.environment, names)) == 1

        work()
        return counted(work)

    assert binding(100_000) <= 1.1 * binding(100) + 100


def test_the_plan_of_a_part_is_the_plan_that_is_made_by_itself() -> None:
    below = Term(FILTER, (RootTable("A"),))
    first = Term(PartOf(by(9), 0), (below,))
    assert hash(first) != hash(first.beside(by(9), 1))
    for number in range(9):
        part, alone = first.beside(by(9), number), Term(PartOf(by(9), number), (below,))
        assert (part, hash(part), repr(part)) == (alone, hash(alone), repr(alone))
        assert (part.depth, part.nodes, part.levels) == (alone.depth, alone.nodes, alone.levels)
