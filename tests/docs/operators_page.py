"""docs/reference/operators.md, from the one table of operators: run this file to write the page again."""

from pathlib import Path

from fpinq.model.expressions import COLUMN_TYPES, Type
from fpinq.model.operators import MAX_STRING, OPERATORS, Operator

PAGE = Path(__file__).parents[2] / "docs/reference/operators.md"

# How each is spelled on a row x, and its value where the name does not say it.
SPELLED: dict[str, tuple[str, str]] = {
    "add": ("`x.a + x.b`", "null beyond 64 bits"),
    "subtract": ("`x.a - x.b`", "of dates: days; of timestamps: seconds"),
    "multiply": ("`x.a * x.b`", "null beyond 64 bits"),
    "divide": ("`x.a / x.b`", "null where b is 0"),
    "floor_divide": ("`x.a // x.b`", "towards −∞; null where b is 0"),
    "modulo": ("`x.a % x.b`", "has the sign of b; null where b is 0"),
    "negate": ("`-x.a`", "null beyond 64 bits"),
    "abs": ("`abs(x.a)`", "null beyond 64 bits"),
    "sign": ("`x.a.sign()`", "−1, 0 or 1"),
    "floor": ("`x.f.floor()`", ""),
    "ceil": ("`x.f.ceil()`", ""),
    "round": ("`x.f.round()`", "half to even"),
    "sqrt": ("`x.f.sqrt()`", "null below 0"),
    "exp": ("`x.f.exp()`", "null beyond a double"),
    "log": ("`x.f.log()`", "natural; null at 0 and below"),
    "power": ("`x.f.power(2)`", "null where it is no number"),
    "clip": ("`x.a.clip(0, 9)`", "constants"),
    "equal": ("`x.a == x.b`", ""),
    "not_equal": ("`x.a != x.b`", ""),
    "less": ("`x.a < x.b`", "texts by code point"),
    "less_equal": ("`x.a <= x.b`", ""),
    "greater": ("`x.a > x.b`", ""),
    "greater_equal": ("`x.a >= x.b`", ""),
    "and": ("`p & q`", "false with null is false"),
    "or": ("`p \\| q`", "true with null is true"),
    "not": ("`~p`", ""),
    "if_else": ("`fp.if_else(p, x.a, x.b)`", "b where p is null"),
    "is_in": ('`x.s.is_in(["a", "b"])`', "constants"),
    "is_null": ("`x.a.is_null()`", ""),
    "fill_null": ("`x.a.fill_null(0)`", ""),
    "to_bool": ('`x.s.cast("bool")`', "null where the text is none"),
    "to_int64": ('`x.s.cast("int64")`', "of a float towards 0; null where there is none"),
    "to_float64": ('`x.s.cast("float64")`', "null where the text is none"),
    "to_string": ('`x.a.cast("string")`', ""),
    "to_date": ('`x.s.cast("date")`', "ISO; null where the text is none"),
    "to_timestamp": ('`x.s.cast("timestamp")`', "ISO; null where the text is none"),
    "lower": ("`x.s.lower()`", "Latin-1, Greek and Cyrillic letters that all engines map alike"),
    "upper": ("`x.s.upper()`", "the same letters"),
    "strip": ("`x.s.strip()`", "spaces, tabs and line ends"),
    "length": ("`x.s.length()`", "in code points"),
    "substring": ("`x.s.substring(0, 3)`", "from 0, as in Python; constants"),
    "concat": ('`x.s + "!"`', f"null beyond {MAX_STRING:,} characters"),
    "contains": ('`x.s.contains("a")`', ""),
    "starts_with": ('`x.s.starts_with("a")`', ""),
    "ends_with": ('`x.s.ends_with("a")`', ""),
    "split": ('`x.s.split(" ")`', "an array, for `select_many`; a constant"),
    "year": ("`x.day.year()`", ""),
    "month": ("`x.day.month()`", ""),
    "day": ("`x.day.day()`", ""),
    "weekday": ("`x.day.weekday()`", "Monday is 0"),
    "hour": ("`x.at.hour()`", ""),
}

HEAD = """# Operators

What a row expression is made of, from the table in `model/operators.py` that every engine is tested against.
An operator is total: where it has no value the result is null, and never an error; so is the result on a null
argument, unless a row says otherwise. Integers have 64 bits, floats are doubles with NaN null and −0 zero,
texts are code points, timestamps have no zone and microseconds.

| spelled | takes | gives | |
|---|---|---|---|
"""


_CHOICE = ((Type.BOOL, Type.INT64, Type.INT64), Type.INT64)


def page() -> str:
    """The page."""
    assert SPELLED.keys() == OPERATORS.keys()
    return HEAD + "".join(_row(name, operator) for name, operator in OPERATORS.items())


def _row(name: str, operator: Operator) -> str:
    spelled, value = SPELLED[name]
    gives = dict.fromkeys(result.value for _, result in operator.signatures)
    same = all(takes[-1] == result for takes, result in operator.signatures) and len(gives) > 1
    return f"| {spelled} | {_taken(operator)} | {'the same' if same else ', '.join(gives)} | {value} |\n"


def _taken(operator: Operator) -> str:
    if {takes[-1] for takes, _ in operator.signatures} == set(
        COLUMN_TYPES
    ) and _CHOICE in operator.signatures:
        return "bool, and two alike"
    if {takes[0] for takes, _ in operator.signatures} == set(COLUMN_TYPES) and len(operator.signatures) > 1:
        return "any type" if len(operator.signatures[0][0]) == 1 else "any type, alike"
    first = dict.fromkeys(_shown(takes) for takes, _ in operator.signatures)
    return " or ".join(first)


def _shown(takes: tuple[Type, ...]) -> str:
    return takes[0].value if len(set(takes)) == 1 else ", ".join(type_.value for type_ in takes)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
