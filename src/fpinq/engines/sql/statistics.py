"""Statistics to one SELECT, whole or by parts, and its rows back to exact integers.

Every statistic is made of a few integers per part: how many records, how many
have a value, the sum of grid points, of their squares and products. These are
grouped by the partition's key in one scan, whatever the number of parts and of
different statistics; which parts they belong to, and the arithmetic that makes
moments of them, is done here with Python's integers. What leaves the database is
one row per part (and per grid point or key that occurs, where frequencies or keys were asked for).
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from itertools import repeat
from math import prod
from typing import TYPE_CHECKING, Any

from fpinq.engines.columns import MOST_ROWS, Columns, are_narrow, column, largest, placed, positions, wide
from fpinq.engines.sql.dialect import Dialect, Listing
from fpinq.engines.sql.expressions import Bindings, Code, Parameters
from fpinq.engines.sql.plans import Lowering
from fpinq.engines.sql.relations import Lowered
from fpinq.model import expressions
from fpinq.model.clamps import Clamp
from fpinq.model.domains import ranks
from fpinq.model.expressions import Type, Value
from fpinq.model.frozen import dataclass
from fpinq.model.keys import Domain, Key, Listed, Product
from fpinq.model.statistics import (
    Bernstein,
    Integers,
    Monomials,
    Points,
    Records,
    Statistic,
    Support,
    Totals,
    alike,
)
from fpinq.model.transformations import Partitioning

if TYPE_CHECKING:
    from fpinq.engines.columns import Column

# One row of what a text gave, by the names of its columns.
_Row = Mapping[str, Any]

# A BIGINT in every dialect.
_ONE = "CAST(1 AS BIGINT)"

# Of so few parts, one after the other is faster than waking up NumPy.
FEW = 16


@dataclass(frozen=True)
class Measurement:
    """One SQL text and what its columns mean.

    `keys` are those of a part's key, and `sums` says which hold a sum together.
    """

    sql: str
    parameters: Mapping[str, Any]
    by: Partitioning | None
    statistics: Sequence[Statistic]
    keys: tuple[str, ...]
    names: tuple[str, ...]
    sums: Mapping[str, Sequence[str]]
    dialect: Dialect

    @property
    def is_histogram(self) -> bool:
        """Whether the rows are (grid point, count) pairs of one statistic: many, all small integers."""
        return self.names == ("g", "n")

    @property
    def is_alike(self) -> bool:
        """Whether there is one row of integers for each of many parts: then they are read as columns."""
        (first, *others), by = self.statistics, self.by
        are_many = not others and by is not None and len(by.keys) > FEW
        return are_many and not isinstance(first, Points | Support)

    @property
    def is_narrow(self) -> bool:
        """Whether the one statistic is computed in 64-bit integers: by what one record can add to it."""
        match self.statistics[0]:
            case Totals(of=clamps):
                return are_narrow(max(clamp.magnitude for clamp in clamps))
            case Bernstein(of=clamp, degree=degree):
                # No factor and no term of `_bernstein` is larger, and there are few of them.
                return are_narrow(8 * max(clamp.width, clamp.magnitude) ** degree)
            case Monomials(exponents=exponents) as products:
                return are_narrow(max(map(products.reach, exponents)))
        return True

    @cached_property
    def _products(self) -> Mapping[Monomials, int]:
        return _numbered(self.statistics)

    def read(self, rows: Iterable[Sequence[Any]]) -> Sequence[Integers]:
        """Each statistic from the rows that the text gave."""
        if self.is_alike:
            return self.read_columns(list(zip(*rows, strict=True)) or [()] * len(self.names))
        named = [dict(zip(self.names, row, strict=True)) for row in rows]
        keys, found = self._found([[row[name] for row in named] for name in self.keys], len(named))
        parts: dict[Hashable, list[_Row]] = {}
        for key, row in zip(found, named, strict=True):
            parts.setdefault(key, []).append(row)
        asked = zip(keys, alike(self.statistics, len(keys)), strict=True)
        return [self._integers(statistic, parts.get(key, [])) for key, statistic in asked]

    def _found(
        self, columns: Sequence[Sequence[Value]], rows: int
    ) -> tuple[Sequence[Hashable], Iterable[Hashable]]:
        """What the parts are looked up by, and so many rows, from the columns of their keys."""
        if self.by is None:
            return (None,), repeat(None, rows)
        keys = self.by.keys
        if len(columns) == 1:
            return keys, columns[0]
        if type(keys) is Product:
            return keys, zip(*columns, strict=True)
        return range(len(keys)), Listed(keys).numbers(columns)  # type: ignore[arg-type]

    def read_columns(self, columns: Sequence[Sequence[Any]]) -> Sequence[Integers]:
        """Each statistic from the columns that the text gave, in the order of their names."""
        if self.is_histogram:
            points, counts = columns
            return [{point: n for point, n in zip(points, counts, strict=True) if point is not None}]
        if not self.is_alike:
            return self.read(zip(*columns, strict=True))
        named = dict(zip(self.names, columns, strict=True))
        integers: dict[str, Column] = {
            name: column(named[name], narrow=True) for name in ("n", "m") if name in named
        }
        for name, parts in self.sums.items():
            each = zip(*(named[part] for part in parts), strict=True)
            integers[name] = column([self.dialect.exact(sums) for sums in each], narrow=self.is_narrow)
        return self.read_arrays([named[name] for name in self.keys], integers)

    def read_arrays(
        self, keys: "Sequence[Sequence[Any] | Column]", integers: "Mapping[str, Column]"
    ) -> Columns:
        """The one statistic of every part, from the keys that occur, by columns, and the integers of each."""
        assert self.by is not None
        where = positions(self.by.keys, *keys)
        known, parts = where >= 0, len(self.by.keys)
        return Columns([placed(c[known], where[known], parts) for c in self._coordinates(integers)])

    def _coordinates(self, integers: "Mapping[str, Column]") -> "Sequence[Column]":
        """The column of each coordinate of the one statistic."""
        match self.statistics[0]:
            case Records():
                return [integers["n"]]
            case Totals(of=clamps):
                return [integers[f"s{slot}"] for slot in range(len(clamps))]
            case Bernstein(of=clamp, degree=degree, missing=missing):
                named = [integers[name] for name in (*("m", "s0", "q")[: degree + 1], *["n"] * missing)]
                if not self.is_narrow or largest(named[0], named[-1] if missing else named[0]) > MOST_ROWS:
                    named = wide(*named)
                sums = list(_bernstein(clamp, *named[: degree + 1]).values())
                return [*sums, _missing(self.statistics[0], named[-1], named[0])] if missing else sums
            case Monomials(exponents=exponents):
                return [integers[f"p0_{k}"] for k in range(len(exponents))]
        raise AssertionError("grid points are no columns")

    def _integers(self, statistic: Statistic, rows: Sequence[_Row]) -> Integers:
        """A statistic from its part's rows."""
        match statistic:
            case Points():
                return {row["g"]: row["n"] for row in rows if row["g"] is not None}
            case Support(of=of, domain=domain):
                columns = [[row[name] for row in rows] for name in _found(of)]
                numbered = zip(ranks(domain, columns), rows, strict=True)
                return {number: row["n"] for number, row in numbered if number is not None}
            case Records():
                coordinates = {0: sum(row["n"] for row in rows)}
            case Bernstein():
                coordinates = self._moments(statistic, rows)
            case Totals(of=clamps):
                coordinates = {slot: self._total(f"s{slot}", rows) for slot in range(len(clamps))}
            case Monomials(exponents=exponents):
                name = f"p{self._products[statistic]}"
                coordinates = {k: self._total(f"{name}_{k}", rows) for k in range(len(exponents))}
        return {coordinate: total for coordinate, total in coordinates.items() if total}

    def _moments(self, statistic: Bernstein, rows: Sequence[_Row]) -> dict[int, int]:
        squares = [self._total("q", rows)] if statistic.degree == 2 else []
        present = sum(row["m"] for row in rows)
        found = _bernstein(statistic.of, present, self._total("s0", rows), *squares)
        if statistic.missing:
            found[statistic.degree + 1] = _missing(statistic, sum(row["n"] for row in rows), present)
        return found

    def _total(self, name: str, rows: Sequence[_Row]) -> int:
        columns = self.sums[name]
        return sum(self.dialect.exact([row[column] for column in columns]) for row in rows)


