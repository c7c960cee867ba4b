"""Functions of a row: SQL's by name, as cells of the row language."""

import math
from collections.abc import Callable

from sqlglot import exp

from fpinq.client.rows import DATE, FLOAT64, INT64, STRING, TIMESTAMP, Cell, apply, constant
from fpinq.model.errors import suggest
from fpinq.model.operators import MAX_STRING
from fpinq.sql.expressions import (
    Scope,
    Value,
    alike,
    cell,
    floating,
    if_else,
    literal,
    number,
    text,
    together,
    translate,
    translates,
)

# ── numbers ──────────────────────────────────────────────────────────────────────────


@translates(exp.Abs)
def _abs(node: exp.Abs, scope: Scope) -> Value:
    return number(node.this, scope).abs()


@translates(exp.Sign)
def _sign(node: exp.Sign, scope: Scope) -> Value:
    return number(node.this, scope).sign()


@translates(exp.Floor, exp.Ceil)
def _floor(node: exp.Func, scope: Scope) -> Value:
    return apply("floor" if isinstance(node, exp.Floor) else "ceil", floating(number(node.this, scope)))


_OF_FLOATS: dict[type[exp.Expr], str] = {exp.Sqrt: "sqrt", exp.Exp: "exp", exp.Ln: "log"}


@translates(*_OF_FLOATS)
def _of_a_float(node: exp.Func, scope: Scope) -> Value:
    return apply(_OF_FLOATS[type(node)], floating(number(node.this, scope)))


@translates(exp.Log)
def _logarithm(node: exp.Log, scope: Scope) -> Value:
    """LOG(x) and LOG10(x) to base 10; LOG(b, x), LOG2(x)."""
    of = node.expression or node.this
    base = literal(node.this, scope, "the base of a logarithm") if node.expression is not None else 10
    if isinstance(base, bool) or not isinstance(base, int | float) or base <= 0 or base == 1:
        raise scope.error("the base of a logarithm is a positive number other than 1", node)
    return apply("divide", apply("log", floating(number(of, scope))), constant(math.log(base)))


@translates(exp.Round)
def _round(node: exp.Round, scope: Scope) -> Value:
    """Halves away from zero, as in DuckDB; the row language rounds them to even."""
    found = number(node.this, scope)
    digits = 0 if node.args.get("decimals") is None else literal(node.args["decimals"], scope, "the digits")
    if type(digits) is not int or not 0 <= digits <= 15:
        raise scope.error("ROUND to 0 to 15 digits", node)
    if found.type is INT64:
        return found
    scale = constant(10.0**digits)
    size = apply("multiply", found, scale).abs() if digits else found.abs()
    low = apply("floor", size)
    up = apply("greater_equal", apply("subtract", size, low), constant(0.5))
    rounded = if_else(up, apply("ceil", size), low)
    signed = if_else(apply("less", found, constant(0.0)), apply("negate", rounded), rounded)
    return apply("divide", signed, scale) if digits else signed


@translates(exp.Trunc)
def _trunc(node: exp.Trunc, scope: Scope) -> Value:
    found = floating(number(node.this, scope))
    return if_else(apply("less", found, constant(0.0)), apply("ceil", found), apply("floor", found))


# ── nulls and choices ────────────────────────────────────────────────────────────────


@translates(exp.Coalesce)
def _coalesce(node: exp.Coalesce, scope: Scope) -> Value:
    *others, found = together(node.this, *node.expressions, scope=scope)
    for each in reversed(others):
        found = apply("fill_null", each, found)
    return found


@translates(exp.Nullif)
def _nullif(node: exp.Nullif, scope: Scope) -> Value:
    equal = apply("equal", *together(node.this, node.expression, scope=scope))
    found = cell(node.this, scope, equal.type)
    return apply("if_else", equal, constant(None, found.type), found)


@translates(exp.Greatest, exp.Least)
def _extreme(node: exp.Func, scope: Scope) -> Value:
    """Of those that are not null, as in DuckDB."""
    found, *others = together(node.this, *node.expressions, scope=scope)
    operator = "greater_equal" if isinstance(node, exp.Greatest) else "less_equal"
    for each in others:
        found = if_else(apply(operator, found, each), found, apply("fill_null", each, found))
    return found


# ── texts ────────────────────────────────────────────────────────────────────────────

_OF_TEXTS: dict[type[exp.Expr], str] = {exp.Lower: "lower", exp.Upper: "upper", exp.Length: "length"}


@translates(*_OF_TEXTS)
def _of_a_text(node: exp.Func, scope: Scope) -> Value:
    return apply(_OF_TEXTS[type(node)], text(node.this, scope))


@translates(exp.Trim)
def _trim(node: exp.Trim, scope: Scope) -> Value:
    if node.args.get("position") or node.expression is not None:
        raise scope.error("TRIM(s) takes space off both ends, and nothing else does", node)
    return apply("strip", text(node.this, scope))


