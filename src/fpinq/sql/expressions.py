"""Expressions of a row: SQL's operators as cells of the row language.

A cell is typed; NULL by itself has no type yet and is None until something stands beside it. Logic
is SQL's, of three values, which the row language has as well. What DuckDB computes otherwise than the
row language (% and // of negative numbers, ROUND of a half) is put together here.
"""

from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from fractions import Fraction
from math import inf
from typing import Any, Protocol

from sqlglot import exp

from fpinq.client.rows import (
    BOOL,
    DATE,
    FLOAT64,
    INT64,
    STRING,
    TIMESTAMP,
    Cell,
    apply,
    constant,
)
from fpinq.client.rows import alike as of_one_type
from fpinq.model.epsilon import rational
from fpinq.model.errors import BadExpression, BadSQL
from fpinq.model.expressions import Apply, Literal, Type
from fpinq.model.frozen import dataclass
from fpinq.model.operators import evaluate


class Scope(Protocol):
    """What an expression is translated over: a row, or what was released."""

    def column(self, node: exp.Column) -> Cell:
        """The cell of a column."""

    def special(self, node: exp.Expr) -> Cell | None:
        """What a node stands for here as a whole: an aggregate that was released, a key; None of others."""

    def scalar(self, node: exp.Subquery) -> Cell | None:
        """The value of a scalar sub-query; None is NULL."""

    def error(self, message: str, node: exp.Expr | None = None) -> BadSQL:
        """BadSQL at a node."""


@dataclass(frozen=True)
class Span:
    """An interval of constant length."""

    months: int
    days: int
    seconds: int

    def negated(self) -> "Span":
        """As far back."""
        return Span(-self.months, -self.days, -self.seconds)


Value = Cell | Span | None
Translation = Callable[[Any, Scope], Value]

# By the parser's class; functions are added by `functions`.
TRANSLATIONS: dict[type[exp.Expr], Translation] = {}


def translates(*kinds: type[exp.Expr]) -> Callable[[Translation], Translation]:
    """Registers how nodes of these kinds are translated."""

    def register(translation: Translation) -> Translation:
        TRANSLATIONS.update(dict.fromkeys(kinds, translation))
        return translation

    return register


_AGGREGATE = (
    "an aggregate is of many records, and this looks at one: use HAVING, or a GROUP BY in a sub-query"
)
_NOT_HERE: dict[type[exp.Expr], str] = {
    exp.Star: "* is for COUNT(*) only",
    exp.Exists: "EXISTS belongs to WHERE, as a condition of its own joined by AND",
    exp.Tuple: "a list of values is for IN: (a, b) IN (SELECT …)",
}  # fmt: skip


def translate(node: exp.Expr, scope: Scope) -> Value:
    """The value of a node; BadSQL at the innermost place where it has none."""
    found = scope.special(node)
    if found is not None:
        return found
    translation = TRANSLATIONS.get(type(node))
    if translation is None:
        raise scope.error(_NOT_HERE.get(type(node), _AGGREGATE), node)
    try:
        return translation(node, scope)
    except BadSQL:
        raise
    except BadExpression as error:
        raise scope.error(str(error), node) from None


def cell(node: exp.Expr, scope: Scope, wanted: Type | None = None) -> Cell:
    """The value of a node as a cell; a NULL is of the type wanted."""
    value = translate(node, scope)
    if isinstance(value, Span):
        raise scope.error(
            "an INTERVAL is added to a constant date: DATE '1998-12-01' - INTERVAL 90 DAY", node
        )
    if value is None:
        if wanted is None:
            raise scope.error("NULL by itself has no type: write CAST(NULL AS BIGINT), say", node)
        return constant(None, wanted)
    return value


def condition(node: exp.Expr, scope: Scope) -> Cell:
    """The value of a node as a condition."""
    found = cell(node, scope, BOOL)
    if found.type is not BOOL:
        raise scope.error(f"this is no condition but {found.type.value}: compare it with something", node)
    return found


