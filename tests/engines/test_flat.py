"""What a plan costs as text, by counting: steps row by row are one SELECT, of the columns that are read."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpinq.engines import reference
from fpinq.engines.duckdb import DuckDB
from fpinq.model.clamps import Clamp
from fpinq.model.expressions import INT64_MAX, INT64_MIN, Apply, Column, Expression, Literal, Schema, Type
from fpinq.model.plans import Plan, RootTable, Term, Transformation
from fpinq.model.statistics import Records, Statistic, Totals
from fpinq.model.transformations import Concat, Distinct, GroupBy, Partitioning, PartOf, Select, Where

A, B, S = Column("a"), Column("b"), Column("s")
SCHEMA = Schema.of({"a": Type.INT64, "b": Type.FLOAT64, "s": Type.STRING})
ROWS = [
    {"a": a, "b": b, "s": s}
    for a in (None, 0, 1, -7, INT64_MAX, INT64_MIN)
    for b in (None, 0.0, 1.5, -1e308, float("inf"))
    for s in ("x", None)
]


@pytest.fixture(scope="module")
def db() -> Iterator[DuckDB]:
    engine = DuckDB()
    engine.add_root("t", ROWS, dict(SCHEMA.columns))
    yield engine
    engine.close()


def op(name: str, *arguments: Expression) -> Apply:
    return Apply(name, arguments)


def chain(steps: int, step: Callable[[int], Transformation]) -> Plan:
    plan: Plan = RootTable("t")
    for i in range(steps):
        plan = Term(step(i), (plan,))
    return plan


def selected(**record: Expression) -> Select:
    return Select(tuple(record.items()))


STEPS: dict[str, Callable[[int], Transformation]] = {
    "where": lambda i: Where(op("greater", A, Literal.of(-i))),
    "a test of text": lambda i: Where(op("contains", S, Literal.of(f"{i}"))),
    "part": lambda i: PartOf(Partitioning(A, (i, i + 1)), 0),
    "another order": lambda i: selected(b=B, a=A) if i % 2 else selected(a=A, b=B),
    "a sum of floats": lambda i: selected(a=A, b=op("add", B, Literal.of(0.5))),
    "a sum of integers": lambda i: selected(a=op("add", A, Literal.of(i)), b=B),
    "two mentions": lambda i: selected(a=op("add", A, A), b=op("if_else", op("less", A, A), B, B)),
    "computed, tested": lambda i: (
        Where(op("less", A, Literal.of(i))) if i % 2 else selected(a=op("add", A, Literal.of(i)), b=B)
    ),
}
# The most SELECTs that 40 steps take: two, and one for each value that is mentioned twice.
SELECTS = {"a sum of integers": 42, "two mentions": 44, "computed, tested": 23, "a sum of floats": 3}


def text(db: DuckDB, plan: Plan, statistic: Statistic) -> str:
    return db.explain(plan, None, [statistic])[0]


@pytest.mark.parametrize("kind", STEPS)
def test_steps_row_by_row_are_one_select_and_one_more_for_what_is_mentioned_twice(
    db: DuckDB, kind: str
) -> None:
    both = Totals((Clamp(A, 0, 10), Clamp(B, 0, 10)))
    assert text(db, chain(40, STEPS[kind]), both).count("SELECT") <= SELECTS.get(kind, 2)


@pytest.mark.parametrize("kind", STEPS)
def test_the_text_grows_linearly_with_the_steps(db: DuckDB, kind: str) -> None:
    both = Totals((Clamp(A, 0, 10), Clamp(B, 0, 10)))
    short, long = (len(text(db, chain(steps, STEPS[kind]), both)) for steps in (40, 80))
    assert long < 2.2 * short


def test_what_nothing_reads_is_not_in_the_text(db: DuckDB) -> None:
    plan = chain(30, STEPS["a sum of integers"])
    assert text(db, plan, Records()) == text(db, RootTable("t"), Records())


def test_what_follows_a_test_is_computed_of_the_rows_that_pass(db: DuckDB) -> None:
    slow = op("length", op("concat", S, op("upper", S)))
    plan = Term(Where(op("equal", A, Literal.of(1))), (RootTable("t"),))
    plan = Term(selected(n=slow), (plan,))
    plan = Term(Where(op("greater", Column("n"), Literal.of(2))), (plan,))
    sql = text(db, plan, Records())
    inner = sql[: sql.index(")", sql.index("FROM r"))]
    assert "WHERE" in inner
    assert "translate" in inner[: inner.index("FROM r")]


def test_a_test_of_one_use_is_not_a_test_of_another(db: DuckDB) -> None:
    computed = Term(selected(a=op("add", A, Literal.of(1))), (RootTable("t"),))
    once = Term(Where(op("equal", A, Literal.of(1))), (computed,))
    plan = Term(Concat(), (once, computed))
    assert counted(db, plan) == known(plan) == counted(db, once) + counted(db, computed)


# ── the same rows ────────────────────────────────────────────────────────────────────

_NUMBERS = st.sampled_from([Literal.of(0), Literal.of(1), Literal.of(-3), Literal.of(2**62), A])
_FLOATS = st.sampled_from([Literal.of(0.0), Literal.of(-2.5), Literal.of(1e300), B])
_INTEGERS_OF = st.sampled_from(["add", "subtract", "multiply", "floor_divide", "modulo"])
_FLOATS_OF = st.sampled_from(["add", "subtract", "multiply", "divide", "modulo", "power"])
_COMPARED = st.sampled_from(["less", "equal", "greater_equal"])


@st.composite
def steps(draw: st.DrawFn) -> Transformation:
    kind = draw(st.integers(0, 5))
    if kind == 0:
        return Where(op(draw(_COMPARED), A, draw(_NUMBERS)))
    if kind == 1:
        return Where(op("not", op(draw(_COMPARED), draw(_FLOATS), B)))
    if kind == 2:
        return PartOf(Partitioning(A, (0, None, 1, -3)), draw(st.integers(0, 3)))
    if kind == 3:
        return draw(st.sampled_from([Distinct(), GroupBy((("a", A), ("b", B), ("s", S)), ())]))
    a = op(draw(_INTEGERS_OF), A, draw(_NUMBERS))
    b = op(draw(_FLOATS_OF), B, draw(_FLOATS))
    either = op("if_else", op("less", A, draw(_NUMBERS)), a, A)
    return selected(a=draw(st.sampled_from([a, either, A])), b=draw(st.sampled_from([b, B])), s=S)


@given(st.lists(steps(), max_size=12))
def test_a_chain_of_steps_has_the_reference_rows(db: DuckDB, transformations: list[Transformation]) -> None:
    plan = chain(len(transformations), lambda i: transformations[i])
    found = Counter(map(repr, db.rows(plan).rows))
    assert found == Counter(map(repr, reference.compute(plan, {"t": _table()}).rows))
    assert counted(db, plan) == known(plan)


def counted(db: DuckDB, plan: Plan) -> int:
    return db.measure(plan, None, [Records()])[0].get(0, 0)


def known(plan: Plan) -> int:
    return len(reference.compute(plan, {"t": _table()}).rows)


def _table() -> reference.Relation:
    return reference.Relation(SCHEMA, tuple((row["a"], row["b"], row["s"]) for row in ROWS))


# ── files ────────────────────────────────────────────────────────────────────────────


def of_a_file(folder: Path, columns: int) -> tuple[DuckDB, list[str]]:
    """A file with so many columns beside a and s, and what is asked of it as SQL."""
    path, engine = folder / f"{columns}.parquet", DuckDB()
    others = ", ".join(f"'x' AS \"SELECT c{i}\"" for i in range(columns))
    duckdb.execute(f"COPY (SELECT {others}, 1 AS a, 's' AS s) TO '{path}'")
    engine.add_root("t", str(path))
    plans = [chain(3, STEPS["where"]), chain(3, STEPS["a test of text"]), RootTable("t")]
    asked = [(plan, by, statistic) for plan in plans for by, statistic in _ASKED]
    return engine, [engine.explain(plan, by, [statistic])[0] for plan, by, statistic in asked]


_ASKED: list[tuple[Partitioning | None, Statistic]] = [
    (None, Records()),
    (None, Totals((Clamp(A, 0, 10),))),
    (Partitioning(S, tuple("abcdefg")), Records()),
]


def test_a_statement_is_as_long_as_what_it_reads_of_a_file_and_not_as_the_file_is_wide(
    tmp_path: Path,
) -> None:
    texts = []
    for columns in (1, 100):
        engine, found = of_a_file(tmp_path, columns)
        engine.close()
        texts.append([len(sql) for sql in found])
    # The names of a and s have more digits.
    assert all(wide <= narrow + 40 for narrow, wide in zip(*texts, strict=True))


def test_a_file_with_columns_that_nobody_reads_has_the_same_integers(tmp_path: Path) -> None:
    engine, _ = of_a_file(tmp_path, 30)
    plan = chain(3, STEPS["where"])
    for table, expected in ((plan, [{0: 1}]), (RootTable("t"), [{0: 1}])):
        assert [engine.measure(table, None, [statistic]) for by, statistic in _ASKED if by is None] == [
            expected
        ] * 2
    engine.close()
