"""PostgreSQL's own words for what the lowering means.

Doubles are the hard part (`doubles`). The other traps: texts are compared by the
database's collation unless something says otherwise, so every text that begins
here, a column, a constant or a number written out, says COLLATE "C"; and what is
made of constants alone is computed when the statement is planned, whether a row
asks for it or not.
"""

import json
from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from fpinq.engines.postgres import doubles
from fpinq.engines.postgres.costs import COSTS
from fpinq.engines.postgres.quoting import by_code_point
from fpinq.engines.sql.dialect import Dialect, Keyed, Listing
from fpinq.model.expressions import INT64_MAX, INT64_MIN, Type, Value

if TYPE_CHECKING:
    from fpinq.engines.sql.expressions import Bindings, Code, Parameters

_TYPES = {
    Type.BOOL: "boolean",
    Type.INT64: "bigint",
    Type.FLOAT64: "double precision",
    Type.STRING: "text",
    Type.DATE: "date",
    Type.TIMESTAMP: "timestamp",
}
_PARTS = {"weekday": "isodow"}
# An array has no more places.
_LONGEST = 2**31 - 1
# Products of doubles below the first surely fit 64 bits, and from the second on surely not:
# three roundings are off by less than 2⁻⁵⁰.
_SURELY, _NEVER = 2.0**63 - 2.0**13, 2.0**63 + 2.0**13

_NAN = "CAST('NaN' AS double precision)"