def number(node: exp.Expr, scope: Scope) -> Cell:
    """The value of a node as a number."""
    found = cell(node, scope, FLOAT64)
    if found.type not in (INT64, FLOAT64):
        raise scope.error(f"this needs a number, and it is {found.type.value}", node)
    return found


def text(node: exp.Expr, scope: Scope) -> Cell:
    """The value of a node as a text."""
    found = cell(node, scope, STRING)
    if found.type is not STRING:
        raise scope.error(f"this needs a text, and it is {found.type.value}: CAST(… AS VARCHAR)", node)
    return found


def literal(node: exp.Expr, scope: Scope, what: str) -> Any:
    """The value of a node that must be a constant."""
    value = translate(node, scope)
    if isinstance(value, Cell) and value.call is None:
        return evaluate(value.tree, {})
    raise scope.error(f"{what} must be a constant", node)


def together(*nodes: exp.Expr, scope: Scope) -> tuple[Cell, ...]:
    """The values of nodes as cells of one type, as far as that is obvious."""
    values = [translate(node, scope) for node in nodes]
    for node, value in zip(nodes, values, strict=True):
        if isinstance(value, Span):
            raise scope.error("an INTERVAL is added to a constant date and not compared", node)
    return alike(*values)


def alike(*values: Any) -> tuple[Cell, ...]:
    """Cells of one type: what `client.rows` converts, and constant texts that are dates."""
    types = {value.type for value in values if value is not None}
    if not types:
        return tuple(constant(None, BOOL) for _ in values)
    if STRING in types and types & {DATE, TIMESTAMP}:
        wanted = TIMESTAMP if TIMESTAMP in types else DATE
        values = tuple(_as_time(value, wanted) for value in values)
    found = of_one_type(*values)
    if len({each.type for each in found}) > 1:
        named = " and ".join(sorted({each.type.value for each in found}))
        raise BadExpression(f"{named} do not go together here: CAST one of them")
    return found


def _as_time(value: Cell | None, wanted: Type) -> Cell | None:
    if value is None or value.type is not STRING or not isinstance(value.tree, Literal):
        return value
    parsed = evaluate(value.cast(wanted).tree, {})
    if parsed is None:
        raise BadExpression(f"this text is no {wanted.value}: write '2024-01-31'")
    return constant(parsed, wanted)


# ── values ───────────────────────────────────────────────────────────────────────────


@translates(exp.Column)
def _column(node: exp.Column, scope: Scope) -> Value:
    if isinstance(node.this, exp.Star):
        raise scope.error("* stands for whole records, which are private: name a statistic", node)
    return scope.column(node)


@translates(exp.Literal)
def _literal(node: exp.Literal, scope: Scope) -> Value:
    if node.is_string:
        return constant(node.this)
    try:
        found = int(node.this) if node.this.isdecimal() else float(node.this)
    except ValueError:  # the tokenizer takes 0E and 1e5.2 for numbers
        raise scope.error("numbers are decimal here: 10, 2.5 or 1e6", node) from None
    if found in (inf, -inf):
        raise scope.error("this number is too large", node)
    return constant(found)


@translates(exp.Boolean)
def _boolean(node: exp.Boolean, scope: Scope) -> Value:
    return constant(bool(node.this))


@translates(exp.Null)
def _null(node: exp.Null, scope: Scope) -> Value:
    return None


@translates(exp.Paren)
def _paren(node: exp.Paren, scope: Scope) -> Value:
    return translate(node.this, scope)


@translates(exp.Subquery)
def _scalar(node: exp.Subquery, scope: Scope) -> Value:
    return scope.scalar(node)


_UNITS = {
    "YEAR": Span(12, 0, 0), "QUARTER": Span(3, 0, 0), "MONTH": Span(1, 0, 0), "WEEK": Span(0, 7, 0),
    "DAY": Span(0, 1, 0), "HOUR": Span(0, 0, 3600), "MINUTE": Span(0, 0, 60), "SECOND": Span(0, 0, 1),
}  # fmt: skip