@translates(exp.Substring, exp.Left)
def _substring(node: exp.Func, scope: Scope) -> Value:
    start, length = 1, MAX_STRING
    if isinstance(node, exp.Left):
        length = literal(node.expression, scope, "how many characters")
    else:
        start = literal(node.args["start"], scope, "the start of a substring")
        if node.args.get("length") is not None:
            length = literal(node.args["length"], scope, "the length of a substring")
    if type(start) is not int or type(length) is not int or start < 1 or length < 0:
        raise scope.error("a substring starts at 1 or later and has 0 or more characters", node)
    return text(node.this, scope).substring(start - 1, min(length, MAX_STRING))


@translates(exp.Contains, exp.StartsWith, exp.EndsWith)
def _search(node: exp.Func, scope: Scope) -> Value:
    operators = {exp.Contains: "contains", exp.StartsWith: "starts_with", exp.EndsWith: "ends_with"}
    return apply(operators[type(node)], text(node.this, scope), text(node.expression, scope))


@translates(exp.DPipe)
def _joined(node: exp.DPipe, scope: Scope) -> Value:
    return apply("concat", _shown(node.this, scope), _shown(node.expression, scope))


@translates(exp.Concat)
def _concat(node: exp.Concat, scope: Scope) -> Value:
    """Null adds nothing, as in DuckDB."""
    empty = constant("")
    found = empty
    for each in node.expressions:
        shown = apply("fill_null", _shown(each, scope), empty)
        found = shown if found is empty else apply("concat", found, shown)
    return found


def _shown(node: exp.Expr, scope: Scope) -> Cell:
    found = cell(node, scope, STRING)
    return found if found.type is STRING else found.cast(STRING)


@translates(exp.Like, exp.ILike, exp.Escape)
def _like(node: exp.Binary, scope: Scope) -> Value:
    escape = ""
    if isinstance(node, exp.Escape):
        escape = literal(node.expression, scope, "the escape character")
        node = node.this
        if not isinstance(node, exp.Like | exp.ILike) or not isinstance(escape, str) or len(escape) != 1:
            raise scope.error("ESCAPE names one character: LIKE '50!%' ESCAPE '!'", node)
    pattern = literal(node.expression, scope, "a pattern")
    if not isinstance(pattern, str):
        raise scope.error("a pattern is a text: LIKE 'a%'", node)
    found = text(node.this, scope)
    if isinstance(node, exp.ILike):
        found, pattern = found.lower(), pattern.lower()
    pieces = _pieces(pattern, escape)
    match = _matches(found, pieces)
    if match is None:
        raise scope.error(
            "a pattern has one % at an end or in the middle, or one at each end; _ stands for a character "
            "before the %: join several with AND, LIKE '%a%' AND … LIKE '%b%'",
            node.expression,
        )
    return apply("not", match) if node.args.get("negate") else match


Piece = list[str | None]  # characters; None stands for any one


def _pieces(pattern: str, escape: str) -> list[Piece]:
    """What is between the % of a pattern."""
    pieces: list[Piece] = [[]]
    signs = iter(pattern)
    for sign in signs:
        if escape and sign == escape:
            pieces[-1].append(next(signs, ""))
        elif sign == "%":
            pieces.append([])
        else:
            pieces[-1].append(None if sign == "_" else sign)
    return pieces


def _matches(found: Cell, pieces: list[Piece]) -> Cell | None:
    if len(pieces) == 1:
        return _exactly(found, pieces[0])
    # Neighbouring % are one.
    pieces = [pieces[0], *(piece for piece in pieces[1:-1] if piece), pieces[-1]]
    first, *middle, last = pieces
    if len(middle) > 1 or (middle and (first or last)) or any(None in piece for piece in (*middle, last)):
        return None
    if middle:
        return found.contains("".join(map(str, middle[0])))
    long = apply("greater_equal", found.length(), constant(len(first) + len(last)))
    tests = [*_begins(found, first), *([found.ends_with("".join(map(str, last)))] if last else [])]
    whole = long
    if len(tests) == 1 and (not last or not first) and None not in first:
        return tests[0]
    for test in tests:
        whole = apply("and", whole, test)
    return whole


def _exactly(found: Cell, piece: Piece) -> Cell:
    if None not in piece:
        return apply("equal", found, constant("".join(map(str, piece))))
    whole = apply("equal", found.length(), constant(len(piece)))
    for test in _begins(found, piece):
        whole = apply("and", whole, test)
    return whole


def _begins(found: Cell, piece: Piece) -> list[Cell]:
    """That a text begins with a piece: its runs of characters are where they are in it."""
    if piece and None not in piece:
        return [found.starts_with("".join(map(str, piece)))]
    tests: list[Cell] = []
    start = 0
    while start < len(piece):
        end = start
        while end < len(piece) and piece[end] is not None:
            end += 1
        if end > start:
            run = "".join(map(str, piece[start:end]))
            tests.append(apply("equal", found.substring(start, end - start), constant(run)))
        start = end + 1
    return tests