def _bernstein(clamp: Clamp, n: Any, s: Any, *squares: Any) -> dict[int, Any]:
    """Σ C(d, j)·tʲ·(W − t)ᵈ⁻ʲ from Σ1, Σx and Σt², with t = x − lower: of integers, or of columns of them."""
    w = clamp.width
    t = s - n * clamp.lower
    if not squares:
        return {0: n * w - t, 1: t}
    (q,) = squares
    return {0: n * (w * w) - 2 * w * t + q, 1: 2 * (w * t - q), 2: q}


def _missing(statistic: Bernstein, records: Any, present: Any) -> Any:
    """What the records without a value add: of integers, or of columns of them."""
    return (records - present) * statistic.of.width**statistic.degree


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
        parts = _parts(bindings, by)
        for name, column in parts.named():
            of.group(name, column.key)
    keys = tuple(of.groups)
    _list(bindings, parts, statistics, of)
    where = parts.test() if parts is not None else None
    source = f"({bindings.select(table.source, of.columns or [('one', Code('1', Type.INT64))], where)})"
    if parts is not None and not parts.are_tested:
        listings = parts.listings(lowering.parameters)
        select = dialect.grouped_by_key(source, of.listed, of.groups, listings)
    else:
        end = f" GROUP BY {', '.join(of.groups)}" if of.groups else ""
        select = f"SELECT {of.listed} FROM {source} AS d{end}"
    sql, names = lowering.statement(select), (*of.groups, *of.aggregates)
    lowering.parameters.selects(len(names))
    return Measurement(sql, lowering.parameters.of(sql), by, statistics, keys, names, of.sums, dialect)


