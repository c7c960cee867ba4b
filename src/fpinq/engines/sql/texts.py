"""Texts to SQL: conversions, most of which read or write a text, and the operators of strings."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from fpinq.engines.sql.numbers import plus_zero
from fpinq.model.expressions import Expression, Literal, Type
from fpinq.model.operators import FALSE, LOWER, MAX_STRING, SPACE, TRUE, UPPER

if TYPE_CHECKING:
    from fpinq.engines.sql.dialect import Dialect
    from fpinq.engines.sql.expressions import Bindings, Code

# Databases take a substring of 31 bits; no string is that long.
_LONGEST = 2**31 - 1


# ── conversions ──────────────────────────────────────────────────────────────────────


class Form(NamedTuple):
    """How a text is written that can be parsed: the pattern of all of it, and its characters at the most."""

    pattern: str
    longest: int


_DAY = "[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
_TIME = "[ T](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:[.][0-9]{1,6})?)?"
INTEGER = Form("[+-]?[0-9]{1,19}", 20)
FLOAT = Form("[+-]?(?:[0-9]{1,30}(?:[.][0-9]{0,30})?|[.][0-9]{1,30})(?:[eE][+-]?[0-9]{1,3})?", 67)
DATE = Form(_DAY, 10)
TIMESTAMP = Form(f"{_DAY}(?:{_TIME})?", 26)


def _matching(bindings: "Bindings", a: "Code", form: Form) -> "Code":
    """A text, null where it is not of a form. Of a longer one nothing is read: its bytes are counted."""
    a, dialect = bindings.bind(a), bindings.dialect
    matching = f"CASE WHEN {dialect.matches(a.sql, form.pattern)} THEN {a.sql} END"
    sql = f"CASE WHEN {dialect.octets(a.sql)} <= {form.longest} THEN {matching} END"
    return bindings.code(sql, Type.STRING, a, times=3)


def _cast(bindings: "Bindings", type_: Type, a: "Code", **known: Any) -> "Code":
    return bindings.code(f"CAST({a.sql} AS {bindings.dialect.type_name(type_)})", type_, a, **known)


def _of_truth(bindings: "Bindings", type_: Type, a: "Code", **known: Any) -> "Code":
    return bindings.apply(lambda truth: bindings.dialect.number_of_truth(truth, type_), type_, a, **known)


def _to_int64(bindings: "Bindings", type_: Type, a: "Code") -> "Code":
    if a.type is Type.BOOL:
        return _of_truth(bindings, type_, a, low=0, high=1)
    if a.type is Type.STRING:
        return bindings.dialect.parse_integer(bindings, _matching(bindings, a, INTEGER))
    a = bindings.bind(a)
    inside = f"{a.sql} >= {bindings.double(-(2.0**63))} AND {a.sql} < {bindings.double(2.0**63)}"
    safe = bindings.code(f"CASE WHEN {inside} THEN {a.sql} END", Type.FLOAT64, a, times=3)
    return bindings.apply(bindings.dialect.whole_part, type_, safe)


def _to_float64(bindings: "Bindings", type_: Type, a: "Code") -> "Code":
    if a.type is Type.BOOL:
        return _of_truth(bindings, type_, a, finite=True)
    if a.type is Type.INT64:
        return _cast(bindings, type_, a, finite=True)
    return plus_zero(
        bindings, bindings.apply(bindings.dialect.parse_float, type_, _matching(bindings, a, FLOAT))
    )


def _to_string(bindings: "Bindings", type_: Type, a: "Code") -> "Code":
    return bindings.apply(lambda value: bindings.dialect.written(value, a.type), type_, a)


def _to_date(bindings: "Bindings", type_: Type, a: "Code") -> "Code":
    if a.type is Type.TIMESTAMP:
        return _cast(bindings, type_, a)
    return bindings.apply(bindings.dialect.parse_date, type_, _of_a_day(bindings, a, DATE))


def _of_a_day(bindings: "Bindings", a: "Code", form: Form) -> "Code":
    """A text of the form that begins with a day that exists, else null."""
    text = bindings.bind(_matching(bindings, a, form))
    year = f"CAST(substring({text.sql}, 1, 4) AS BIGINT)"
    leap = f"({year} % 4 = 0 AND ({year} % 100 <> 0 OR {year} % 400 = 0))"
    month, day = f"substring({text.sql}, 6, 2)", f"substring({text.sql}, 9, 2)"
    last = (
        f"CASE WHEN {month} IN ('04', '06', '09', '11') THEN '30' WHEN {month} <> '02' THEN '31' "
        f"WHEN {leap} THEN '29' ELSE '28' END"
    )
    exists = f"substring({text.sql}, 1, 4) <> '0000' AND {day} <= {last}"
    return bindings.code(f"CASE WHEN {exists} THEN {text.sql} END", Type.STRING, text, times=8)


def _to_timestamp(bindings: "Bindings", type_: Type, a: "Code") -> "Code":
    if a.type is Type.DATE:
        return _cast(bindings, type_, a)
    text = bindings.bind(_of_a_day(bindings, a, TIMESTAMP))
    # With the rest of midnight behind it, so that there is one form to parse.
    rest = f"substring(' 00:00:00.000000', {bindings.dialect.characters(text.sql)} - 9)"
    whole = bindings.code(f"{text.sql} || {rest}", Type.STRING, text, times=2)
    return bindings.apply(bindings.dialect.parse_timestamp, type_, whole)


def _to_bool(bindings: "Bindings", type_: Type, a: "Code") -> "Code":
    a = bindings.bind(a)
    true, false = (", ".join(f"'{word}'" for word in words) for words in (TRUE, FALSE))
    sql = f"CASE WHEN {a.sql} IN ({true}) THEN TRUE WHEN {a.sql} IN ({false}) THEN FALSE END"
    return bindings.code(sql, type_, a, times=2)


# ── strings ──────────────────────────────────────────────────────────────────────────


def _lower(bindings: "Bindings", type_: Type, a: "Code") -> "Code":
    return _mapped(bindings, a, bindings.dialect.lower_ascii, UPPER, LOWER)


def _upper(bindings: "Bindings", type_: Type, a: "Code") -> "Code":
    return _mapped(bindings, a, bindings.dialect.upper_ascii, LOWER, UPPER)


def _mapped(
    bindings: "Bindings", a: "Code", of_ascii: Callable[[str], str], source: str, target: str
) -> "Code":
    """A case mapping; on ASCII, where bytes are code points, a database's own, which is far faster."""
    a, dialect = bindings.bind(a), bindings.dialect
    is_ascii = f"{dialect.octets(a.sql)} = {dialect.characters(a.sql)}"
    table = f"translate({a.sql}, {bindings.parameters.bind(source)}, {bindings.parameters.bind(target)})"
    sql = f"CASE WHEN {is_ascii} THEN {of_ascii(a.sql)} ELSE {table} END"
    return bindings.code(sql, Type.STRING, a, times=4)


