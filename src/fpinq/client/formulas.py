"""Formulas: row expressions as text, as SQL writes them. A parser of our own; nothing is ever evaluated.

    age > 17 and city in ('Bergen', 'Calau')        "first name" = 'Ann' or income / 12 < 1000
    month between 3 and 5                           not (cost is null)

    formula     = and { "or" and }
    and         = not { "and" not }
    not         = { "not" } comparison
    comparison  = sum [ ("=" | "==" | "!=" | "<>" | "<" | "<=" | ">" | ">=") sum
                      | ["not"] "in" "(" constant { "," constant } ")"
                      | ["not"] "between" sum "and" sum
                      | "is" ["not"] "null" ]
    sum         = product { ("+" | "-") product }
    product     = factor { ("*" | "/" | "//" | "%") factor }
    factor      = "-" factor | constant | column | function "(" formula { "," formula } ")" | "(" formula ")"
    constant    = number | 'text' | "true" | "false" | "date" 'YYYY-MM-DD' | "timestamp" 'YYYY-MM-DD HH:MM:SS'
    column      = name | "any name"

What comes of it are cells, made as a program's lambda makes them: which columns there are, of which types,
and what may stand beside what is said in one place.
"""

import re
from collections.abc import Callable
from datetime import date, datetime
from typing import Any, NamedTuple

from fpinq.client.rows import Cell, Row, constant
from fpinq.client.shorthand import if_else
from fpinq.model.errors import BadExpression, UnknownColumn, suggest

MAX_CHARACTERS = 10_000
# Brackets, nots and signs within each other; and everything that is read.
MAX_DEPTH, MAX_TOKENS = 50, 1_000

_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?)
      | (?P<name>[^\W\d]\w*)
      | (?P<text>'(?:[^']|'')*')
      | (?P<column>"(?:[^"]|"")*")
      | (?P<sign><=|>=|<>|!=|==|//|[-+*/%=<>(),])""",
    re.VERBOSE,
)

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": lambda a, b: a == b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
}
# What a function is called here ↦ how many arguments it takes, and what it is of cells.
FUNCTIONS: dict[str, tuple[int, Callable[..., Any]]] = {
    **{
        name: (1, lambda x, name=name: getattr(x, name)())
        for name in (
            *("abs", "sign", "floor", "ceil", "round", "sqrt", "exp", "log"),
            *("lower", "upper", "strip", "length", "year", "month", "day", "weekday", "hour"),
        )
    },
    "power": (2, lambda x, y: x.power(y)),
    "contains": (2, lambda x, part: x.contains(part)),
    "starts_with": (2, lambda x, part: x.starts_with(part)),
    "ends_with": (2, lambda x, part: x.ends_with(part)),
    "coalesce": (2, lambda x, other: x.fill_null(other)),
    "if": (3, if_else),
}
_WORDS = {"and", "or", "not", "in", "between", "is", "null", "true", "false"}


def formula(text: str, what: str = "a formula") -> Callable[[Row], Cell]:
    """The function of a row that a text is; BadExpression where it is none, found when it is called."""
    return lambda row: _Reader(text, what, row).whole()


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