def _list(bindings: Bindings, parts: "_Parts | None", statistics: Sequence[Statistic], of: _Listed) -> None:
    """What the statistics take of every record."""
    points = [(i, s.of) for i, s in enumerate(statistics) if isinstance(s, Points)]
    if points:
        of.group("g", _dispatch(bindings, parts, points))
    for support in {s: None for s in statistics if isinstance(s, Support)}:  # one, for all parts
        for name, expression in zip(_found(support.of), support.of, strict=True):
            of.group(name, bindings.bind(bindings.output(expression)))
    if any(_counts_all(statistic) for statistic in statistics):
        of.aggregates["n"] = "count(*)"
    summed = [_summed(statistic) for statistic in statistics]
    for slot in range(max(map(len, summed), default=0)):
        using = [(i, clamps[slot]) for i, clamps in enumerate(summed) if len(clamps) > slot]
        of.columns.append((f"x{slot}", _dispatch(bindings, parts, using)))
        of.sum(f"s{slot}", f"x{slot}", max(clamp.magnitude for _, clamp in using))
    if any(isinstance(statistic, Bernstein) for statistic in statistics):
        of.aggregates["m"] = f"count({_counted(bindings, summed, of)})"
    squared = [(i, s.of) for i, s in enumerate(statistics) if isinstance(s, Bernstein) and s.degree == 2]
    if squared:
        # From the lower bound a square is at most 2⁶²; parts with other statistics may have no value here.
        of.columns.append(("t", _dispatch(bindings, parts, squared, from_lower=True)))
        of.sum("q", "(t * t)", max(clamp.width**2 for _, clamp in squared))
    for products, number in _numbered(statistics).items():
        _multiply(bindings, products, number, of)


