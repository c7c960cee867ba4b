"""Statistics to one SELECT, whole or by parts, and its rows back to exact integers.

Every statistic is made of a few integers per part: how many records, how many
have a value, the sum of grid points, the sum of their squares. These are
grouped by the partition's key in one scan, whatever the number of parts and of
different statistics; which parts they belong to, and the arithmetic that makes
moments of them, is done here with Python's integers. What leaves Spark is one
row per part (and per grid point that occurs, where frequencies were asked for).
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from fpinq.engines.spark.expressions import SQL_TYPES, Code, Scope
from fpinq.engines.spark.limbs import Limbs, exact
from fpinq.engines.spark.plans import Lowering, Relation
from fpinq.model.clamps import Clamp
from fpinq.model.expressions import INT64_MIN, Type, Value
from fpinq.model.statistics import Bernstein, Integers, Points, Records, Statistic, Totals
from fpinq.model.transformations import Partitioning

# Up to here the keys are written into the filter. Beyond it Spark's parser takes longer than a
# join with a table of them (5,000 keys: 12 s against 1.3 s).
_LISTED_KEYS = 100


@dataclass(frozen=True)
class Measurement:
    """One SQL text and what its columns mean."""

    sql: str
    parameters: Mapping[str, str]
    by: Partitioning | None
    statistics: Sequence[Statistic]
    groups: tuple[str, ...]
    aggregates: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the result."""
        return (*self.groups, *self.aggregates)

    def read(self, columns: Mapping[str, Sequence[Any]]) -> list[Integers]:
        """Each statistic from the columns that the text gave."""
        if self.names == ("g", "n"):
            return [_histogram(zip(columns["g"], columns["n"], strict=True))]
        parts: dict[Value, list[dict[str, Any]]] = {}
        for row in zip(*(columns[name] for name in self.names), strict=True):
            named = dict(zip(self.names, row, strict=True))
            parts.setdefault(named.get("k"), []).append(named)
        keys = (None,) if self.by is None else self.by.keys
        asked = zip(keys, self.statistics, strict=True)
        return [_integers(statistic, parts.get(key, [])) for key, statistic in asked]


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
        where = _is_in_a_part(scope, key, by)
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
        limbs = Limbs.up_to(max(clamp.magnitude for _, clamp in using))
        aggregates.update({f"s{slot}_{i}": sql for i, sql in enumerate(limbs.sums(f"x{slot}"))})
    if any(isinstance(statistic, Bernstein) for statistic in statistics):
        aggregates["m"] = "count(x0)"
    squared = [(i, q.of) for i, q in enumerate(statistics) if isinstance(q, Bernstein) and q.degree == 2]
    if squared:
        # From the lower bound a square is at most 2⁶²; parts with other statistics may have no value here.
        columns.append(("t", _dispatch(scope, by, key, squared, from_lower=True)))
        limbs = Limbs.up_to(max(clamp.width**2 for _, clamp in squared))
        aggregates.update({f"q_{i}": sql for i, sql in enumerate(limbs.sums("(t * t)"))})
    inner = f"({scope.select(table.source, columns or [('one', Code('1', Type.INT64))], where)})"
    hint = ""
    if by is not None and key is not None and where is None:
        hint = "/*+ BROADCAST(b) */ "
        inner = f"{inner} AS a LEFT SEMI JOIN {_keys(lowering, by, key.type)} AS b ON a.k <=> b.v"
    listed = [*groups, *(f"{sql} AS {name}" for name, sql in aggregates.items())]
    end = f" GROUP BY {', '.join(groups)}" if groups else ""
    sql = lowering.statement(f"SELECT {hint}{', '.join(listed)} FROM {inner}{end}")
    return Measurement(sql, lowering.parameters.given(), by, statistics, tuple(groups), tuple(aggregates))


def _keys(lowering: Lowering, by: Partitioning, type_: Type) -> str:
    """The partition's keys as a table that every worker gets a copy of."""
    texts = [None if key is None else _text(key) for key in by.keys]
    array = f"from_json({lowering.parameters.bind(json.dumps(texts))}, 'array<string>')"
    return f"(SELECT CAST(v AS {SQL_TYPES[type_]}) AS v FROM (SELECT explode({array}) AS v))"


def _text(key: Value) -> str:
    """A key as a string that Spark casts back to it."""
    if isinstance(key, float):
        return repr(key).replace("inf", "Infinity")
    return key.isoformat() if isinstance(key, date) else str(key)


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
    """The grid point of a record by its part's clamp; null or any value in parts without one."""
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


def _is_in_a_part(scope: Scope, key: Code, by: Partitioning) -> Code | None:
    """Whether a record is in any part, if that is short to say."""
    present: list[Any] = [value for value in by.keys if value is not None]
    if key.type is Type.INT64 and present and max(present) - min(present) + 1 == len(present):
        first, last = (scope.literal(end(present), key.type) for end in (min, max))
        test = f"{key.sql} BETWEEN {first.sql} AND {last.sql}"
        return scope.code(f"({test} OR {key.sql} IS NULL)" if None in by.keys else test, Type.BOOL, key)
    if len(by.keys) <= _LISTED_KEYS:
        return scope.code(_is_one_of(scope, key, by.keys), Type.BOOL, key)
    return None


def _is_one_of(scope: Scope, key: Code, values: Sequence[Value]) -> str:
    listed = ", ".join(scope.literal(value, key.type).sql for value in values if value is not None)
    tests = [f"{key.sql} IN ({listed})"] if listed else []
    tests += [f"{key.sql} IS NULL"] if None in values else []
    return f"({' OR '.join(tests)})"


def _histogram(pairs: Iterable[tuple[int | None, int]]) -> Integers:
    """The frequencies of grid points; records without one are left out."""
    return {point: count for point, count in pairs if point is not None}


def _integers(statistic: Statistic, rows: Sequence[Mapping[str, Any]]) -> Integers:
    """A statistic from its part's rows."""
    match statistic:
        case Points():
            return _histogram((row["g"], row["n"]) for row in rows)
        case Records():
            coordinates = {0: sum(row["n"] for row in rows)}
        case Bernstein():
            coordinates = _moments(statistic, rows)
        case Totals(of=clamps):
            slots = range(len(clamps))
            coordinates = {slot: sum(_total(row, f"s{slot}_") for row in rows) for slot in slots}
    return {coordinate: total for coordinate, total in coordinates.items() if total}


def _total(row: Mapping[str, Any], prefix: str) -> int:
    return exact([limb for name, limb in row.items() if name.startswith(prefix)])


def _moments(statistic: Bernstein, rows: Sequence[Mapping[str, Any]]) -> dict[int, int]:
    """Σ C(d, j)·tʲ·(W − t)ᵈ⁻ʲ from Σ1, Σx and Σt², with t = x − lower."""
    n = sum(row["m"] for row in rows)
    w = statistic.of.width
    t = sum(_total(row, "s0_") for row in rows) - n * statistic.of.lower
    if statistic.degree == 1:
        return {0: n * w - t, 1: t}
    squares = sum(_total(row, "q_") for row in rows)
    return {0: n * w * w - 2 * w * t + squares, 1: 2 * (w * t - squares), 2: squares}
