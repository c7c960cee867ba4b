"""Statistics to one SELECT, whole or by parts, and its rows back to exact integers.

Every statistic is made of a few integers per part: how many records, how many
have a value, the sum of grid points, the sum of their squares. These are
grouped by the partition's key in one scan; which parts they belong to, and the
arithmetic that makes moments of them, is done here with Python's integers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fpinq.engines.duckdb.expressions import SQL_TYPES, Code, Scope
from fpinq.engines.duckdb.plans import Lowering
from fpinq.engines.duckdb.relations import Relation
from fpinq.model.clamps import Clamp
from fpinq.model.expressions import INT64_MIN, Type, Value
from fpinq.model.statistics import Bernstein, Integers, Points, Records, Statistic, Totals
from fpinq.model.transformations import Partitioning

# Up to here a few comparisons are cheaper than grouping by keys nobody asked for.
_FEW_KEYS = 4


@dataclass(frozen=True)
class Measurement:
    """One SQL text and what its columns mean."""

    sql: str
    parameters: Mapping[str, Any]
    by: Partitioning | None
    statistics: Sequence[Statistic]
    names: tuple[str, ...]

    def read(self, rows: Sequence[Sequence[Any]]) -> list[Integers]:
        """Each statistic from the rows that the text gave."""
        parts: dict[Value, list[dict[str, Any]]] = {}
        for row in rows:
            named = dict(zip(self.names, row, strict=True))
            parts.setdefault(named.get("k"), []).append(named)
        keys = (None,) if self.by is None else self.by.keys
        asked = zip(keys, self.statistics, strict=True)
        return [_integers(statistic, parts.get(key, [])) for key, statistic in asked]

    @property
    def is_histogram(self) -> bool:
        """Whether the rows are (grid point, count) pairs of one statistic: many, all small integers."""
        return self.names == ("g", "n")


def histogram(points: Sequence[int | None], counts: Sequence[int]) -> Integers:
    """The frequencies of grid points; records without one are left out."""
    return {point: count for point, count in zip(points, counts, strict=True) if point is not None}


def lower(
    lowering: Lowering, table: Relation, by: Partitioning | None, statistics: Sequence[Statistic]
) -> Measurement:
    """The SQL text that gives each statistic of the table, or of its part."""
    scope = lowering.scope(table)
    key = None if by is None else scope.bind(scope.output(by.key))
    columns: list[tuple[str, Code]] = []
    aggregates: dict[str, str] = {}
    groups: list[str] = []
    where = None
    if by is not None and key is not None:
        columns.append(("k", key))
        groups.append("k")
        where = _roughly(scope, key, by)
    points = [(i, q.of) for i, q in enumerate(statistics) if isinstance(q, Points)]
    if points:
        columns.append(("g", _dispatch(scope, by, key, points)))
        groups.append("g")
    if any(isinstance(statistic, Records | Points) for statistic in statistics):
        aggregates["n"] = "count(*)"
    summed = [_summed(statistic) for statistic in statistics]
    for slot in range(max(map(len, summed), default=0)):
        using = [(i, clamps[slot]) for i, clamps in enumerate(summed) if len(clamps) > slot]
        columns.append((f"x{slot}", _dispatch(scope, by, key, using)))
        aggregates[f"s{slot}"] = f"sum(x{slot})"
    if any(isinstance(statistic, Bernstein) for statistic in statistics):
        aggregates["m"] = "count(x0)"
    squared = [(i, q.of) for i, q in enumerate(statistics) if isinstance(q, Bernstein) and q.degree == 2]
    if squared:
        # From the lower bound a square is at most 2⁶².
        columns.append(("t", _dispatch(scope, by, key, squared, from_lower=True)))
        aggregates["q"] = "sum(t * t)"
    inner = scope.select(table.source, columns or [("one", Code("1", Type.INT64))], where)
    listed = [*groups, *(f"{sql} AS {name}" for name, sql in aggregates.items())]
    end = f" GROUP BY {', '.join(groups)}" if groups else ""
    select = f"SELECT {', '.join(listed)} FROM ({inner}){end}"
    parameters: dict[str, Any] = {}
    if by is not None and key is not None and not _exact(by, key.type):
        array = f"CAST($keys AS {SQL_TYPES[key.type]}[])"
        listed_keys = f"(SELECT unnest({array}) AS v)"
        select = (
            f"SELECT a.* FROM ({select}) AS a SEMI JOIN {listed_keys} AS b ON a.k IS NOT DISTINCT FROM b.v"
        )
        parameters["keys"] = list(by.keys)
    names = (*groups, *aggregates)
    parameters.update(lowering.parameters.given())
    return Measurement(lowering.statement(select), parameters, by, statistics, names)


def _summed(statistic: Statistic) -> tuple[Clamp, ...]:
    """What is summed of every record."""
    return statistic.clamps if isinstance(statistic, Totals | Bernstein) else ()


def _dispatch(
    scope: Scope,
    by: Partitioning | None,
    key: Code | None,
    using: Sequence[tuple[int, Clamp]],
    *,
    from_lower: bool = False,
) -> Code:
    """The grid point of a record by its part's clamp; parts without one may have any value."""
    wanted: dict[Clamp, list[int]] = {}
    for part, clamp in using:
        wanted.setdefault(clamp, []).append(part)
    codes = {clamp: _point(scope, clamp, from_lower) for clamp in wanted}
    if len(codes) == 1:
        (code,) = codes.values()
        return code
    assert by is not None
    assert key is not None
    branches = [
        f"WHEN {_is_one_of(scope, key, [by.keys[part] for part in parts_of])} THEN {codes[clamp].sql}"
        for clamp, parts_of in wanted.items()
    ]
    return scope.code(f"CASE {' '.join(branches)} END", Type.INT64, key, *codes.values())