class PostgresDialect(Dialect):
    """PostgreSQL 15 and later, with the settings of `database`."""

    __slots__ = ()

    # ── constants ────────────────────────────────────────────────────────────────────

    def type_name(self, type_: Type) -> str:
        return _TYPES[type_]

    def null(self, type_: Type) -> str:
        null = f"CAST(NULL AS {_TYPES[type_]})"
        return by_code_point(null) if type_ is Type.STRING else null

    def integer(self, number: int) -> str:
        return f"CAST('{number}' AS bigint)"

    def double(self, number: float) -> str:
        return doubles.double(number)

    def moment(self, value: date, type_: Type) -> str:
        return f"CAST('{value.isoformat()}' AS {_TYPES[type_]})"

    def placeholder(self, name: str) -> str:
        return by_code_point(f"CAST(${int(name[1:]) + 1} AS text)")

    # ── how much work ────────────────────────────────────────────────────────────────

    costs = COSTS

    # ── how much text ────────────────────────────────────────────────────────────────

    @property
    def max_weight(self) -> int:
        # A subquery is written out wherever it is mentioned, and computed there each time.
        return 24

    @property
    def text_weight(self) -> int:
        # Nobody copies one: lower of lower would be computed twice, and it is the slowest there is.
        return 25

    def barrier(self, select: str) -> str:
        return f"{select} OFFSET 0"

    # ── integers ─────────────────────────────────────────────────────────────────────

    def quotient(self, a: str, b: str) -> str:
        return f"{a} / {b}"

    def multiply(self, bindings: "Bindings", a: "Code", b: "Code") -> "Code":
        return bindings.apply(_multiply, Type.INT64, a, b)

    # ── floats ───────────────────────────────────────────────────────────────────────

    def add_floats(self, a: str, b: str) -> str:
        return doubles.add(a, b)

    def subtract_floats(self, a: str, b: str) -> str:
        return doubles.add(a, b, "-")

    def multiply_floats(self, a: str, b: str) -> str:
        return doubles.multiply(a, b)

    def divide_floats(self, a: str, b: str) -> str:
        return doubles.divide(a, b)

    def float_remainder(self, a: str, b: str) -> str:
        return doubles.remainder(a, b)

    def floor(self, a: str) -> str:
        return f"floor({a})"

    def ceil(self, a: str) -> str:
        return f"ceil({a})"

    def round(self, a: str) -> str:
        return f"round({a})"  # of a double: half to even, unlike that of a decimal

    def sqrt(self, a: str) -> str:
        return f"sqrt({a})"

    def exp(self, a: str) -> str:
        return doubles.exp(a)

    def log(self, a: str) -> str:
        return f"ln({a})"

    def power(self, a: str, b: str) -> str:
        return doubles.power(a, b)

    # In PostgreSQL NaN equals itself, and is the largest double of all.

    def is_nan(self, a: str) -> str:
        return f"{a} = {_NAN}"

    def canonical(self, a: str) -> str:
        return f"CASE WHEN {a} <> {_NAN} THEN {a} + {self.double(0.0)} END"

    def clamp_as_found(self, a: str, low: str, high: str) -> str:
        above = f"WHEN {a} < {high} THEN {a} WHEN {a} <> {_NAN} THEN {high}"
        return f"CASE WHEN {a} <= {low} THEN {low} {above} END"

    def clamp_integer(self, a: str, low: str, high: str) -> str:
        # Interpreted row by row, two comparisons are sooner done than least and greatest.
        return f"CASE WHEN {a} < {low} THEN {low} WHEN {a} > {high} THEN {high} ELSE {a} END"

    def nearest_integer(self, a: str) -> str:
        return f"CAST({a} AS bigint)"  # rounds half to even

    # ── conversions ──────────────────────────────────────────────────────────────────

    def whole_part(self, a: str) -> str:
        return f"CAST(trunc({a}) AS bigint)"

    def number_of_truth(self, a: str, type_: Type) -> str:
        return f"CAST(CAST({a} AS integer) AS {_TYPES[type_]})"

    def written(self, a: str, type_: Type) -> str:
        return by_code_point(f"CAST({a} AS text)")

    def matches(self, text: str, pattern: str) -> str:
        return f"{text} ~ '^(?:{pattern})$'"

    def parse_integer(self, bindings: "Bindings", text: "Code") -> "Code":
        return bindings.apply(_narrow, Type.INT64, bindings.apply(_decimal, Type.INT64, text))

    def parse_float(self, text: str) -> str:
        return doubles.of_decimal(_decimal(text))

    def parse_date(self, text: str) -> str:
        return f"CAST({text} AS date)"

    def parse_timestamp(self, text: str) -> str:
        return f"CAST({text} AS timestamp)"

    # ── strings ──────────────────────────────────────────────────────────────────────

    def characters(self, text: str) -> str:
        return f"char_length({text})"

    def octets(self, text: str) -> str:
        return f"octet_length({text})"

    def lower_ascii(self, text: str) -> str:
        return f"lower({by_code_point(text)})"

    def upper_ascii(self, text: str) -> str:
        return f"upper({by_code_point(text)})"

    def strip(self, text: str, characters: str) -> str:
        return f"btrim({text}, {characters})"

    def contains(self, text: str, part: str) -> str:
        return f"strpos({text}, {part}) > 0"

    def starts_with(self, text: str, part: str) -> str:
        return f"starts_with({text}, {part})"

    def ends_with(self, text: str, part: str) -> str:
        return f"right({text}, char_length({part})) = {part}"

    def split(self, text: str, separator: str, parameters: "Parameters") -> str:
        # To PostgreSQL an empty text has no pieces.
        pieces = f"string_to_array({text}, {parameters.bind(separator)})"
        return f"CASE WHEN {text} = '' THEN ARRAY[{text}] ELSE {pieces} END"

    # ── time ─────────────────────────────────────────────────────────────────────────

    def days_between(self, a: str, b: str) -> str:
        return f"CAST({a} - {b} AS bigint)"

    def microseconds_between(self, a: str, b: str) -> str:
        return f"CAST(extract(epoch FROM {a} - {b}) * 1000000 AS bigint)"

    def part(self, name: str, a: str) -> str:
        found = f"CAST(date_part('{_PARTS.get(name, name)}', {a}) AS bigint)"
        return f"{found} - 1" if name == "weekday" else found

    # ── relations ────────────────────────────────────────────────────────────────────

    def shared(self, name: str, select: str) -> str:
        return f"{name} AS MATERIALIZED ({select})"

    def where(self, predicate: str) -> str:
        # How many rows pass is not guessed then, neither from statistics of the data nor, of an expression
        # that has none, as next to nothing: PostgreSQL would sort what it should hash.
        return f"coalesce({predicate}, FALSE)"

    def same(self, a: str, b: str) -> str:
        return f"{a} IS NOT DISTINCT FROM {b}"

    def semi_join(self, left: str, right: str, on: str, *, keep: bool) -> str:
        return f"{left} AS l WHERE {'' if keep else 'NOT '}EXISTS (SELECT FROM {right} AS r WHERE {on})"

    def records(self, records: Sequence[Sequence[str]]) -> Sequence[tuple[str, str]]:
        # Arrays of equal length are unnested side by side.
        columns = zip(*records, strict=True)
        return [(f"c{i}", f"unnest(ARRAY[{', '.join(values)}])") for i, values in enumerate(columns)]

    def pieces(self, strings: str, at_most: int) -> str:
        return f"unnest(({strings})[1:{min(at_most, _LONGEST)}])"

    # ── the first rows ───────────────────────────────────────────────────────────────

    def ordered(self, column: str, type_: Type) -> str:
        return f"{by_code_point(column) if type_ is Type.STRING else column} NULLS FIRST"

    def first(self, select: str, by: Sequence[str], at_most: int) -> str:
        order = f" ORDER BY {', '.join(by)}" if by else ""
        return f"{select}{order} LIMIT {min(at_most, INT64_MAX)}"

    def first_per_key(self, source: str, keys: Sequence[str], by: Sequence[str], at_most: int) -> str:
        numbered = f"(SELECT *, {self.row_number(keys, by)} AS rn FROM {source} AS d)"
        return f"(SELECT * FROM {numbered} AS d WHERE rn <= {min(at_most, INT64_MAX)})"

    def row_number(self, keys: Sequence[str], by: Sequence[str]) -> str:
        order = f" ORDER BY {', '.join(by)}" if by else ""
        return f"row_number() OVER (PARTITION BY {', '.join(keys)}{order})"

    def only(self, column: str, type_: Type) -> str:
        return self.extreme("min", column, type_)

    def extreme(self, function: str, column: str, type_: Type) -> str:
        # There is no least truth value.
        words = {"min": "bool_and", "max": "bool_or"} if type_ is Type.BOOL else {}
        return f"{words.get(function, function)}({column})"

    # ── wide sums ────────────────────────────────────────────────────────────────────

    def wide_sum(self, column: str, magnitude: int) -> Sequence[str]:
        return [f"sum({column})"]  # of BIGINTs: a NUMERIC

    def total(self, sums: Sequence[str]) -> str:
        (total,) = sums
        return _narrow(f"coalesce({total}, 0)")

    def exact(self, sums: Sequence[Any]) -> int:
        (total,) = sums
        return int(total or 0)

    # ── keys of parts ────────────────────────────────────────────────────────────────

    @property
    def most_listed_keys(self) -> int:
        return 1_000

    @property
    def writes_rows(self) -> bool:
        return False

    def keys(self, columns: Keyed, parameters: "Parameters") -> Listing:
        texts, casts = list[str](), list[str]()
        for i, (values, type_) in enumerate(columns.values()):
            listed = json.dumps([None if value is None else _written(value) for value in values])
            texts.append(f"json_array_elements_text(CAST({parameters.bind(listed)} AS json))")
            key = f"CAST(t{i} AS {_TYPES[type_]})"
            casts.append(f"{by_code_point(key) if type_ is Type.STRING else key} AS v{i}")
        # Side by side.
        rows = f"ROWS FROM ({', '.join(texts)}) AS t ({', '.join(f't{i}' for i in range(len(texts)))})"
        return Listing.of(columns, f"(SELECT {', '.join(casts)} FROM {rows})")

    def grouped_by_key(
        self, source: str, listed: str, groups: Sequence[str], listings: Sequence[Listing]
    ) -> str:
        is_listed = " AND ".join(f"({_is_listed(listing)})" for listing in listings)
        return f"SELECT {listed} FROM {source} AS a WHERE {is_listed} GROUP BY {', '.join(groups)}"