@translates(exp.Interval)
def _interval(node: exp.Interval, scope: Scope) -> Value:
    unit = _UNITS.get((node.text("unit") or "DAY").upper().removesuffix("S"))
    written = node.this.this if isinstance(node.this, exp.Literal) else ""
    if unit is None or not written.removeprefix("-").isdecimal() or len(written) > 6:
        raise scope.error("an interval is a whole number of days, months and the like: INTERVAL 90 DAY", node)
    times = int(written)
    return Span(unit.months * times, unit.days * times, unit.seconds * times)


# ── logic ────────────────────────────────────────────────────────────────────────────


def _chain(node: exp.Connector) -> list[exp.Expr]:
    """The operands of a chain of the same connector, without recursion along it."""
    found: list[exp.Expr] = []
    at: exp.Expr = node
    while type(at) is type(node):
        found.append(at.expression)
        at = at.this
    return [at, *reversed(found)]


@translates(exp.And, exp.Or)
def _connector(node: exp.Connector, scope: Scope) -> Value:
    operator = "and" if isinstance(node, exp.And) else "or"
    return chained(operator, [condition(each, scope) for each in _chain(node)])


def chained(operator: str, tests: Sequence[Cell]) -> Cell:
    """Conditions joined by one operator: in pairs, so that a long chain is no deep tree."""
    while len(tests) > 1:
        pairs = zip(tests[::2], tests[1::2], strict=False)
        tests = [apply(operator, a, b) for a, b in pairs] + list(tests[len(tests) // 2 * 2 :])
    return tests[0]


@translates(exp.Not)
def _not(node: exp.Not, scope: Scope) -> Value:
    return apply("not", condition(node.this, scope))


_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "equal", exp.NEQ: "not_equal", exp.LT: "less", exp.LTE: "less_equal", exp.GT: "greater",
    exp.GTE: "greater_equal",
}  # fmt: skip


@translates(*_COMPARISONS)
def _comparison(node: exp.Binary, scope: Scope) -> Value:
    return apply(_COMPARISONS[type(node)], *together(node.this, node.expression, scope=scope))


@translates(exp.NullSafeEQ, exp.NullSafeNEQ)
def _null_safe(node: exp.Binary, scope: Scope) -> Value:
    a, b = together(node.this, node.expression, scope=scope)
    differ = apply("fill_null", apply("not_equal", a, b), apply("not_equal", a.is_null(), b.is_null()))
    return differ if isinstance(node, exp.NullSafeNEQ) else apply("not", differ)


@translates(exp.Is)
def _is(node: exp.Is, scope: Scope) -> Value:
    if isinstance(node.expression, exp.Null):
        return cell(node.this, scope, BOOL).is_null()
    if not isinstance(node.expression, exp.Boolean):
        raise scope.error("IS is followed by [NOT] NULL, TRUE or FALSE", node)
    found = condition(node.this, scope)
    wanted = found if node.expression.this else apply("not", found)
    return apply("fill_null", wanted, constant(False))


@translates(exp.Between)
def _between(node: exp.Between, scope: Scope) -> Value:
    above = apply("greater_equal", *together(node.this, node.args["low"], scope=scope))
    below = apply("less_equal", *together(node.this, node.args["high"], scope=scope))
    return apply("and", above, below)


@translates(exp.In)
def _in(node: exp.In, scope: Scope) -> Value:
    if node.args.get("query") is not None:
        raise scope.error("IN (SELECT …) belongs to WHERE, as a condition of its own joined by AND", node)
    cells = together(node.this, *node.expressions, scope=scope)
    return one_of(cells[0], cells[1:])


def one_of(found: Cell, values: tuple[Cell, ...]) -> Cell:
    """Whether a cell is one of several: of the constants in one operator."""
    constants = [value for value in values if _is_constant(value) and not _is_null(value)]
    tests = [apply("is_in", found, *constants)] if constants else []
    tests += [apply("equal", found, value) for value in values if not _is_constant(value)]
    tests += [constant(None, BOOL)] if any(map(_is_null, values)) else []
    return chained("or", tests)


def _is_constant(value: Cell) -> bool:
    return isinstance(value.tree, Literal)


def _is_null(value: Cell) -> bool:
    return isinstance(value.tree, Literal) and value.tree.value is None


def if_else(test: Cell, then: Any, otherwise: Any) -> Cell:
    """then where the test is true, otherwise where it is false or null."""
    return apply("if_else", test, *alike(then, otherwise))


@translates(exp.Case)
def _case(node: exp.Case, scope: Scope) -> Value:
    whens = node.args["ifs"]
    default = node.args.get("default")
    values = [each.args["true"] for each in whens] + ([default] if default is not None else [])
    results = list(together(*values, scope=scope))
    if default is None:
        results.append(constant(None, results[0].type))
    *thens, found = results
    for when, then in reversed(list(zip(whens, thens, strict=True))):
        if node.this is None:
            test = condition(when.this, scope)
        else:
            test = apply("equal", *together(node.this, when.this, scope=scope))
        found = apply("if_else", test, then, found)
    return found


@translates(exp.If)
def _if(node: exp.If, scope: Scope) -> Value:
    otherwise = node.args.get("false")
    then, other = together(node.args["true"], otherwise or exp.Null(), scope=scope)
    return apply("if_else", condition(node.this, scope), then, other)


# ── arithmetic ───────────────────────────────────────────────────────────────────────


@translates(exp.Add, exp.Sub)
def _sum(node: exp.Binary, scope: Scope) -> Value:
    a, b = translate(node.this, scope), translate(node.expression, scope)
    if isinstance(b, Span) and not isinstance(a, Span):
        return _moved(node, a, b if isinstance(node, exp.Add) else b.negated(), scope)
    if isinstance(a, Span) and not isinstance(b, Span) and isinstance(node, exp.Add):
        return _moved(node, b, a, scope)
    if isinstance(a, Span) or isinstance(b, Span):
        raise scope.error("an INTERVAL is added to a constant date", node)
    times = [each for each in (a, b) if each is not None and each.type in (DATE, TIMESTAMP)]
    if times and isinstance(node, exp.Add):
        raise scope.error("dates are compared or subtracted; INTERVAL is added to a constant date", node)
    pair = alike(a, b)
    if pair[0].type is TIMESTAMP:
        raise scope.error("write DATE_DIFF('day', b, a) for the days between timestamps", node)
    operator = "add" if isinstance(node, exp.Add) else "subtract"
    return exactly(apply(operator, *_numbers(node, pair, scope, times)))


def _numbers(node: exp.Expr, pair: tuple[Cell, ...], scope: Scope, times: Any = ()) -> tuple[Cell, ...]:
    if pair[0].type is BOOL and all(_is_null(each) for each in pair):
        return tuple(constant(None, INT64) for _ in pair)
    if pair[0].type not in (INT64, FLOAT64) and not times:
        raise scope.error(f"arithmetic needs numbers, and this is {pair[0].type.value}", node)
    return pair


def _moved(node: exp.Expr, value: Value, span: Span, scope: Scope) -> Cell:
    """A constant date, moved by an interval."""
    if not isinstance(value, Cell) or value.call is not None or value.type not in (DATE, TIMESTAMP):
        raise scope.error(
            "an INTERVAL is added to a constant date only: instead of d + INTERVAL 90 DAY < e "
            "write DATE_DIFF('day', d, e) > 90",
            node,
        )
    at: Any = evaluate(value.tree, {})
    try:
        moved = _by_months(at, span.months) + timedelta(days=span.days)
        if span.seconds:
            moved = moved if isinstance(moved, datetime) else datetime.combine(moved, datetime.min.time())
            moved += timedelta(seconds=span.seconds)
    except (OverflowError, ValueError):
        raise scope.error("this date is beyond the years 1 to 9999", node) from None
    return constant(moved)


def _by_months(at: date, months: int) -> date:
    year, month = divmod(at.year * 12 + at.month - 1 + months, 12)
    for day in (at.day, 30, 29, 28):  # the last day of a shorter month
        try:
            return at.replace(year=year, month=month + 1, day=min(day, at.day))
        except ValueError:
            if not 1 <= year <= 9999:
                raise
    raise ValueError("no such day")


@translates(exp.Mul)
def _product(node: exp.Mul, scope: Scope) -> Value:
    pair = _numbers(node, together(node.this, node.expression, scope=scope), scope)
    return exactly(apply("multiply", *pair))


_EXACT: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b,
}  # fmt: skip