def _found(of: Sequence[object]) -> Sequence[str]:
    """What the columns of keys that are found are called."""
    return [f"h{i}" for i in range(len(of))]


def _numbered(statistics: Sequence[Statistic]) -> Mapping[Monomials, int]:
    """The different products, and a number for each."""
    different = dict.fromkeys(statistic for statistic in statistics if isinstance(statistic, Monomials))
    return {products: number for number, products in enumerate(different)}


def _multiply(bindings: Bindings, products: Monomials, number: int, of: _Listed) -> None:
    """The sums of products of grid points, from the lower bounds, of records that have all of them.

    They have columns of their own, of every part's records alike: what another part
    has instead is within other bounds, and its products could be too large.
    """
    columns = [f"y{number}_{i}" for i in range(len(products.of))]
    for name, clamp in zip(columns, products.of, strict=True):
        of.columns.append((name, _point(bindings, clamp, from_lower=True)))
    present = " AND ".join(f"{name} IS NOT NULL" for name in columns)
    for k, powers in enumerate(products.exponents):
        factors = [name for name, power in zip(columns, powers, strict=True) for _ in range(power)]
        product = f"CASE WHEN {present} THEN {' * '.join(factors) or _ONE} END"
        of.sum(f"p{number}_{k}", product, products.reach(powers))


def _counts_all(statistic: Statistic) -> bool:
    """Whether records without a value count, too."""
    return isinstance(statistic, Records | Points | Support) or (
        isinstance(statistic, Bernstein) and statistic.missing
    )


def _counted(bindings: Bindings, summed: Sequence[Sequence[Clamp]], of: _Listed) -> str:
    """What is null where a record has no grid point: a column before it is clamped, if it is one for all.

    A database that writes a subquery out wherever it is mentioned clamps once then, and not twice.
    """
    firsts = {clamps[0].value for clamps in summed if clamps}
    code = bindings.columns.get(first.name) if isinstance(first := firsts.pop(), expressions.Column) else None
    if firsts or code is None or not code.atom or code.raw:
        return "x0"
    of.columns.append(("v0", code))
    return "v0"


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
    keyed = [column.key for column in parts.columns]
    return bindings.code(f"CASE {' '.join(branches)} END", Type.INT64, *keyed, *codes.values())


def _point(bindings: Bindings, clamp: Clamp, from_lower: bool) -> Code:
    point = bindings.quantise(clamp)
    if not from_lower:
        return point
    lower = bindings.literal(clamp.lower, Type.INT64)
    return bindings.code(f"{point.sql} - {lower.sql}", Type.INT64, point)


# So many groups that are no parts are cheaper than to look up which are.
_MOST_SPARE_GROUPS = 4_096


def _parts(bindings: Bindings, by: Partitioning) -> "_Parts":
    keys = [bindings.bind(bindings.output(expression)) for expression in by.expressions]
    if not isinstance(by.key, tuple):
        domains: Sequence[Any] = [by.keys]
    elif type(by.keys) is Product:
        domains = by.keys.of
    else:
        domains = [tuple(dict.fromkeys(values)) for values in zip(*by.keys, strict=True)]
    return _Parts(bindings, [_KeyColumn(bindings, *each) for each in zip(keys, domains, strict=True)], by)


