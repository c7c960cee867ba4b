"""What Spark must say for itself, under ANSI rules.

`try_multiply` decides where a product is too near to 2⁶³ for doubles to tell
(docs/decisions/0032). exp, log and power are Java's StrictMath, which may differ
from C in the last bits (docs/decisions/0031). Everything else is bit by bit the
reference's.
"""

import json
from collections.abc import Sequence
from datetime import date
from math import inf
from typing import Any

from fpinq.engines.spark.costs import COSTS
from fpinq.engines.spark.limbs import Limbs, exact
from fpinq.engines.sql.dialect import Dialect, Keyed, Listing
from fpinq.engines.sql.expressions import Bindings, Code, Parameters
from fpinq.model.expressions import Type, Value

SQL_TYPES = {
    Type.BOOL: "BOOLEAN",
    Type.INT64: "BIGINT",
    Type.FLOAT64: "DOUBLE",
    Type.STRING: "STRING",
    Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMP_NTZ",
}


class SparkDialect(Dialect):
    """Spark's words."""

    __slots__ = ()

    # ── constants ────────────────────────────────────────────────────────────────────

    def type_name(self, type_: Type) -> str:
        return SQL_TYPES[type_]

    def null(self, type_: Type) -> str:
        return f"CAST(NULL AS {SQL_TYPES[type_]})"

    def integer(self, number: int) -> str:
        return f"{number}L" if number >= 0 else f"({number}L)"

    def double(self, number: float) -> str:
        if number == 0:
            return "0D"
        text = "Infinity" if number == inf else "-Infinity" if number == -inf else repr(number)
        return f"CAST('{text}' AS DOUBLE)"

    def moment(self, value: date, type_: Type) -> str:
        return f"{SQL_TYPES[type_]} '{value.isoformat()}'"

    def placeholder(self, name: str) -> str:
        return f":{name}"

    # ── how much work ────────────────────────────────────────────────────────────────

    costs = COSTS

    # ── how much text ────────────────────────────────────────────────────────────────

    # The optimiser copies an expression into every filter above it. Beyond this many
    # leaves after such copying, a barrier keeps it where it is.
    max_weight = 128
    text_weight = 1

    def barrier(self, select: str) -> str:
        # A sample of everything: the optimiser copies nothing from below it into what is above.
        return f"SELECT * FROM ({select}) TABLESAMPLE (100 PERCENT) REPEATABLE (0)"

    # ── integers ─────────────────────────────────────────────────────────────────────

    def quotient(self, a: str, b: str) -> str:
        return f"{a} div {b}"

    def multiply(self, bindings: Bindings, a: Code, b: Code) -> Code:
        a, b = bindings.bind(a), bindings.bind(b)
        product = f"abs(CAST({a.sql} AS DOUBLE) * CAST({b.sql} AS DOUBLE))"
        about = bindings.bind(bindings.code(product, Type.FLOAT64, a, b))
        # Three roundings: off by less than 2⁻⁵⁰ of the product.
        below, beyond = self.double(2.0**63 - 2.0**13), self.double(2.0**63 + 2.0**13)
        surely = f"CASE WHEN {about.sql} < {below} THEN {a.sql} END * {b.sql}"
        maybe = f"CASE WHEN {about.sql} >= {below} AND {about.sql} < {beyond} THEN {a.sql} END"
        sql = f"coalesce({surely}, try_multiply({maybe}, {b.sql}))"
        return bindings.code(sql, Type.INT64, a, b, about, times=2)

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
        return _whole("floor", a)

    def ceil(self, a: str) -> str:
        return _whole("ceil", a)

    def round(self, a: str) -> str:
        return f"rint({a})"

    def sqrt(self, a: str) -> str:
        return f"sqrt({a})"

    def exp(self, a: str) -> str:
        return f"exp({a})"

    def log(self, a: str) -> str:
        return f"ln({a})"

    def power(self, a: str, b: str) -> str:
        # To C the infinite power of ±1 is 1, to Java it is NaN.
        return f"pow({a}, CASE WHEN abs({a}) = 1 AND abs({b}) = {self.double(inf)} THEN 0D ELSE {b} END)"

    def is_nan(self, a: str) -> str:
        return f"isnan({a})"

    def canonical(self, a: str) -> str:
        return f"CASE WHEN isnan({a}) THEN NULL ELSE {a} + 0D END"

    def clamp_as_found(self, a: str, low: str, high: str) -> str:
        # NaN, the largest double of all to Spark, is in no branch.
        outside = f"WHEN {a} <= {low} THEN {low} WHEN {a} <= {self.double(inf)} THEN {high}"
        return f"CASE WHEN {a} > {low} AND {a} < {high} THEN {a} {outside} END"

    def clamp_integer(self, a: str, low: str, high: str) -> str:
        # No branch but for null, of which these take no notice: three quarters of the time.
        return f"CASE WHEN {a} IS NOT NULL THEN least(greatest({a}, {low}), {high}) END"

    def nearest_integer(self, a: str) -> str:
        return f"CAST(rint({a}) AS BIGINT)"

    # ── conversions ──────────────────────────────────────────────────────────────────

    def whole_part(self, a: str) -> str:
        return f"CAST({a} AS BIGINT)"

    def number_of_truth(self, a: str, type_: Type) -> str:
        return f"CAST({a} AS {SQL_TYPES[type_]})"

    def written(self, a: str, type_: Type) -> str:
        return f"CAST({a} AS STRING)"

    def matches(self, text: str, pattern: str) -> str:
        # \z is the very end; $ would let a newline follow.
        return f"{text} RLIKE r'^(?:{pattern})\\z'"

    def parse_integer(self, bindings: Bindings, text: Code) -> Code:
        # Spark parses integers without exceptions: null where 64 bits are too few.
        return bindings.code(f"try_cast({text.sql} AS BIGINT)", Type.INT64, text)

    def parse_float(self, text: str) -> str:
        return f"CAST({text} AS DOUBLE)"

    def parse_date(self, text: str) -> str:
        return f"CAST({text} AS DATE)"

    def parse_timestamp(self, text: str) -> str:
        return f"CAST({text} AS TIMESTAMP_NTZ)"

    # ── strings ──────────────────────────────────────────────────────────────────────

    def characters(self, text: str) -> str:
        return f"char_length({text})"

    def octets(self, text: str) -> str:
        return f"octet_length({text})"

    def lower_ascii(self, text: str) -> str:
        return f"lower({text})"

    def upper_ascii(self, text: str) -> str:
        return f"upper({text})"

    def strip(self, text: str, characters: str) -> str:
        return f"trim(BOTH {characters} FROM {text})"

    def contains(self, text: str, part: str) -> str:
        return f"contains({text}, {part})"

    def starts_with(self, text: str, part: str) -> str:
        return f"startswith({text}, {part})"

    def ends_with(self, text: str, part: str) -> str:
        return f"endswith({text}, {part})"

    def split(self, text: str, separator: str, parameters: Parameters) -> str:
        # Spark splits at a regular expression; Java's quotation makes the separator one that is itself.
        quoted = parameters.bind("\\Q" + separator.replace("\\E", "\\E\\\\E\\Q") + "\\E")
        return f"split({text}, {quoted}, -1)"

    # ── time ─────────────────────────────────────────────────────────────────────────

    def days_between(self, a: str, b: str) -> str:
        return f"CAST(datediff({a}, {b}) AS BIGINT)"

    def microseconds_between(self, a: str, b: str) -> str:
        return f"timestampdiff(MICROSECOND, {b}, {a})"

    def part(self, name: str, a: str) -> str:
        return f"CAST({name}({a}) AS BIGINT)"

    # ── relations ────────────────────────────────────────────────────────────────────

    def shared(self, name: str, select: str) -> str:
        return f"{name} AS ({select})"  # its exchanges are computed once

    def where(self, predicate: str) -> str:
        return predicate

    def same(self, a: str, b: str) -> str:
        return f"{a} <=> {b}"

    def semi_join(self, left: str, right: str, on: str, *, keep: bool) -> str:
        return f"{left} AS l LEFT {'SEMI' if keep else 'ANTI'} JOIN {right} AS r ON {on}"

    def records(self, records: Sequence[Sequence[str]]) -> Sequence[tuple[str, str]]:
        names = [f"c{i}" for i in range(len(records[0]))]
        made = ", ".join(_struct(names, record) for record in records)
        return [(f"({', '.join(names)})", f"inline(array({made}))")]

    def pieces(self, strings: str, at_most: int) -> str:
        return f"explode(slice({strings}, 1, {_limit(at_most)}))"

    # ── the first rows ───────────────────────────────────────────────────────────────

    def ordered(self, column: str, type_: Type) -> str:
        return f"{column} NULLS FIRST"

    def first(self, select: str, by: Sequence[str], at_most: int) -> str:
        order = f" ORDER BY {', '.join(by)}" if by else ""
        return f"{select}{order} LIMIT {_limit(at_most)}"

    def first_per_key(self, source: str, keys: Sequence[str], by: Sequence[str], at_most: int) -> str:
        numbered = f"(SELECT *, {self.row_number(keys, by)} AS rn FROM {source})"
        return f"(SELECT * FROM {numbered} WHERE rn <= {_limit(at_most)})"

    def row_number(self, keys: Sequence[str], by: Sequence[str]) -> str:
        return f"row_number() OVER (PARTITION BY {', '.join(keys)} ORDER BY {', '.join(by) or '1'})"

    def only(self, column: str, type_: Type) -> str:
        return f"min({column})"

    def extreme(self, function: str, column: str, type_: Type) -> str:
        return f"{function}({column})"

    # ── wide sums ────────────────────────────────────────────────────────────────────

    def wide_sum(self, column: str, magnitude: int) -> Sequence[str]:
        return Limbs.up_to(magnitude).sums(column)

    def total(self, sums: Sequence[str]) -> str:
        return Limbs(len(sums)).total(sums)

    def exact(self, sums: Sequence[Any]) -> int:
        return exact(sums)

    # ── keys of parts ────────────────────────────────────────────────────────────────

    # Up to here the keys are written into the filter. Beyond it Spark's parser takes longer than a
    # join with a table of them (5,000 keys: 12 s against 1.3 s).
    most_listed_keys = 100
    # As VALUES they are a local relation, and the optimiser knows its size.
    writes_rows = True

    def keys(self, columns: Keyed, parameters: Parameters) -> Listing:
        rows = zip(*(values for values, _ in columns.values()), strict=True)
        texts = json.dumps([[None if value is None else _text(value) for value in row] for row in rows])
        array = f"from_json({parameters.bind(texts)}, 'array<array<string>>')"
        types = [SQL_TYPES[type_] for _, type_ in columns.values()]
        casts = ", ".join(f"CAST(v[{i}] AS {type_}) AS v{i}" for i, type_ in enumerate(types))
        return Listing.of(columns, f"(SELECT {casts} FROM (SELECT explode({array}) AS v))")

    def grouped_by_key(
        self, source: str, listed: str, groups: Sequence[str], listings: Sequence[Listing]
    ) -> str:
        # Every worker gets a copy of the keys, and only rows of parts are shuffled.
        for listing in listings:
            rows = self.semi_join(source, listing.source, listing.on(self), keep=True)
            source = f"(SELECT /*+ BROADCAST(r) */ l.* FROM {rows})"
        return f"SELECT {listed} FROM {source} AS d GROUP BY {', '.join(groups)}"


# LIMIT and row_number have 31 bits. A smaller truncation is sound, and no group is larger in practice.
_MOST = 2**31 - 1


def _limit(at_most: int) -> int:
    return min(at_most, _MOST)


def _struct(names: Sequence[str], values: Sequence[str]) -> str:
    fields = ", ".join(f"'{name}', {value}" for name, value in zip(names, values, strict=True))
    return f"named_struct({fields})"


def _text(key: Value) -> str:
    """A key as a string that Spark casts back to it."""
    if isinstance(key, float):
        return repr(key).replace("inf", "Infinity")
    return key.isoformat() if isinstance(key, date) else str(key)


def _whole(function: str, a: str) -> str:
    """Spark's floor and ceil give a BIGINT; a double beyond 2⁵³ is whole already."""
    near = f"abs({a}) <= CAST('{2.0**53!r}' AS DOUBLE)"
    return f"coalesce(CAST({function}(CASE WHEN {near} THEN {a} END) AS DOUBLE), {a})"


SQL = SparkDialect()
