"""Proof and reference engine mean the same by every transformation, plan and query, on random bags."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any, get_args

import pytest

from fpinq.checker.instances import KEYED, VISITS, WORDS, bodies, instances, outer_bodies, outer_joins
from fpinq.checker.scope import SCHEMA, K, V
from fpinq.engines import reference
from fpinq.engines.reference import Record, Relation, compute, measure, transform
from fpinq.model.clamps import Clamp
from fpinq.model.expressions import Column, Literal, Schema, Value
from fpinq.model.keys import Product
from fpinq.model.plans import Plan, Transformation, rows_at_most
from fpinq.model.queries import (
    Balance,
    Brackets,
    Choice,
    Count,
    CrossMoments,
    Depth,
    Frequencies,
    Lagrange,
    Moments,
    Noisy,
    Offset,
    Rank,
    Ranks,
    SimpleQuery,
    Sparse,
    Stable,
    Sum,
    Summary,
    Tally,
    Tree,
)
from fpinq.model.statistics import Records
from fpinq.model.transformations import ConcatAll, GroupBy, Partitioning
from proof import in_coq
from proof.conftest import Coq
from proof.in_coq import NotWritten

TRIALS = 4
ROWS: tuple[Record, ...] = (*KEYED, (None, None), (0, None), (1, 1), (2, 1), (2, 5))


def bag(random: Random, schema: Schema) -> Relation:
    """A few random records, some of them equal, some with nulls."""
    records = [(text,) for text in (None, *in_coq.TEXTS)] if schema == WORDS else ROWS
    return Relation(schema, tuple(random.choices(records, k=random.randint(0, 6))))


def listed(rows: Iterable[Sequence[Value]]) -> Counter[str]:
    """A bag of rows as Coq prints them."""
    return Counter(",".join(map(in_coq.shown, row)) for row in rows)


def read(printed: str) -> Counter[str]:
    """A bag of rows that Coq printed."""
    return Counter(printed.split(";")) if printed else Counter()


# ── transformations ──────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Case:
    """A transformation, tables for it, and what Coq makes of them."""

    transformation: Transformation
    tables: tuple[tuple[Relation, ...], ...]
    term: str

    def differences(self, printed: str) -> int:
        """How often the reference makes something else."""
        means = [transform(self.transformation, *tables) for tables in self.tables]
        assert len(means) == len(printed.split("|"))
        return sum(
            listed(mean.rows) != read(found) for mean, found in zip(means, printed.split("|"), strict=True)
        )


def cases() -> list[Case]:
    """Every instance of the stability search that has integers for values, on random bags."""
    random, made = Random(11), []
    for transformation, schemas in (*instances(), *outer_joins()):
        tables = tuple(tuple(bag(random, schema) for schema in schemas) for _ in range(TRIALS))
        try:
            shape = in_coq.shape(transformation, schemas)
            supplied = in_coq.arguments(transformation, schemas)
        except NotWritten:
            continue
        given = "; ".join("[" + "; ".join(in_coq.table(t.rows) for t in ts) + "]" for ts in tables)
        term = f"show_tables (map (meaning (record := row) {shape} {supplied}) [{given}])"
        made.append(Case(transformation, tables, term))
    return made


@pytest.fixture(scope="module")
def answered(coq: Coq) -> list[tuple[Case, str]]:
    """Every case with Coq's answer."""
    asked = cases()
    return list(zip(asked, coq([case.term for case in asked]), strict=True))


def test_only_averages_and_concats_of_many_are_not_written() -> None:
    written = {case.transformation for case in cases()}
    left_out = {t for t, _ in (*instances(), *outer_joins())} - written
    assert len(written) > 300
    left_out -= {ConcatAll(3)}
    assert all(isinstance(t, GroupBy) and "average" in repr(t.aggregates) for t in left_out)


def test_every_transformation_means_the_same(answered: list[tuple[Case, str]]) -> None:
    wrong = [case.transformation for case, printed in answered if case.differences(printed)]
    assert wrong == []


def _last(table: Relation, at_most: int) -> Relation:
    return Relation(table.schema, tuple(sorted(table.rows, key=reference.order)[-at_most:]))


def _null_last(record: Record) -> tuple[Any, ...]:
    return tuple((value is None, 0 if value is None else value) for value in record)


def _grouped(table: Relation, keys: Sequence[Any]) -> dict[Any, Relation]:
    return {key: group for key, group in _GROUP(table, keys).items() if None not in key}