@dataclass(frozen=True)
class _Parts:
    """A partition's key, column by column, and which of its values are keys of parts."""

    bindings: Bindings
    columns: Sequence["_KeyColumn"]
    by: Partitioning

    def named(self) -> Iterable[tuple[str, "_KeyColumn"]]:
        """The columns of the key, each with its name among the groups."""
        names = ["k"] if len(self.columns) == 1 else [f"k{i}" for i in range(len(self.columns))]
        return zip(names, self.columns, strict=True)

    @property
    def are_tested(self) -> bool:
        """Whether hardly a record passes `test` that is in no part."""
        return self._are_few_spare and all(column.are_tested for column in self.columns)

    @property
    def _are_few_spare(self) -> bool:
        """Whether hardly a combination of the columns' values is no key."""
        if not self._are_tuples:
            return True
        return prod(len(column.values) for column in self.columns) <= len(self.by.keys) + _MOST_SPARE_GROUPS

    @property
    def _are_tuples(self) -> bool:
        """Whether keys of several columns are listed, one by one."""
        return isinstance(self.by.key, tuple) and type(self.by.keys) is tuple

    def test(self) -> Code | None:
        """A cheap test that all records of the parts pass."""
        tests = [test for column in self.columns if (test := column.test()) is not None]
        if len(tests) < 2:
            return tests[0] if tests else None
        return self.bindings.code(" AND ".join(f"({test.sql})" for test in tests), Type.BOOL, *tests)

    def listings(self, parameters: Parameters) -> Sequence[Listing]:
        """Tables of the keys: of all columns together, or of each that is not tested."""
        dialect = self.bindings.dialect
        if not self._are_tuples:
            each = [(name, column) for name, column in self.named() if not column.are_tested]
            return [
                dialect.keys({name: (column.values, column.key.type)}, parameters) for name, column in each
            ]
        values = zip(*self.by.keys, strict=True)
        named = zip(self.named(), values, strict=True)
        return [dialect.keys({name: (each, column.key.type) for (name, column), each in named}, parameters)]

    def is_one_of(self, keys: Sequence[Key]) -> str:
        """Whether the key is among some."""
        if len(self.columns) == 1:
            return self.columns[0].is_one_of(keys)  # type: ignore[arg-type]
        codes = [column.key for column in self.columns]
        return f"({' OR '.join(f'({self.bindings.are(codes, key)})' for key in keys)})"  # type: ignore[arg-type]


@dataclass(frozen=True)
class _KeyColumn:
    """One column of a partition's key, and the values that it has in keys of parts."""

    bindings: Bindings
    key: Code
    values: Domain

    @property
    def are_tested(self) -> bool:
        """Whether hardly a record passes `test` that is in no part."""
        return self.key.type is Type.BOOL or self._is_range or self._are_few

    @property
    def _are_few(self) -> bool:
        return len(self.values) <= self.bindings.dialect.most_listed_keys

    @cached_property
    def _is_range(self) -> bool:
        if type(self.values) is range:
            return True
        present = [key for key in self.values if type(key) is int]
        others = len(self.values) - len(present)
        together = bool(present) and max(present) - min(present) + 1 == len(present)
        return together and others <= (None in self.values)

    def test(self) -> Code | None:
        """A cheap test that all records of the parts pass."""
        if self.key.type is Type.BOOL:
            return None
        if self._are_few and not self._is_range:
            return self.bindings.code(self.is_one_of(self.values), Type.BOOL, self.key)
        return None if self.key.type is Type.STRING else self._is_between()

    def _is_between(self) -> Code:
        present: list[Any] = [value for value in self._ends if value is not None]
        first, last = (self.bindings.literal(end(present), self.key.type).sql for end in (min, max))
        null = f" OR {self.key.sql} IS NULL" if None in self._ends else ""
        return self.bindings.code(f"{self.key.sql} BETWEEN {first} AND {last}{null}", Type.BOOL, self.key)

    @property
    def _ends(self) -> Sequence[Value]:
        """The values; of a range those at its ends, so that it is not written out."""
        keys = self.values
        return (keys[0], keys[-1]) if type(keys) is range else keys

    def is_one_of(self, values: Sequence[Value]) -> str:
        """Whether the key is among some values."""
        constants = [self.bindings.literal(value, self.key.type).sql for value in values if value is not None]
        tests = [f"{self.key.sql} IN ({', '.join(constants)})"] if constants else []
        tests += [f"{self.key.sql} IS NULL"] if None in values else []
        return f"({' OR '.join(tests)})"
