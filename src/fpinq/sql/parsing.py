"""From text to one statement: bounded, of named syntax only, and with places to point at."""

import logging
import re
from collections.abc import Mapping
from dataclasses import field
from datetime import date
from fractions import Fraction

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from fpinq.model.discovery import MAX_FOUND
from fpinq.model.domains import DateDomain, IntegerDomain, SimpleDomain, StringDomain
from fpinq.model.errors import BadSQL, ProgramError
from fpinq.model.frozen import dataclass
from fpinq.sql.grammar import ALLOWED, REASONS

MAX_LENGTH = 65_536
MAX_TOKENS = 10_000
MAX_FILE = 1_000_000
MAX_NESTING = 40
MAX_DEPTH = 150
MAX_DIGITS = 400

_DIALECT = DuckDB()
_EXPLAIN = re.compile(r"\s*EXPLAIN\b", re.IGNORECASE)
# Nothing is read twice: a hint of 60,000 blanks would be, by every way to share them out.
_HINT = re.compile(r"\s*+(\w++)\s*+\(\s*+\"?+([^\"(),]++)\"?+\s*+,\s*+([0-9./]++)\s*+\)\s*+,?")
_DOMAIN = re.compile(
    r"\s*+domain\s*+\(\s*+\"?+([^\"(),]++)\"?+\s*+,\s*+([-0-9]++)\s*+(?:,\s*+([-0-9]++)\s*+)?\)\s*+,?",
    re.IGNORECASE,
)
_MOST_KEYS = re.compile(r"\s*+most_keys\s*+\(\s*+([0-9]++)\s*+\)\s*+,?", re.IGNORECASE)
_COMPARISONS = {TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE}
_PAIRED = {TokenType.NUMBER, *_COMPARISONS}

_CHAINS = (exp.And, exp.Or)
_SOURCES = (exp.Table, exp.Subquery, exp.Values)

# The parser warns of what it falls back from; whatever it cannot read is refused here.
logging.getLogger("sqlglot").addHandler(logging.NullHandler())
logging.getLogger("sqlglot").propagate = False


@dataclass(frozen=True)
class Hints:
    """What `/*+ … */` says: how many records of a key a join may use, weights of columns, domains of keys."""

    at_most: Mapping[str, int] = field(default_factory=dict)
    weights: Mapping[str, Fraction] = field(default_factory=dict)
    # Of keys that nobody listed: which there can be, how many are shown; and the δ, which is said beside.
    domains: Mapping[str, SimpleDomain] = field(default_factory=dict)
    most_keys: int | None = None
    delta: Fraction | None = None


@dataclass(frozen=True)
class Text:
    """The statement as it was written, to point at."""

    text: str

    def error(self, message: str, node: exp.Expr | None = None) -> BadSQL:
        """BadSQL at the place of a node."""
        return self.at(message, start_of(node))

    def at(self, message: str, start: int) -> BadSQL:
        """BadSQL at a position in the text: the line, and a caret under the place."""
        start = max(0, min(start, len(self.text)))
        line = self.text.count("\n", 0, start) + 1
        begin = self.text.rfind("\n", 0, start) + 1
        end = self.text.find("\n", begin)
        whole = self.text[begin : len(self.text) if end < 0 else end]
        column = start - begin + 1
        # Of a long line what is around the place; and nothing that a terminal would obey.
        first = max(0, column - 60)
        shown = "".join(c if c.isprintable() else "\ufffd" for c in whole[first : first + 110])
        return BadSQL(message, line, column, f"  {shown}\n  {' ' * (column - 1 - first)}^")


def start_of(node: exp.Expr | None) -> int:
    """Where a node begins: the first place that it or something in it has; else the nearest around it."""
    while node is not None:
        places = [found.meta["start"] for found in node.walk() if "start" in found.meta]
        if places:
            return int(min(places))
        node = node.parent
    return 0


@dataclass(frozen=True)
class Parsed:
    """One statement."""

    text: Text
    tree: exp.Query
    hints: Hints
    explained: bool
    # The tables, sub-queries and VALUES that are anywhere in it.
    sources: tuple[exp.Expr, ...]

    @property
    def tables(self) -> frozenset[str]:
        """The names of tables in it, those that WITH gives among them."""
        found = [each for each in self.sources if isinstance(each, exp.Table)]
        return frozenset(f"{each.db}.{each.name}" if each.db else each.name for each in found)