def _as_sets(left: Relation, right: Relation, bag: bool, f: Callable[[int, int], int]) -> Iterable[Record]:
    return _BY_MULTIPLICITY(left, right, False, f)


_GROUP, _BY_MULTIPLICITY = reference._group, reference._by_multiplicity
MUTANTS: dict[str, tuple[str, Any]] = {
    "the last and not the first records": ("_first", _last),
    "nulls last in the canonical order": ("order", _null_last),
    "null keys join": ("_without_null_keys", lambda groups: groups),
    "null keys are no group": ("_group", _grouped),
    "bags are sets": ("_by_multiplicity", _as_sets),
    "truncation keeps all": ("_truncate", lambda _, group: group.rows),
    "truncation keeps nothing": ("_truncate", lambda *_: ()),
    "aggregates see nothing": ("_aggregate", lambda *_: 0),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_transformation_is_noticed(
    name: str, answered: list[tuple[Case, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    function, wrong = MUTANTS[name]
    monkeypatch.setattr(reference, function, wrong)
    assert any(case.differences(printed) for case, printed in answered)


# ── plans over one person's rows ─────────────────────────────────────────────────────


def test_a_person_s_plan_gives_the_same_rows_and_has_the_same_bound(coq: Coq) -> None:
    random = Random(12)
    asked: list[tuple[Plan, dict[str, Relation]]] = [
        (body, {"people": bag(random, SCHEMA), "visits": bag(random, SCHEMA)})
        for body in (*bodies(), *outer_bodies())
        for _ in range(TRIALS)
    ]
    terms = []
    for body, person in asked:
        people, visits = in_coq.table(person["people"].rows), in_coq.table(person["visits"].rows)
        plan = in_coq.plan(body, VISITS)
        tables = f"(fun t => match t with O => {people} | _ => {visits} end)"
        bound, given = f"show_nat (plan_at_most {plan})", f"show_rows (give (record := row) {tables} {plan})"
        terms.append(f'({bound} ++ "|" ++ {given})%string')
    for (body, person), printed in zip(asked, coq(terms), strict=True):
        bound, rows = printed.split("|")
        assert int(bound) == rows_at_most(body), body
        assert read(rows) == listed(compute(body, {}, person).rows), body


# ── queries ──────────────────────────────────────────────────────────────────────────

NARROW, WIDE, BELOW, FLAT = Clamp(V, -1, 2), Clamp(V, 0, 6), Clamp(V, -3, 0), Clamp(K, 0, 0)
BESIDE = Clamp(K, 0, 2)
NOISY: tuple[Noisy, ...] = (
    Count(),
    *(Sum(of) for of in (NARROW, WIDE, BELOW, FLAT)),
    *(Moments(of, degree) for of in (NARROW, WIDE, FLAT) for degree in (1, 2)),
    *(Lagrange(Clamp(V, 0, width)) for width in range(10)),
    *(Summary(of, degree) for of in (NARROW, WIDE, FLAT) for degree in (1, 2)),
    *(Offset(of) for of in (NARROW, WIDE, FLAT)),
    *(
        CrossMoments(of, degrees, weight, squares)
        for of in ((NARROW, WIDE), (WIDE, FLAT), (BESIDE, WIDE))
        for degrees, weight, squares in (((1, 1), 1, (0, 0)), ((2, 1), 3, (0, 0)), ((1, 2), 2, (5, 1)))
    ),
    CrossMoments((BESIDE, NARROW, WIDE), (1, 2, 1), 1, (3, 0, 0)),
    Tally(K, (Literal.of(2), Literal.of(0))),
    Tally(V, (Literal.of(5),)),
    *(Frequencies(of) for of in (NARROW, WIDE, FLAT)),
    *(Tree(of, branching, height) for of in (NARROW, WIDE) for branching in (2, 3) for height in (1, 2, 4)),
)
RANKS = tuple(
    Rank(of, Fraction(a, b)) for of in (NARROW, WIDE) for a, b in ((0, 1), (1, 2), (1, 3), (3, 4), (1, 1))
)
DEPTHS = tuple(Depth(of, records) for of in (NARROW, WIDE) for records in (0, 1, 3))
CHOICES = (Choice((WIDE, FLAT)), Choice((NARROW, WIDE)), Choice((BELOW,)), Choice((FLAT,)))


def _tables() -> list[Relation]:
    random = Random(13)
    return [bag(random, SCHEMA) for _ in range(5)]


def _integers(printed: str) -> list[int]:
    return [int(number) for number in printed.split(",") if number]


def test_what_noise_is_added_to_and_its_sensitivity_are_the_same(coq: Coq) -> None:
    asked = [(query, table) for query in NOISY for table in _tables()]
    written = [(in_coq.query(query, SCHEMA), in_coq.table(table.rows)) for query, table in asked]
    terms = [f"show_list show_Z (sensitivity {q} :: measure (coordinates {q}) {t})" for q, t in written]
    for (query, table), printed in zip(asked, coq(terms), strict=True):
        (statistic,) = measure(table, None, (query.statistic,))
        assert _integers(printed) == [query.sensitivity, *query.exact(statistic)], query


def test_the_squared_sensitivity_is_the_same(coq: Coq) -> None:
    found = coq([f"show_Z (AtRho.squared_sensitivity {in_coq.query(query, SCHEMA)})" for query in NOISY])
    assert [int(number) for number in found] == [query.squared for query in NOISY]


def test_what_is_chosen_by_its_sensitivity_and_whether_it_is_monotone_are_the_same(coq: Coq) -> None:
    tables = _tables()
    ranks = [(rank, table) for rank in RANKS for table in tables]
    choices = [(choice, table) for choice in CHOICES for table in tables]
    terms = []
    for rank, table in ranks:
        of = in_coq.query(rank, SCHEMA)
        c, f = of.removeprefix("(Rank ").removesuffix(")"), in_coq.table(table.rows)
        split = c.index(" (Build_Fraction")
        terms.append(f"show_list show_Z (sensitivity {of} :: rank_scores {c[:split]} {c[split:]} {f})")
    for choice, table in choices:
        of = in_coq.query(choice, SCHEMA)
        clamps = "[" + "; ".join(in_coq.clamp(c, SCHEMA) for c in choice.of) + "]"
        monotone = f"(if is_monotone {clamps} then 1 else 0)%Z"
        scored = f"candidate_scores {clamps} {in_coq.table(table.rows)}"
        terms.append(f"show_list show_Z (sensitivity {of} :: {monotone} :: {scored})")
    found = coq(terms)
    for (rank, table), printed in zip(ranks, found, strict=False):
        (statistic,) = measure(table, None, (rank.statistic,))
        runs = rank.scores(statistic)
        scores = [score for first, last, score in runs for _ in range(last - first + 1)]
        assert _integers(printed) == [rank.sensitivity, *scores], rank
    for (choice, table), printed in zip(choices, found[len(ranks) :], strict=True):
        (statistic,) = measure(table, None, (choice.statistic,))
        scores = [statistic.get(candidate, 0) for candidate in range(len(choice.of))]
        assert _integers(printed) == [choice.sensitivity, int(choice.monotone), *scores], choice


def test_what_is_chosen_with_more_records_at_the_bounds_is_the_same(coq: Coq) -> None:
    half, third = Fraction(1, 2), Fraction(1, 3)
    asked = [
        (Brackets(of, (half, third), (3, 0), (1, 5)), table) for of in (NARROW, WIDE) for table in _tables()
    ]
    terms = []
    for query, table in asked:
        whole, c, t = in_coq.query(query, SCHEMA), in_coq.clamp(query.of, SCHEMA), in_coq.table(table.rows)
        scored = [
            f"beside_scores {c} {in_coq.fraction(rank.fraction)} {below} {above} {t}"
            for rank, low, high in zip(query.each(), query.below, query.above, strict=True)
            for below, above in ((low, 0), (0, 0), (0, high))
        ]
        terms.append(f"show_list show_Z (sensitivity {whole} :: {' ++ '.join(scored)})")
    for (query, table), printed in zip(asked, coq(terms), strict=True):
        (statistic,) = measure(table, None, (query.statistic,))
        runs = [run for choices in query.choices(statistic) for run in choices.runs]
        scores = [score for first, last, score in runs for _ in range(last - first + 1)]
        assert _integers(printed) == [query.sensitivity, *scores], query


def test_the_parts_of_a_balance_and_their_sensitivity_are_the_same(coq: Coq) -> None:
    abouts = (None, Fraction(1), Fraction(3, 2), Fraction(2))
    balances = [Balance(of, 4, 1, 1, about) for of in (NARROW, WIDE) for about in abouts]
    asked = [(balance, table) for balance in balances for table in _tables()]
    written = [(in_coq.query(query, SCHEMA), in_coq.table(table.rows)) for query, table in asked]
    terms = [f"show_list show_Z (sensitivity {q} :: measure (coordinates {q}) {t})" for q, t in written]
    for (balance, table), printed in zip(asked, coq(terms), strict=True):
        (statistic,) = measure(table, None, (balance.statistic,))
        assert _integers(printed) == [balance.sensitivity, *balance.parts(statistic)], balance


def test_what_is_chosen_by_its_depth_is_the_same(coq: Coq) -> None:
    asked = [(depth, table) for depth in DEPTHS for table in _tables()]
    terms = [
        f"show_list show_Z (sensitivity {in_coq.query(depth, SCHEMA)} :: "
        f"depth_scores {in_coq.clamp(depth.of, SCHEMA)} {depth.records} {in_coq.table(table.rows)})"
        for depth, table in asked
    ]
    for (depth, table), printed in zip(asked, coq(terms), strict=True):
        (statistic,) = measure(table, None, (depth.statistic,))
        (choices,) = depth.choices(statistic)
        scores = [score for first, last, score in choices.runs for _ in range(last - first + 1)]
        assert _integers(printed) == [depth.sensitivity, *scores], depth


def test_a_query_releases_as_many_integers(coq: Coq) -> None:
    half, third = Fraction(1, 2), Fraction(1, 3)
    asked = (
        *NOISY,
        *(query for query in (*RANKS, *DEPTHS, *CHOICES)),
        Ranks(NARROW, (half, third)),
        Brackets(WIDE, (half, third), (3, 0), (1, 5)),
        Balance(WIDE, 4, 1, 1, None),
    )
    found = coq([f"show_nat (integers {in_coq.query(query, SCHEMA)})" for query in asked])
    assert [int(number) for number in found] == [query.integers for query in asked]


def test_every_query_that_there_is_is_written() -> None:
    asked = (*NOISY, *RANKS, *DEPTHS, *CHOICES)
    separately = {Ranks, Brackets, Balance}
    not_proved = {Sparse, Stable}  # docs/model says so
    assert {type(query) for query in asked} | separately | not_proved == set(get_args(SimpleQuery))


@pytest.mark.parametrize(
    "by",
    [
        Partitioning(K, (None, 1, 0, 2)),
        Partitioning(K, range(3)),
        Partitioning((K, V), ((0, 1), (None, None), (2, 5), (0, None))),
        Partitioning((V, K), Product((range(3), (None, 0, 1)))),
    ],
    ids=["listed", "numbered", "tuples", "product"],
)
def test_a_parallel_query_asks_of_the_same_parts(by: Partitioning, coq: Coq) -> None:
    random = Random(14)
    tables = [bag(random, SCHEMA) for _ in range(20)]
    keys = [key if isinstance(key, tuple) else (key,) for key in by.keys]
    parts = "; ".join(in_coq.row(key) for key in keys)
    names = [value.name for value in by.expressions if isinstance(value, Column)]
    key = "; ".join(f"column {SCHEMA.names().index(name)} r" for name in names)
    terms = [
        f"show_list show_nat (map (fun k => List.length (Stability.members (fun r => [{key}]) k "
        f"{in_coq.table(table.rows)})) [{parts}])"
        for table in tables
    ]
    for table, printed in zip(tables, coq(terms), strict=True):
        counts = [s.get(0, 0) for s in measure(table, by, (Records(),) * len(keys))]
        assert _integers(printed) == counts


def test_a_concat_of_several_means_one_after_the_other(coq: Coq) -> None:
    random, asked = Random(15), list[tuple[Relation, ...]]()
    for tables in (2, 3, 5):
        asked += [tuple(bag(random, SCHEMA) for _ in range(tables)) for _ in range(TRIALS)]
    terms = []
    for tables in asked:
        term = in_coq.table(tables[0].rows)
        for table in tables[1:]:
            term = f"(meaning (record := row) Concat tt [{term}; {in_coq.table(table.rows)}])"
        terms.append(f"show_rows {term}")
    for tables, printed in zip(asked, coq(terms), strict=True):
        assert read(printed) == listed(transform(ConcatAll(len(tables)), *tables).rows)