def exactly(found: Cell) -> Cell:
    """Constants as decimals, as SQL has them: 0.06 + 0.01 is 0.07, which it is not in floats."""
    assert isinstance(found.tree, Apply)
    pair = [rational(each.value) if isinstance(each, Literal) else None for each in found.tree.arguments]
    if found.type is not FLOAT64 or pair[0] is None or pair[1] is None:
        return found
    try:
        return constant(float(_EXACT[found.tree.operator](pair[0], pair[1])))
    except OverflowError:
        return found


@translates(exp.Div, exp.Pow)
def _floats(node: exp.Binary, scope: Scope) -> Value:
    pair = [floating(number(each, scope)) for each in (node.this, node.expression)]
    return apply("divide" if isinstance(node, exp.Div) else "power", *pair)


def floating(found: Cell) -> Cell:
    """A number as a float."""
    return alike(found, constant(None, FLOAT64))[0] if found.type is INT64 else found


@translates(exp.IntDiv)
def _whole_quotient(node: exp.IntDiv, scope: Scope) -> Value:
    """Towards zero, as in DuckDB; the row language divides towards −∞."""
    a, b = together(node.this, node.expression, scope=scope)
    if a.type is not INT64:
        raise scope.error("// divides whole numbers: write FLOOR(a / b) for others", node)
    quotient = apply("floor_divide", a.abs(), b.abs())
    zero = constant(0)
    return if_else(
        apply("equal", apply("less", a, zero), apply("less", b, zero)), quotient, apply("negate", quotient)
    )