def parse(text: object) -> Parsed:
    """The statement that a text is; BadSQL says where it is none of ours."""
    if not isinstance(text, str):
        raise BadSQL(f"a statement is a text, not {type(text).__name__}")
    source = Text(text)
    if len(text) > MAX_LENGTH:
        raise BadSQL(f"a statement has at most {MAX_LENGTH:,} characters, and this has {len(text):,}")
    explained = _EXPLAIN.match(text)
    if explained:  # blanked, so that places stay where they are
        text = " " * explained.end() + text[explained.end() :]
    try:
        tokens = _DIALECT.tokenize(text)
        hints = _checked(source, tokens)
        found = [tree for tree in _DIALECT.parser().parse(tokens, text) if tree is not None]
    except TokenError:
        raise source.at("this text is not closed: a quote or a comment has no end", len(text)) from None
    except ParseError as error:
        raise _syntax(source, error) from None
    except RecursionError:
        raise source.at("nested too deeply", 0) from None
    if not found:
        raise source.at("there is no statement: write SELECT … FROM …", 0)
    if len(found) > 1:
        raise source.error("one statement at a time: this is another", found[1])
    tree = found[0]
    if not isinstance(tree, exp.Select | exp.SetOperation):
        raise source.error(
            f"{type(tree).__name__.upper()} is not asked here: a statement is a SELECT (or EXPLAIN SELECT); "
            "data is protected and changed by its owner, outside of SQL",
            tree,
        )
    sources = check_named(source, tree)
    return Parsed(source, tree, hints, explained is not None, sources)


def apart(text: str) -> list[str]:
    """The statements of a text that semicolons end, each as it is written; none of them is read yet."""
    source = Text(text)
    if len(text) > MAX_FILE:
        raise BadSQL(f"a text of statements has at most {MAX_FILE:,} characters")
    try:
        tokens = _DIALECT.tokenize(text)
    except TokenError:
        raise source.at("this text is not closed: a quote or a comment has no end", len(text)) from None
    ends = [token.start for token in tokens if token.token_type is TokenType.SEMICOLON]
    starts = [0, *(end + 1 for end in ends)]
    pieces = [text[start:end].strip() for start, end in zip(starts, [*ends, len(text)], strict=True)]
    return [piece for piece in pieces if piece and _DIALECT.tokenize(piece)]


def _syntax(source: Text, error: ParseError) -> BadSQL:
    if not error.errors:
        return source.at("this is no SQL that we read", 0)
    found = error.errors[0]
    lines = source.text.split("\n")
    line, column = int(found["line"] or 1), int(found["col"] or 1)
    highlight = found["highlight"] or ""
    start = sum(len(each) + 1 for each in lines[: line - 1]) + column - max(len(highlight), 1)
    said = (found["description"] or "this is no SQL that we read").rstrip(".")
    if said.startswith("Required"):  # the parser's own words for it
        said = "something is missing here"
    return source.at(f"syntax: {said[0].lower()}{said[1:]}", start)


def _checked(source: Text, tokens: list[Token]) -> Hints:
    """The hints among tokens that are few, not deep, and mean to the parser what they say."""
    if len(tokens) > MAX_TOKENS:
        raise source.at(f"a statement has at most {MAX_TOKENS:,} words and signs", tokens[MAX_TOKENS].start)
    depth = 0
    hints: list[str] = []
    before: Token | None = None
    for token in tokens:
        if token.token_type in (TokenType.L_PAREN, TokenType.CASE):
            depth += 1
        elif token.token_type in (TokenType.R_PAREN, TokenType.END):
            depth -= 1
        if depth > MAX_NESTING:
            raise source.at(f"nested too deeply: at most {MAX_NESTING} levels", token.start)
        if token.token_type is TokenType.NUMBER and len(token.text) > MAX_DIGITS:
            raise source.at(f"a number has at most {MAX_DIGITS} digits", token.start)
        if before is not None and before.token_type in _PAIRED:
            _check_pair(source, before, token)
        if token.comments:
            hints += [comment[1:] for comment in token.comments if comment.startswith("+")]
        before = token
    return _hints(source, hints)