# ── time ─────────────────────────────────────────────────────────────────────────────


def _time(node: exp.Expr, scope: Scope) -> Cell:
    found = cell(node, scope, DATE)
    if found.type not in (DATE, TIMESTAMP):
        raise scope.error(f"this needs a date or a timestamp, and it is {found.type.value}", node)
    return found


def _day_of_week(at: Cell) -> Cell:
    """Sunday is 0."""
    return apply("modulo", apply("add", at.weekday(), constant(1)), constant(7))


_PARTS: dict[str, Callable[[Cell], Cell]] = {
    "year": lambda at: at.year(),
    "month": lambda at: at.month(),
    "day": lambda at: at.day(),
    "hour": lambda at: at.hour(),
    "quarter": lambda at: apply("floor_divide", apply("add", at.month(), constant(2)), constant(3)),
    "dow": _day_of_week,
    "isodow": lambda at: apply("add", at.weekday(), constant(1)),
}
_PARTS |= {"dayofweek": _PARTS["dow"], "weekday": _PARTS["dow"], "dayofmonth": _PARTS["day"]}


def _part(name: str, of: exp.Expr, scope: Scope, node: exp.Expr) -> Cell:
    part = _PARTS.get(name.lower())
    if part is None:
        raise scope.error(f"the parts of a date are: {', '.join(_PARTS)}", node)
    return part(_time(of, scope))


@translates(exp.Extract)
def _extract(node: exp.Extract, scope: Scope) -> Value:
    return _part(node.this.name, node.expression, scope, node)


_NAMED_PARTS: dict[type[exp.Expr], str] = {
    exp.Year: "year", exp.Month: "month", exp.Day: "day", exp.DayOfMonth: "day", exp.Hour: "hour",
    exp.Quarter: "quarter", exp.DayOfWeek: "dow", exp.DayOfWeekIso: "isodow",
}  # fmt: skip


@translates(*_NAMED_PARTS)
def _named_part(node: exp.Func, scope: Scope) -> Value:
    return _part(_NAMED_PARTS[type(node)], node.this, scope, node)


@translates(exp.DateDiff)
def _date_diff(node: exp.DateDiff, scope: Scope) -> Value:
    """How many boundaries of a unit lie between, as in DuckDB."""
    unit = (node.text("unit") or "day").lower()
    end, start = (_time(each, scope).cast("date") for each in (node.this, node.expression))
    if unit == "day":
        return apply("subtract", end, start)
    if unit not in ("year", "quarter", "month"):
        raise scope.error("DATE_DIFF counts days, months, quarters and years", node)
    return apply("subtract", *(_number_of(unit, each) for each in (end, start)))


def _number_of(unit: str, at: Cell) -> Cell:
    """The number of a day's year, quarter or month, counted from the year 0."""
    if unit == "year":
        return at.year()
    per_year = 12 if unit == "month" else 4
    return apply("add", apply("multiply", at.year(), constant(per_year)), _PARTS[unit](at))


# ── by name ──────────────────────────────────────────────────────────────────────────

_NAMED = ("clamp", "date_part", "datepart", "weekday", "dayofweek", "prefix", "suffix")


@translates(exp.Anonymous)
def _by_name(node: exp.Anonymous, scope: Scope) -> Value:
    name, arguments = str(node.this).lower(), node.expressions
    match name, arguments:
        case "clamp", [of, low, high]:
            return _clamp(node, of, low, high, scope)
        case "date_part" | "datepart", [part, of]:
            return _part(str(literal(part, scope, "the part of a date")), of, scope, node)
        case "weekday" | "dayofweek", [of]:
            return _part("dow", of, scope, node)
        case "prefix" | "suffix", [of, part]:
            operator = "starts_with" if name == "prefix" else "ends_with"
            return apply(operator, text(of, scope), text(part, scope))
    if name in _NAMED:
        raise scope.error(
            f"{name.upper()} takes other arguments: CLAMP(x, 0, 100), DATE_PART('year', d)", node
        )
    raise scope.error(f"unknown function {name!r}{suggest(name, _NAMED)}", node)


def _clamp(node: exp.Expr, of: exp.Expr, low: exp.Expr, high: exp.Expr, scope: Scope) -> Cell:
    """CLAMP(x, lo, hi): x within constant bounds."""
    value = translate(of, scope)
    lower, upper = (literal(each, scope, "a bound") for each in (low, high))
    numbers = all(isinstance(each, int | float) and not isinstance(each, bool) for each in (lower, upper))
    if not numbers or not isinstance(value, Cell) or value.type not in (INT64, FLOAT64):
        raise scope.error("CLAMP bounds a number by two constants: CLAMP(income, 0, 200000)", node)
    if lower > upper:
        raise scope.error("the bounds of CLAMP are reversed: the lower comes first", node)
    return apply("clip", *alike(value, constant(lower), constant(upper)))
