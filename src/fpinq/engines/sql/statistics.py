"""Statistics to one SELECT, whole or by parts, and its rows back to exact integers.

Every statistic is made of a few integers per part: how many records, how many
have a value, the sum of grid points, the sum of their squares. These are
grouped by the partition's key in one scan, whatever the number of parts and of
different statistics; which parts they belong to, and the arithmetic that makes
moments of them, is done here with Python's integers. What leaves the database is
one row per part (and per grid point that occurs, where frequencies were asked for).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fpinq.engines.sql.dialect import Dialect
from fpinq.engines.sql.expressions import Bindings, Code
from fpinq.engines.sql.plans import Lowering
from fpinq.engines.sql.relations import Lowered
from fpinq.model.clamps import Clamp
from fpinq.model.expressions import INT64_MIN, Type, Value
from fpinq.model.statistics import Bernstein, Integers, Points, Records, Statistic, Totals
from fpinq.model.transformations import Partitioning

# One row of what a text gave, by the names of its columns.
_Row = Mapping[str, Any]


@dataclass(frozen=True)
class Measurement:
    """One SQL text and what its columns mean; `sums` says which of them hold a sum together."""

    sql: str
    parameters: Mapping[str, Any]
    by: Partitioning | None
    statistics: Sequence[Statistic]
    names: tuple[str, ...]
    sums: Mapping[str, Sequence[str]]
    dialect: Dialect

    @property
    def is_histogram(self) -> bool:
        """Whether the rows are (grid point, count) pairs of one statistic: many, all small integers."""
        return self.names == ("g", "n")

    def read(self, rows: Iterable[Sequence[Any]]) -> list[Integers]:
        """Each statistic from the rows that the text gave."""
        parts: dict[Value, list[_Row]] = {}
        for row in rows:
            named = dict(zip(self.names, row, strict=True))
            parts.setdefault(named.get("k"), []).append(named)
        keys = (None,) if self.by is None else self.by.keys
        asked = zip(keys, self.statistics, strict=True)
        return [self._integers(statistic, parts.get(key, [])) for key, statistic in asked]

    def read_columns(self, columns: Sequence[Sequence[Any]]) -> list[Integers]:
        """Each statistic from the columns that the text gave, in the order of their names."""
        if not self.is_histogram:
            return self.read(zip(*columns, strict=True))
        points, counts = columns
        return [{point: n for point, n in zip(points, counts, strict=True) if point is not None}]

    def _integers(self, statistic: Statistic, rows: Sequence[_Row]) -> Integers:
        """A statistic from its part's rows."""
        match statistic:
            case Points():
                return {row["g"]: row["n"] for row in rows if row["g"] is not None}
            case Records():
                coordinates = {0: sum(row["n"] for row in rows)}
            case Bernstein():
                coordinates = self._moments(statistic, rows)
            case Totals(of=clamps):
                coordinates = {slot: self._total(f"s{slot}", rows) for slot in range(len(clamps))}
        return {coordinate: total for coordinate, total in coordinates.items() if total}

    def _moments(self, statistic: Bernstein, rows: Sequence[_Row]) -> dict[int, int]:
        """Σ C(d, j)·tʲ·(W − t)ᵈ⁻ʲ from Σ1, Σx and Σt², with t = x − lower."""
        n = sum(row["m"] for row in rows)
        w = statistic.of.width
        t = self._total("s0", rows) - n * statistic.of.lower
        if statistic.degree == 1:
            return {0: n * w - t, 1: t}
        squares = self._total("q", rows)
        return {0: n * w * w - 2 * w * t + squares, 1: 2 * (w * t - squares), 2: squares}

    def _total(self, name: str, rows: Sequence[_Row]) -> int:
        columns = self.sums[name]
        return sum(self.dialect.exact([row[column] for column in columns]) for row in rows)


@dataclass
class _Listed:
    """What a measurement selects of every record, groups by and aggregates."""

    dialect: Dialect
    columns: list[tuple[str, Code]] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    aggregates: dict[str, str] = field(default_factory=dict)
    sums: dict[str, Sequence[str]] = field(default_factory=dict)

    def group(self, name: str, code: Code) -> None:
        self.columns.append((name, code))
        self.groups.append(name)

    def sum(self, name: str, column: str, magnitude: int) -> None:
        parts = {f"{name}_{i}": sql for i, sql in enumerate(self.dialect.wide_sum(column, magnitude))}
        self.aggregates |= parts
        self.sums[name] = tuple(parts)

    @property
    def listed(self) -> str:
        return ", ".join([*self.groups, *(f"{sql} AS {name}" for name, sql in self.aggregates.items())])


def lower(
    lowering: Lowering, table: Lowered, by: Partitioning | None, statistics: Sequence[Statistic]
) -> Measurement:
    """The SQL text that gives each statistic of the table, or of its part."""
    dialect, bindings, of = lowering.dialect, lowering.bindings(table), _Listed(lowering.dialect)
    parts = None
    if by is not None:
        parts = _Parts(bindings, bindings.bind(bindings.output(by.key)), by)
        of.group("k", parts.key)
    _list(bindings, parts, statistics, of)
    where = parts.test() if parts is not None else None
    source = f"({bindings.select(table.source, of.columns or [('one', Code('1', Type.INT64))], where)})"
    if parts is not None and not parts.are_tested:
        keys = dialect.keys(parts.by.keys, parts.key.type, lowering.parameters)
        select = dialect.grouped_by_key(source, of.listed, of.groups, keys)
    else:
        end = f" GROUP BY {', '.join(of.groups)}" if of.groups else ""
        select = f"SELECT {of.listed} FROM {source} AS d{end}"
    sql, names = lowering.statement(select), (*of.groups, *of.aggregates)
    return Measurement(sql, lowering.parameters.given(), by, statistics, names, of.sums, dialect)


