"""What DuckDB must say for itself.

Never TRY or TRY_CAST: a failing row costs them a hundred times more than a good
one, which tells about the row.
"""

from collections.abc import Sequence
from datetime import date
from typing import Any

from fpinq.engines.sql.dialect import Dialect, Keyed, Listing
from fpinq.engines.sql.expressions import Bindings, Code, Parameters
from fpinq.model.costs import UNITS
from fpinq.model.expressions import INT64_MAX, INT64_MIN, Type

SQL_TYPES = {
    Type.BOOL: "BOOLEAN",
    Type.INT64: "BIGINT",
    Type.FLOAT64: "DOUBLE",
    Type.STRING: "VARCHAR",
    Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMP",
}

_PARTS = {name: f"{name}({{0}})" for name in ("year", "month", "day", "hour")} | {
    "weekday": "isodow({0}) - 1"
}


class DuckDBDialect(Dialect):
    """DuckDB's words."""

    __slots__ = ()

    # ── constants ────────────────────────────────────────────────────────────────────

    def type_name(self, type_: Type) -> str:
        return SQL_TYPES[type_]

    def null(self, type_: Type) -> str:
        return f"NULL::{SQL_TYPES[type_]}"

    def integer(self, number: int) -> str:
        return f"'{number}'::BIGINT"

    def double(self, number: float) -> str:
        return f"'{number!r}'::DOUBLE"

    def moment(self, value: date, type_: Type) -> str:
        return f"'{value.isoformat()}'::{SQL_TYPES[type_]}"

    def placeholder(self, name: str) -> str:
        return f"${name}"

    # ── how much work ────────────────────────────────────────────────────────────────

    # Where they were measured.
    costs = UNITS

    # ── how much text ────────────────────────────────────────────────────────────────

    # The optimiser copies an expression into every filter above it. Beyond this many
    # leaves after such copying, a barrier keeps it where it is.
    max_weight = 256
    # No more than three copies of an operator that reads texts are made (docs/decisions/0073).
    text_weight = 65

    def barrier(self, select: str) -> str:
        return f"{select} OFFSET 0"

    # ── integers ─────────────────────────────────────────────────────────────────────

    def quotient(self, a: str, b: str) -> str:
        return f"{a} // {b}"

    def multiply(self, bindings: Bindings, a: Code, b: Code) -> Code:
        product = f"CAST({a.sql} AS HUGEINT) * CAST({b.sql} AS HUGEINT)"
        return bindings.apply(narrow, Type.INT64, bindings.code(product, Type.INT64, a, b))

    # ── floats ───────────────────────────────────────────────────────────────────────

    def add_floats(self, a: str, b: str) -> str:
        return f"{a} + {b}"

    def subtract_floats(self, a: str, b: str) -> str:
        return f"{a} - {b}"

    def multiply_floats(self, a: str, b: str) -> str:
        return f"{a} * {b}"

    def divide_floats(self, a: str, b: str) -> str:
        return f"{a} / {b}"

    def float_remainder(self, a: str, b: str) -> str:
        return f"{a} % {b}"

    def floor(self, a: str) -> str:
        return f"floor({a})"

    def ceil(self, a: str) -> str:
        return f"ceil({a})"

    def round(self, a: str) -> str:
        return f"round_even({a}, 0)"

    def sqrt(self, a: str) -> str:
        return f"sqrt({a})"

    def exp(self, a: str) -> str:
        return f"exp({a})"

    def log(self, a: str) -> str:
        return f"ln({a})"

    def power(self, a: str, b: str) -> str:
        return f"pow({a}, {b})"

    def is_nan(self, a: str) -> str:
        return f"isnan({a})"

    # Of what is found not with isnan: a parquet file's statistics leave NaN out, DuckDB may
    # believe them and takes isnan, and comparisons with NaN, for always false.

    def canonical(self, a: str) -> str:
        return f"CASE WHEN isfinite({a}) THEN {a} + '0'::DOUBLE WHEN isinf({a}) THEN {a} END"

    def clamp_as_found(self, a: str, low: str, high: str) -> str:
        infinite = f"CASE WHEN isinf({a}) THEN CASE WHEN {a} > 0 THEN {high} ELSE {low} END END"
        ends = f"WHEN {a} <= {low} THEN {low} WHEN {a} >= {high} THEN {high}"
        return f"CASE WHEN NOT isfinite({a}) THEN {infinite} {ends} ELSE {a} END"

    def clamp_integer(self, a: str, low: str, high: str) -> str:
        # No branch but for null, of which these take no notice: three quarters of the time.
        return f"CASE WHEN {a} IS NOT NULL THEN least(greatest({a}, {low}), {high}) END"

    def nearest_integer(self, a: str) -> str:
        return f"CAST({a} AS BIGINT)"  # half to even

    # ── conversions ──────────────────────────────────────────────────────────────────

    def whole_part(self, a: str) -> str:
        return f"CAST(trunc({a}) AS BIGINT)"

    def number_of_truth(self, a: str, type_: Type) -> str:
        return f"CAST({a} AS {SQL_TYPES[type_]})"

    def written(self, a: str, type_: Type) -> str:
        return f"CAST({a} AS VARCHAR)"

    def matches(self, text: str, pattern: str) -> str:
        return f"regexp_full_match({text}, '{pattern}')"

    def parse_integer(self, bindings: Bindings, text: Code) -> Code:
        return bindings.apply(
            narrow, Type.INT64, bindings.code(f"CAST({text.sql} AS HUGEINT)", Type.INT64, text)
        )

    def parse_float(self, text: str) -> str:
        return f"CAST({text} AS DOUBLE)"

    def parse_date(self, text: str) -> str:
        return f"CAST({text} AS DATE)"

    def parse_timestamp(self, text: str) -> str:
        return f"CAST({text} AS TIMESTAMP)"

    # ── strings ──────────────────────────────────────────────────────────────────────

    def characters(self, text: str) -> str:
        return f"length({text})"

    def octets(self, text: str) -> str:
        return f"strlen({text})"

    def lower_ascii(self, text: str) -> str:
        return f"lower({text})"

    def upper_ascii(self, text: str) -> str:
        return f"upper({text})"

    def strip(self, text: str, characters: str) -> str:
        return f"trim({text}, {characters})"

    def contains(self, text: str, part: str) -> str:
        return f"contains({text}, {part})"

    def starts_with(self, text: str, part: str) -> str:
        return f"starts_with({text}, {part})"

    def ends_with(self, text: str, part: str) -> str:
        return f"suffix({text}, {part})"

    def split(self, text: str, separator: str, parameters: Parameters) -> str:
        return f"string_split({text}, {parameters.bind(separator)})"

    # ── time ─────────────────────────────────────────────────────────────────────────

    def days_between(self, a: str, b: str) -> str:
        return f"{a} - {b}"

    def microseconds_between(self, a: str, b: str) -> str:
        return f"epoch_us({a}) - epoch_us({b})"

    def part(self, name: str, a: str) -> str:
        return _PARTS[name].format(a)

    # ── relations ────────────────────────────────────────────────────────────────────

    def shared(self, name: str, select: str) -> str:
        return f"{name} AS MATERIALIZED ({select})"

    def where(self, predicate: str) -> str:
        return predicate

    def same(self, a: str, b: str) -> str:
        return f"{a} IS NOT DISTINCT FROM {b}"

    def semi_join(self, left: str, right: str, on: str, *, keep: bool) -> str:
        return f"{left} AS l {'SEMI' if keep else 'ANTI'} JOIN {right} AS r ON {on}"

    def records(self, records: Sequence[Sequence[str]]) -> Sequence[tuple[str, str]]:
        # Lists of equal length unnest side by side.
        columns = enumerate(zip(*records, strict=True))
        return [(f"c{i}", f"unnest([{', '.join(values)}])") for i, values in columns]

    def pieces(self, strings: str, at_most: int) -> str:
        return f"unnest({strings}[1:{limit(at_most)}])"

    # ── the first rows ───────────────────────────────────────────────────────────────

    def ordered(self, column: str, type_: Type) -> str:
        return f"{column} NULLS FIRST"

    def first(self, select: str, by: Sequence[str], at_most: int) -> str:
        # Led by something computed: a column of a file would be filtered as it is read.
        order = f" ORDER BY c0 IS NOT NULL, {', '.join(by)}" if by else ""
        return f"{select}{order} LIMIT {limit(at_most)}"

    def first_per_key(self, source: str, keys: Sequence[str], by: Sequence[str], at_most: int) -> str:
        return f"(SELECT * FROM {source} QUALIFY {self.row_number(keys, by)} <= {limit(at_most)})"

    def row_number(self, keys: Sequence[str], by: Sequence[str]) -> str:
        return f"row_number() OVER ({window(keys, by)})"

    def only(self, column: str, type_: Type) -> str:
        return f"first({column})"

    def extreme(self, function: str, column: str, type_: Type) -> str:
        return f"{function}({column})"

    # ── wide sums ────────────────────────────────────────────────────────────────────

    def wide_sum(self, column: str, magnitude: int) -> Sequence[str]:
        return (f"sum({column})",)  # a HUGEINT

    def total(self, sums: Sequence[str]) -> str:
        (wide,) = sums
        return narrow(f"coalesce({wide}, '0'::HUGEINT)")

    def exact(self, sums: Sequence[Any]) -> int:
        (wide,) = sums
        return wide or 0

    # ── keys of parts ────────────────────────────────────────────────────────────────

    # Up to here a few comparisons are cheaper than grouping by keys nobody asked for.
    most_listed_keys = 4
    # A row that is written takes 50 µs to read, one that is bound 1 µs.
    writes_rows = False

    def keys(self, columns: Keyed, parameters: Parameters) -> Listing:
        # Lists of equal length unnest side by side.
        lists = [
            f"unnest(CAST({parameters.give(f'{name}_keys', list(values))} AS {SQL_TYPES[type_]}[])) AS v{i}"
            for i, (name, (values, type_)) in enumerate(columns.items())
        ]
        nulls = any(None in values for values, _ in columns.values())
        return Listing(
            f"(SELECT {', '.join(lists)})", {name: f"v{i}" for i, name in enumerate(columns)}, nulls
        )

    def grouped_by_key(
        self, source: str, listed: str, groups: Sequence[str], listings: Sequence[Listing]
    ) -> str:
        select = f"SELECT {listed} FROM {source} AS d GROUP BY {', '.join(groups)}"
        for listing in listings:
            rows = self.semi_join(f"({select})", listing.source, listing.on(self), keep=True)
            select = f"SELECT l.* FROM {rows}"
        return select


def window(keys: Sequence[str], by: Sequence[str]) -> str:
    """The rows of a key, in an order."""
    return f"PARTITION BY {', '.join(keys)}" + (f" ORDER BY {', '.join(by)}" if by else "")


def limit(at_most: int) -> int:
    """A number of rows as DuckDB takes it."""
    return min(at_most, INT64_MAX)


def narrow(wide: str) -> str:
    """A HUGEINT as a BIGINT, null where it does not fit."""
    fits = f"{wide} BETWEEN '{INT64_MIN}'::HUGEINT AND '{INT64_MAX}'::HUGEINT"
    return f"CAST(CASE WHEN {fits} THEN {wide} END AS BIGINT)"


SQL = DuckDBDialect()