def _check_pair(source: Text, before: Token, token: Token) -> None:
    """BadSQL for two words that the parser reads as something else than is written."""
    if before.token_type is TokenType.NUMBER and before.end + 1 == token.start and token.text[:1].isalpha():
        raise source.at("numbers are decimal here: 10, 2.5 or 1e6", before.start)
    if before.token_type in _COMPARISONS and token.token_type in (
        TokenType.ALL,
        TokenType.ANY,
        TokenType.SOME,
    ):
        raise source.at("a comparison with ALL or ANY is not supported: join, or compare with MIN or MAX",
                        token.start)  # fmt: skip


def _hints(source: Text, comments: list[str]) -> Hints:
    at_most: dict[str, int] = {}
    weights: dict[str, Fraction] = {}
    domains: dict[str, SimpleDomain] = {}
    most_keys: int | None = None
    for comment in comments:
        rest = comment
        place = max(source.text.find(comment), 0)
        while rest.strip():
            if (most := _MOST_KEYS.match(rest)) is not None:
                most_keys = _most_keys(source, most[1], place)
                rest = rest[most.end() :]
                continue
            if (of := _DOMAIN.match(rest)) is not None:
                domains[of[1].strip().lower()] = _domain(source, of[2], of[3], place)
                rest = rest[of.end() :]
                continue
            found = _HINT.match(rest)
            number = _number(found[3]) if found else None
            if not found or number is None or number <= 0 or found[1].lower() not in ("at_most", "weight"):
                raise source.at(
                    "a hint is /*+ at_most(table, 3) */, /*+ weight(column, 2) */, /*+ domain(key, 32) */ or "
                    "/*+ most_keys(100) */",
                    place,
                )
            if found[1].lower() == "weight":
                weights[found[2].strip().lower()] = number
            elif number.denominator != 1:
                raise source.at("at_most takes a whole number of records for each key", place)
            else:
                at_most[found[2].strip().lower()] = int(number)
            rest = rest[found.end() :]
    return Hints(at_most, weights, domains, most_keys)


def _most_keys(source: Text, number: str, place: int) -> int:
    if len(number) > 9 or not 1 <= int(number) <= MAX_FOUND:
        raise source.at(f"most_keys is how many keys are shown, 1 to {MAX_FOUND:,}", place)
    return int(number)


def _domain(source: Text, low: str, high: str | None, place: int) -> SimpleDomain:
    """The domain that a hint names: of texts by their bytes, of integers or dates by both ends."""
    try:
        if high is None:
            return StringDomain(int(low))
        if low.lstrip("-").isdecimal() and high.lstrip("-").isdecimal():
            return IntegerDomain(int(low), int(high))
        return DateDomain(date.fromisoformat(low), date.fromisoformat(high))
    except (ValueError, ProgramError):
        raise source.at(
            "a domain is of texts of so many bytes, domain(city, 32); of integers, domain(age, 0, 120); or "
            "of dates, domain(born, 1900-01-01, 2030-12-31)",
            place,
        ) from None


def _number(text: str) -> Fraction | None:
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        return None


def check_named(source: Text, tree: exp.Expr) -> tuple[exp.Expr, ...]:
    """The tables and sub-queries of a statement; BadSQL at the first node, or argument of one, that the
    grammar does not name."""
    sources: list[exp.Expr] = []
    waiting: list[tuple[exp.Expr, int]] = [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        kind = type(node)
        if depth > MAX_DEPTH:
            raise source.error(f"nested too deeply: at most {MAX_DEPTH} operators in one another", node)
        if kind in _SOURCES:
            sources.append(node)
        # A chain of AND, or of OR, is no nesting.
        waiting += [
            (each, depth + (kind not in _CHAINS or type(each) is not kind))
            for each in node.iter_expressions(reverse=True)
        ]
        if kind in REASONS:
            raise source.error(REASONS[kind], node)
        if kind not in ALLOWED:
            raise source.error(f"{_words(node)} is not supported", node)
        for argument, value in node.args.items():
            if argument not in ALLOWED[kind] and value not in (None, False, []):
                word = value if isinstance(value, str) else argument.strip("_").upper()
                said = f"{_words(node) if argument == 'this' else word} is not supported here"
                raise source.error(
                    REASONS.get(type(value), said), value if isinstance(value, exp.Expr) else node
                )
    return tuple(sources)


def _words(node: exp.Expr) -> str:
    if isinstance(node, exp.Func):
        return f"the function {node.sql_name()}"
    return re.sub("(?<=[a-z])(?=[A-Z])", " ", type(node).__name__).lower()