def _is_listed(listing: Listing) -> str:
    """Whether a row is in a listing. Not with IS NOT DISTINCT FROM, which compares each with each."""
    ours, theirs = (
        ", ".join(_comparable(column) if listing.nulls else column for column in columns)
        for columns in (listing.columns, listing.columns.values())
    )
    return f"({ours}) IN (SELECT {theirs} FROM {listing.source} AS b)"


def _comparable(column: str) -> str:
    """What is equal where columns are the same, null and null among them, and never null."""
    return f"{column} IS NULL, coalesce(CAST({column} AS text), '')"


def _written(key: Value) -> str:
    """A key as a text that PostgreSQL casts back to it."""
    if isinstance(key, float):
        return repr(key).replace("inf", "Infinity")
    return key.isoformat() if isinstance(key, date) else str(key)


def _multiply(a: str, b: str) -> str:
    """A product of BIGINTs, null where it does not fit: decimals decide where doubles cannot tell."""
    about = f"abs(CAST({a} AS double precision) * CAST({b} AS double precision))"
    surely, never = doubles.double(_SURELY), doubles.double(_NEVER)
    fits = f"CASE WHEN {about} < {surely} THEN {a} END * {b}"
    near = f"CASE WHEN {about} >= {surely} AND {about} < {never} THEN CAST({a} AS numeric) END"
    return f"coalesce({fits}, {_narrow(f'({near} * CAST({b} AS numeric))')})"


def _narrow(decimal: str) -> str:
    """A NUMERIC as a BIGINT, null where it does not fit."""
    fits = f"{decimal} BETWEEN {doubles.numeric(INT64_MIN)} AND {doubles.numeric(INT64_MAX)}"
    return f"CAST(CASE WHEN {fits} THEN {decimal} END AS bigint)"


def _decimal(text: str) -> str:
    return f"CAST({text} AS numeric)"


POSTGRES = PostgresDialect()