@translates(exp.Mod)
def _remainder(node: exp.Mod, scope: Scope) -> Value:
    """Of the sign of what is divided, as in DuckDB; in the row language of the sign of the divisor."""
    a, b = _numbers(node, together(node.this, node.expression, scope=scope), scope)
    rest = apply("modulo", a, b)
    zero = constant(0, a.type)
    other = apply("not_equal", apply("less", a, zero), apply("less", b, zero))
    off = apply("and", apply("not_equal", rest, zero), other)
    return if_else(off, apply("subtract", rest, b), rest)


@translates(exp.Neg)
def _negated(node: exp.Neg, scope: Scope) -> Value:
    return apply("negate", number(node.this, scope))


# ── casts ────────────────────────────────────────────────────────────────────────────

_TYPES: dict[str, Type] = {
    **dict.fromkeys(["BOOLEAN"], BOOL),
    **dict.fromkeys(["TINYINT", "SMALLINT", "INT", "BIGINT"], INT64),
    **dict.fromkeys(["FLOAT", "DOUBLE", "DECIMAL"], FLOAT64),
    **dict.fromkeys(["VARCHAR", "TEXT", "CHAR"], STRING),
    "DATE": DATE,
    **dict.fromkeys(["TIMESTAMP", "TIMESTAMPNTZ", "DATETIME"], TIMESTAMP),
}


@translates(exp.Cast, exp.TryCast)
def _cast(node: exp.Cast, scope: Scope) -> Value:
    """Null where it cannot be cast, TRY or not: an error would depend on data."""
    wanted = _TYPES.get(node.args["to"].this.name)
    if wanted is None:
        raise scope.error("cast to BOOLEAN, BIGINT, DOUBLE, VARCHAR, DATE or TIMESTAMP", node)
    value = cell(node.this, scope, wanted)
    if isinstance(value.tree, Literal) and value.type is STRING and wanted in (DATE, TIMESTAMP):
        return _as_time(value, wanted)
    return casted(value, wanted)


def casted(value: Cell, wanted: Type) -> Cell:
    """A cell as another type. Floats become the nearest whole number, a half the even one."""
    if value.type is wanted:
        return value
    if wanted is INT64 and value.type is FLOAT64:
        value = apply("round", value)
    if wanted is BOOL and value.type in (INT64, FLOAT64):
        return apply("not_equal", value, constant(0, value.type))
    return value.cast(wanted)
