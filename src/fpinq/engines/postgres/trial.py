"""A trial: before a PostgreSQL is trusted with questions it answers some whose answers are known.

Its version must be one that the suites have run on, and its texts UTF-8. The questions go where a
build or a libc could differ: sums that 64 bits do not hold, keys that are null or ∞, doubles at
both ends, texts that languages sort otherwise. They are written out as SQL, so that no table is needed.
"""

from fpinq.engines import reference
from fpinq.engines.postgres.database import Statements, check_version
from fpinq.engines.postgres.dialect import POSTGRES
from fpinq.engines.sql import statistics as lowered
from fpinq.engines.sql.expressions import Parameters, render
from fpinq.engines.sql.plans import Lowering
from fpinq.engines.sql.relations import Stored
from fpinq.model.clamps import Clamp
from fpinq.model.errors import UnfitEngine
from fpinq.model.expressions import INT64_MAX, INT64_MIN, Apply, Column, Expression, Literal, Schema, Type
from fpinq.model.plans import Plan, RootTable, Term
from fpinq.model.statistics import Points, Records, Statistic, Totals
from fpinq.model.transformations import Concat, Distinct, LimitPerKey, Partitioning, Where

_SCHEMA = Schema.of({"k": Type.STRING, "x": Type.INT64, "f": Type.FLOAT64})
_INF = float("inf")
_ROWS = (
    ("A", INT64_MAX, 5e-324), ("i", INT64_MAX, 1.7976931348623157e308), ("a", None, -1e300),
    (None, INT64_MIN, _INF), ("i", INT64_MAX, None), ("É", 1, -5e-324), ("e", -7, 0.5), ("é", 2, 2.5),
)  # fmt: skip
_F, _X, _K = Column("f"), Column("x"), Column("k")
_TABLE = RootTable("t")
Question = tuple[Plan, Partitioning | None, list[Statistic]]


def check(statements: Statements) -> None:
    """UnfitEngine unless the version is a tested one, and the answers are the reference's."""
    version = statements.version
    check_version(version)
    ((encoding,),) = statements.rows("SELECT current_setting('server_encoding')")
    if encoding != "UTF8":
        raise UnfitEngine(f"the texts of this database are {encoding}: use one whose encoding is UTF8")
    if any(_measured(statements, *question) != _known(*question) for question in _questions()):
        raise UnfitEngine(f"PostgreSQL {version} answers wrongly where the answer is known")


def _questions() -> list[Question]:
    by = Partitioning(_K, ("A", None, "none", "i"))
    everything = Totals((Clamp(_X, INT64_MIN, INT64_MAX),))
    twice = Term(Distinct(), (Term(Concat(), (_TABLE, _TABLE)),))
    # Which come first is by code point: A, a, e, i, É, é.
    first = Term(LimitPerKey(2, (Apply("is_null", (_X,)),)), (_TABLE,))
    questions: list[Question] = [
        (_TABLE, by, [Records(), everything, Records(), everything]),
        (twice, None, [Records()]),
        (first, None, [everything]),
    ]
    questions += [(Term(Where(truth), (_TABLE,)), None, [Records()]) for truth in _truths()]
    return questions + [(_TABLE, None, [Points(Clamp(number, -(2**53), 2**53))]) for number in _doubles()]


def _truths() -> list[Expression]:
    day = Apply("to_string", (Apply("to_date", (Literal.of("0044-03-15"),)),))
    return [
        Apply("less", (_K, Literal.of("a"))),
        Apply("equal", (Apply("lower", (_K,)), Literal.of("é"))),
        Apply("is_null", (Apply("to_int64", (Literal.of("9223372036854775808"),)),)),
        Apply("equal", (day, Literal.of("0044-03-15"))),
        Apply("equal", (Apply("to_float64", (Literal.of("1e400"),)), _F)),
    ]


def _doubles() -> list[Expression]:
    scale, half = Literal.of(1e308), Literal.of(0.5)
    return [
        Apply("add", (_F, _F)),
        Apply("multiply", (Apply("multiply", (_F, half)), scale)),
        Apply("divide", (_F, scale)),
        Apply("modulo", (_F, Literal.of(0.1))),
        Apply("power", (_F, half)),
        Apply("round", (_F,)),
    ]


def _measured(
    statements: Statements, plan: Plan, by: Partitioning | None, statistics: list[Statistic]
) -> object:
    lowering = Lowering(POSTGRES, {})
    lowering.roots = {"t": Stored(_written(lowering.parameters), _SCHEMA)}
    measurement = lowered.lower(lowering, lowering.plan(plan), by, statistics)
    return measurement.read(statements.rows(measurement.sql, list(lowering.parameters.given().values())))


def _written(parameters: Parameters) -> str:
    rows = (
        ", ".join(render(v, t, parameters) for v, t in zip(row, _SCHEMA.types(), strict=True))
        for row in _ROWS
    )
    return f"(SELECT * FROM (VALUES {', '.join(f'({row})' for row in rows)}) AS v(c0, c1, c2))"


def _known(plan: Plan, by: Partitioning | None, statistics: list[Statistic]) -> object:
    table = reference.Relation(_SCHEMA, _ROWS)
    return reference.measure(reference.compute(plan, {"t": table}), by, statistics)