def _strip(bindings: "Bindings", type_: Type, a: "Code") -> "Code":
    space = bindings.parameters.bind(SPACE)
    return bindings.apply(lambda text: bindings.dialect.strip(text, space), type_, a)


def _length(bindings: "Bindings", type_: Type, a: "Code") -> "Code":
    return _cast(bindings, type_, bindings.apply(bindings.dialect.characters, type_, a), low=0, high=2**32)


def _substring(bindings: "Bindings", type_: Type, a: "Code", start: "Code", length: "Code") -> "Code":
    first, count = min(start.low, _LONGEST - 1) + 1, min(length.low, _LONGEST)
    return bindings.code(f"substring({a.sql}, {first}, {count})", type_, a)


def _concat(bindings: "Bindings", type_: Type, a: "Code", b: "Code") -> "Code":
    a, b = bindings.bind(a), bindings.bind(b)
    short = f"{bindings.dialect.characters(a.sql)} + {bindings.dialect.characters(b.sql)} <= {MAX_STRING}"
    return bindings.code(f"CASE WHEN {short} THEN {a.sql} || {b.sql} END", type_, a, b, times=2)


def split(bindings: "Bindings", a: "Code", separator: Expression) -> "Code":
    """The pieces of a text between separators."""
    assert isinstance(separator, Literal)
    between = str(separator.value)
    return bindings.apply(
        lambda text: bindings.dialect.split(text, between, bindings.parameters), Type.STRINGS, a
    )


def _asked(template: "Callable[[Dialect], Callable[..., str]]") -> "Callable[..., Code]":
    """An operator that a dialect has a word for."""

    def lower(bindings: "Bindings", type_: Type, *arguments: "Code") -> "Code":
        return bindings.apply(template(bindings.dialect), type_, *arguments)

    return lower


TEXTS: "dict[str, Callable[..., Code]]" = {
    "to_bool": _to_bool,
    "to_int64": _to_int64,
    "to_float64": _to_float64,
    "to_string": _to_string,
    "to_date": _to_date,
    "to_timestamp": _to_timestamp,
    "lower": _lower,
    "upper": _upper,
    "strip": _strip,
    "length": _length,
    "substring": _substring,
    "concat": _concat,
    "contains": _asked(lambda dialect: dialect.contains),
    "starts_with": _asked(lambda dialect: dialect.starts_with),
    "ends_with": _asked(lambda dialect: dialect.ends_with),
}
"""The conversions and the operators of strings, by name."""