def _list(bindings: Bindings, parts: "_Parts | None", statistics: Sequence[Statistic], of: _Listed) -> None:
    """What the statistics take of every record."""
    points = [(i, s.of) for i, s in enumerate(statistics) if isinstance(s, Points)]
    if points:
        of.group("g", _dispatch(bindings, parts, points))
    if any(isinstance(statistic, Records | Points) for statistic in statistics):
        of.aggregates["n"] = "count(*)"
    summed = [_summed(statistic) for statistic in statistics]
    for slot in range(max(map(len, summed), default=0)):
        using = [(i, clamps[slot]) for i, clamps in enumerate(summed) if len(clamps) > slot]
        of.columns.append((f"x{slot}", _dispatch(bindings, parts, using)))
        of.sum(f"s{slot}", f"x{slot}", max(clamp.magnitude for _, clamp in using))
    if any(isinstance(statistic, Bernstein) for statistic in statistics):
        of.aggregates["m"] = "count(x0)"
    squared = [(i, s.of) for i, s in enumerate(statistics) if isinstance(s, Bernstein) and s.degree == 2]
    if squared:
        # From the lower bound a square is at most 2⁶²; parts with other statistics may have no value here.
        of.columns.append(("t", _dispatch(bindings, parts, squared, from_lower=True)))
        of.sum("q", "(t * t)", max(clamp.width**2 for _, clamp in squared))


def _summed(statistic: Statistic) -> tuple[Clamp, ...]:
    """What is summed of every record."""
    return statistic.clamps if isinstance(statistic, Totals | Bernstein) else ()


def _dispatch(
    bindings: Bindings,
    parts: "_Parts | None",
    using: Sequence[tuple[int, Clamp]],
    *,
    from_lower: bool = False,
) -> Code:
    """The grid point of a record by its part's clamp; parts without one may have any value, or none."""
    wanted: dict[Clamp, list[int]] = {}
    for part, clamp in using:
        wanted.setdefault(clamp, []).append(part)
    codes = {clamp: _point(bindings, clamp, from_lower) for clamp in wanted}
    if len(codes) == 1:
        (code,) = codes.values()
        return code
    assert parts is not None
    keys = parts.by.keys
    branches = [
        f"WHEN {parts.is_one_of([keys[part] for part in parts_of])} THEN {codes[clamp].sql}"
        for clamp, parts_of in wanted.items()
    ]
    return bindings.code(f"CASE {' '.join(branches)} END", Type.INT64, parts.key, *codes.values())


def _point(bindings: Bindings, clamp: Clamp, from_lower: bool) -> Code:
    point = bindings.quantise(clamp)
    if not from_lower:
        return point
    lower = bindings.literal(max(clamp.lower, INT64_MIN), Type.INT64)
    return bindings.code(f"{point.sql} - {lower.sql}", Type.INT64, point)


@dataclass(frozen=True)
class _Parts:
    """A partition's key, and which of its values are keys of parts."""

    bindings: Bindings
    key: Code
    by: Partitioning

    @property
    def are_tested(self) -> bool:
        """Whether hardly a record passes `test` that is in no part."""
        return self.key.type is Type.BOOL or self._is_range or self._are_few

    @property
    def _are_few(self) -> bool:
        return len(self.by.keys) <= self.bindings.dialect.most_listed_keys

    @property
    def _is_range(self) -> bool:
        present = [key for key in self.by.keys if type(key) is int]
        others = len(self.by.keys) - len(present)
        together = bool(present) and max(present) - min(present) + 1 == len(present)
        return together and others <= (None in self.by.keys)

    def test(self) -> Code | None:
        """A cheap test that all records of the parts pass."""
        if self.key.type is Type.BOOL:
            return None
        if self._are_few and not self._is_range:
            return self.bindings.code(self.is_one_of(self.by.keys), Type.BOOL, self.key)
        return None if self.key.type is Type.STRING else self._is_between()

    def _is_between(self) -> Code:
        present: list[Any] = [value for value in self.by.keys if value is not None]
        first, last = (self.bindings.literal(end(present), self.key.type).sql for end in (min, max))
        null = f" OR {self.key.sql} IS NULL" if None in self.by.keys else ""
        return self.bindings.code(f"{self.key.sql} BETWEEN {first} AND {last}{null}", Type.BOOL, self.key)

    def is_one_of(self, values: Sequence[Value]) -> str:
        """Whether the key is among some values."""
        constants = [self.bindings.literal(value, self.key.type).sql for value in values if value is not None]
        tests = [f"{self.key.sql} IN ({', '.join(constants)})"] if constants else []
        tests += [f"{self.key.sql} IS NULL"] if None in values else []
        return f"({' OR '.join(tests)})"