def _point(scope: Scope, clamp: Clamp, from_lower: bool) -> Code:
    point = scope.quantise(clamp)
    if not from_lower:
        return point
    lower = scope.literal(max(clamp.lower, INT64_MIN), Type.INT64)
    return scope.code(f"{point.sql} - {lower.sql}", Type.INT64, point)


def _is_one_of(scope: Scope, key: Code, values: Sequence[Value]) -> str:
    listed = ", ".join(scope.literal(value, key.type).sql for value in values if value is not None)
    tests = [f"{key.sql} IN ({listed})"] if listed else []
    tests += [f"{key.sql} IS NULL"] if None in values else []
    return f"({' OR '.join(tests)})"


def _exact(by: Partitioning, type_: Type) -> bool:
    """Whether `_roughly` keeps (almost) no keys but the partition's."""
    return type_ is Type.BOOL or len(by.keys) <= _FEW_KEYS or _is_range(by)


def _is_range(by: Partitioning) -> bool:
    present = [key for key in by.keys if type(key) is int]
    others = len(by.keys) - len(present)
    return bool(present) and others <= (None in by.keys) and max(present) - min(present) + 1 == len(present)


def _roughly(scope: Scope, key: Code, by: Partitioning) -> Code | None:
    """A cheap test that all records of the parts pass."""
    if key.type is Type.BOOL:
        return None
    if len(by.keys) <= _FEW_KEYS:
        return scope.code(_is_one_of(scope, key, by.keys), Type.BOOL, key)
    if key.type is Type.STRING:
        return None
    present: list[Any] = [value for value in by.keys if value is not None]
    first, last = (scope.literal(end(present), key.type) for end in (min, max))
    test = f"{key.sql} BETWEEN {first.sql} AND {last.sql}"
    return scope.code(f"{test} OR {key.sql} IS NULL" if None in by.keys else test, Type.BOOL, key)


def _integers(statistic: Statistic, rows: Sequence[Mapping[str, Any]]) -> Integers:
    """A statistic from its part's rows."""
    match statistic:
        case Points():
            return {row["g"]: row["n"] for row in rows if row["g"] is not None}
        case Records():
            coordinates = {0: sum(row["n"] for row in rows)}
        case Bernstein():
            coordinates = _moments(statistic, rows)
        case Totals(of=clamps):
            coordinates = {slot: sum(row[f"s{slot}"] or 0 for row in rows) for slot in range(len(clamps))}
    return {coordinate: total for coordinate, total in coordinates.items() if total}


def _moments(statistic: Bernstein, rows: Sequence[Mapping[str, Any]]) -> dict[int, int]:
    """Σ C(d, j)·tʲ·(W − t)ᵈ⁻ʲ from Σ1, Σx and Σt², with t = x − lower."""
    n = sum(row["m"] for row in rows)
    w = statistic.of.width
    t = sum(row["s0"] or 0 for row in rows) - n * statistic.of.lower
    if statistic.degree == 1:
        return {0: n * w - t, 1: t}
    squares = sum(row["q"] or 0 for row in rows)
    return {0: n * w * w - 2 * w * t + squares, 1: 2 * (w * t - squares), 2: squares}