def _tokens(text: str, what: str) -> list[_Token]:
    if len(text) > MAX_CHARACTERS:
        raise BadExpression(f"{what} has at most {MAX_CHARACTERS:,} characters")
    found: list[_Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            hint = ": a text ends where it began, with a '" if text[at] in "'\"" else ""
            raise BadExpression(f"{what} cannot be read at {text[at : at + 20]!r}{hint}")
        if match.lastgroup != "space":
            found.append(_Token(str(match.lastgroup), match[0], at))
        at = match.end()
    if len(found) > MAX_TOKENS:
        raise BadExpression(f"{what} has at most {MAX_TOKENS:,} words and signs")
    return found


class _Reader:
    """One reading of a text, from its first token to its last."""

    def __init__(self, text: str, what: str, row: Row) -> None:
        self._what, self._row = what, row
        self._tokens = _tokens(text, what)
        self._next = 0
        self._depth = 0

    def whole(self) -> Cell:
        found = self._formula()
        if self._next < len(self._tokens):
            raise self._unexpected()
        return found

    # ── tokens ───────────────────────────────────────────────────────────────────────

    def _peek(self) -> str:
        """The next word in lower case, or sign; "" at the end, or for a text or a column."""
        token = self._tokens[self._next] if self._next < len(self._tokens) else None
        return token.text.lower() if token is not None and token.kind in ("name", "sign") else ""

    def _take(self, *wanted: str) -> str:
        """The next token, if it is one of these; else ""."""
        found = self._peek()
        if found and found in wanted:
            self._next += 1
            return found
        return ""

    def _need(self, wanted: str) -> None:
        if not self._take(wanted):
            raise self._unexpected(wanted)

    def _unexpected(self, wanted: str = "") -> BadExpression:
        missing = f"{wanted!r} is missing" if wanted else "something is missing"
        if self._next >= len(self._tokens):
            return BadExpression(
                f"{self._what} ends too early: {missing}, as in age > 17 and city = 'Bergen'"
            )
        found = self._tokens[self._next]
        return BadExpression(
            f"{self._what}: {found.text[:40]!r} is not expected there{f', {missing}' * bool(wanted)}"
        )

    # ── the grammar ──────────────────────────────────────────────────────────────────

    def _formula(self) -> Cell:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise BadExpression(f"{self._what} has at most {MAX_DEPTH} brackets within each other")
        found = self._and()
        while self._take("or"):
            found = found | self._and()
        self._depth -= 1
        return found

    def _and(self) -> Cell:
        found = self._not()
        while self._take("and"):
            found = found & self._not()
        return found

    def _not(self) -> Cell:
        times = 0
        while self._take("not"):
            times += 1
        found = self._comparison()
        for _ in range(min(times, MAX_DEPTH)):
            found = ~found
        return found

    def _comparison(self) -> Cell:
        found = self._sum()
        if sign := self._take(*_COMPARE):
            compared: Cell = _COMPARE[sign](found, self._sum())
            if self._peek() in _COMPARE:
                raise BadExpression(f"{self._what}: write a > 1 and a < 5 for 1 < a < 5")
            return compared
        if self._take("is"):
            other = bool(self._take("not"))
            self._need("null")
            return ~found.is_null() if other else found.is_null()
        other = bool(self._take("not"))
        if self._take("in"):
            chosen = found.is_in(self._listed())
        elif self._take("between"):
            least = self._sum()
            self._need("and")
            chosen = (found >= least) & (found <= self._sum())
        elif other:
            raise self._unexpected("in")
        else:
            return found
        return ~chosen if other else chosen

    def _sum(self) -> Cell:
        return self._chain(self._product, "+", "-")

    def _product(self) -> Cell:
        return self._chain(self._factor, "*", "/", "//", "%")

    def _chain(self, part: Callable[[], Cell], *signs: str) -> Cell:
        found = part()
        while sign := self._take(*signs):
            found = _ARITHMETIC[sign](found, part())
        return found

    def _factor(self) -> Cell:
        minus = 0
        while self._take("-"):
            minus += 1
        found = self._primary()
        for _ in range(min(minus, MAX_DEPTH)):
            found = -found
        return found

    def _primary(self) -> Cell:
        if self._take("("):
            found = self._formula()
            self._need(")")
            return found
        if (plain := self._constant()) is not None:
            return constant(plain)
        if self._next >= len(self._tokens):
            raise self._unexpected()
        token = self._tokens[self._next]
        if token.kind == "column":
            self._next += 1
            return self._column(token.text[1:-1].replace('""', '"'), quoted=True)
        if token.kind != "name" or token.text.lower() in _WORDS:
            raise self._unexpected()
        self._next += 1
        return self._function(token.text.lower()) if self._peek() == "(" else self._column(token.text)

    def _column(self, name: str, *, quoted: bool = False) -> Cell:
        try:
            return self._row[name]
        except UnknownColumn as error:
            if quoted:
                shown = name[:40].replace("'", "''")
                raise BadExpression(f"{error}. A text has single quotes: '{shown}'") from None
            raise

    def _function(self, name: str) -> Cell:
        if name not in FUNCTIONS:
            raise BadExpression(
                f"{self._what}: no function {name[:40]!r}{suggest(name, FUNCTIONS)}; "
                f"there are {', '.join(FUNCTIONS)}"
            )
        takes, of = FUNCTIONS[name]
        self._need("(")
        given = [self._formula()]
        while self._take(","):
            given.append(self._formula())
        self._need(")")
        if len(given) != takes:
            raise BadExpression(f"{self._what}: {name} takes {takes}, and {len(given)} are given")
        found: Cell = of(*given)
        return found

    def _listed(self) -> list[object]:
        self._need("(")
        found: list[object] = []
        while not found or self._take(","):
            minus = bool(self._take("-"))
            one = self._constant()
            if one is None or (minus and type(one) not in (int, float)):
                raise self._unexpected("a constant, such as 1 or 'Bergen',")
            found.append(-one if minus else one)  # type: ignore[operator]
        self._need(")")
        return found

    def _constant(self) -> bool | int | float | str | date | None:
        """A constant, if one comes next."""
        if self._next >= len(self._tokens):
            return None
        kind, text, _ = self._tokens[self._next]
        word = text.lower()
        if kind == "number":
            self._next += 1
            return float(text) if re.search("[.eE]", text) else _whole(text)
        if kind == "text":
            self._next += 1
            return _unquoted(text)
        if kind == "name" and word in ("true", "false"):
            self._next += 1
            return word == "true"
        if kind == "name" and word in ("date", "timestamp") and self._followed_by_text():
            self._next += 2
            return time_of(_unquoted(self._tokens[self._next - 1].text), exactly=word == "timestamp")
        return None

    def _followed_by_text(self) -> bool:
        return self._next + 1 < len(self._tokens) and self._tokens[self._next + 1].kind == "text"


def _unquoted(text: str) -> str:
    return text[1:-1].replace("''", "'")


def _whole(text: str) -> int:
    if len(text) > 40:
        raise BadExpression("a number has at most 40 digits")
    return int(text)


def time_of(text: str, *, exactly: bool) -> date | datetime:
    """The day that a text is, or the time."""
    try:
        if exactly:
            found = datetime.fromisoformat(text)
            if found.tzinfo is None:
                return found
        elif re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text, re.ASCII):
            return date.fromisoformat(text)
    except ValueError:
        pass
    example = "2024-02-29 12:00:00" if exactly else "2024-02-29"
    raise BadExpression(f"{text[:40]!r} is no {'time' if exactly else 'day'}: write '{example}'")
