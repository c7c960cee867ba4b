"""A question: what is asked of which table, as plain data; and as a query of the client's."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Annotated, Any, Literal, NamedTuple, get_args

from fpinq.client import asking
from fpinq.client.answers import Answer, Answers
from fpinq.client.choices import Median, Mode, Quantile
from fpinq.client.counting import Proportion, Top
from fpinq.client.discovery import Discover, ask_found
from fpinq.client.extremes import Maximum, Minimum
from fpinq.client.formulas import formula, time_of
from fpinq.client.histograms import Cdf, Histogram
from fpinq.client.keys import Cells, cells_of_key, keyed
from fpinq.client.queries import Average, Count, DistinctCount, Inquiry, StandardDeviation, Sum, Variance
from fpinq.client.regressions import Correlation, Covariance, OfTwo, Regression
from fpinq.client.rows import Cell
from fpinq.client.spelling import spell
from fpinq.client.table import Table
from fpinq.ledger import wire
from fpinq.ledger.errors import BadWire
from fpinq.model import epsilon as exact
from fpinq.model.errors import BadEpsilon, BadPartition, BadQuery, ProgramError, suggest
from fpinq.model.expressions import Type, Value, is_text
from fpinq.model.notions import Amount, Rho
from fpinq.runtime.refusals import TooLarge
from fpinq.server.questions.discovering import Discovering, discovering_of
from fpinq.server.questions.numbers import Number, exactly, number_of

Scalar = bool | int | float | str | None
Pair = tuple[Number, Number]
Kind = Literal[
    "count",
    "distinct_count",
    "proportion",
    "sum",
    "average",
    "variance",
    "standard_deviation",
    "median",
    "quantile",
    "minimum",
    "maximum",
    "mode",
    "top",
    "histogram",
    "cdf",
    "covariance",
    "correlation",
    "regression",
]

TEXT_CHARACTERS = 10_000
REQUEST_ID_CHARACTERS = 100
MOST_BINS = 10_000
# Questions of which each part is asked by itself have at most so many parts.
MOST_ONE_BY_ONE = 100
# What is computed of products of columns is computed thousands of times for its interval: so many at most.
MOST_PRODUCTS = 6_400
MOST_COLUMNS = 12


@dataclass(frozen=True)
class Question:
    """What is asked of which table. Texts are formulas: `age > 17`, `income / 12`."""

    table: Annotated[str, "a data set; of several tables, dataset.table"]
    kind: Kind
    epsilon: Annotated[Number | None, 'how much of the budget to use: 0.1, "1/3"; or rho'] = None
    rho: Annotated[Number | None, 'the same, of a budget in ρ: "1/1000"; instead of epsilon'] = None
    where: Annotated[str | None, "only rows where this is true"] = None
    of: Annotated[
        str | tuple[str, ...] | None,
        "of what: a column, or a formula; a list of two for a covariance or a correlation, "
        "and for a regression what is predicted, then what it is predicted by",
    ] = None
    bounds: Annotated[
        Pair | tuple[Pair | None, ...] | None,
        "the least and the largest value, by default the owner's; of several, a list of these",
    ] = None
    by: Annotated[str | tuple[str, ...] | None, "one answer for each key of these"] = None
    keys: Annotated[tuple[Any, ...] | Mapping[str, tuple[Scalar, ...]] | None, "by default the owner's"] = (
        None
    )
    discover: Annotated[Discovering | None, "keys that nobody listed, found by a query: instead of keys"] = (
        None
    )
    fraction: Annotated[Number | None, "of a quantile: 0.9 has nine tenths of the rows below it"] = None
    interval: Annotated[Number | None, "of a quantile: also where it is, with this confidence"] = None
    bins: Annotated[
        int | tuple[Number, ...] | None, "of a histogram: how many, or the edges between them"
    ] = None
    candidates: Annotated[
        tuple[Scalar, ...] | None, "of a mode or a top: what it may be; by default the owner's keys"
    ] = None
    first: Annotated[int | None, "of a top: how many"] = None
    size: Annotated[int | None, "for quotes: how many rows to assume where the error depends on it"] = None
    request_id: Annotated[str | None, "sent again with the same, a question is charged once"] = None


class Takes(NamedTuple):
    """What a kind of question is made of: the fields that it uses, and the query that it is."""

    fields: tuple[str, ...]
    make: Callable[..., Inquiry[Answer | Answers]]
    required: tuple[str, ...] = ("of",)
    columns: range | None = None  # of how many expressions, where that is a list


def _of_two(query: type[OfTwo]) -> Callable[..., OfTwo]:
    return lambda of, bounds=None: query(of[0], of[1], bounds)


def _regression(of: tuple[Cell, ...], bounds: tuple[Any, ...] | None = None) -> Regression:
    """The first by the others; bounds are in the same order."""
    given = {spell(cell.tree): each for cell, each in zip(of, bounds or (), strict=bounds is not None)}
    return Regression(of[0], of[1:], {name: each for name, each in given.items() if each is not None} or None)


def _top(first: int, **given: Any) -> Top:
    return Top(first, **given)


_BOUNDED = ("of", "bounds")
_TWO, _SEVERAL = range(2, 3), range(2, MOST_COLUMNS + 1)
KINDS: dict[str, Takes] = {
    "count": Takes((), Count, ()),
    "distinct_count": Takes(("of",), DistinctCount),
    "proportion": Takes(("of",), Proportion),
    "sum": Takes(_BOUNDED, Sum),
    "average": Takes(_BOUNDED, Average),
    "variance": Takes(_BOUNDED, Variance),
    "standard_deviation": Takes(_BOUNDED, StandardDeviation),
    "median": Takes((*_BOUNDED, "interval"), Median),
    "quantile": Takes((*_BOUNDED, "fraction", "interval"), Quantile, ("of", "fraction")),
    "minimum": Takes(_BOUNDED, Minimum),
    "maximum": Takes(_BOUNDED, Maximum),
    "mode": Takes(("of", "candidates"), Mode),
    "top": Takes(("of", "candidates", "first"), _top, ("of", "first")),
    "histogram": Takes((*_BOUNDED, "bins"), Histogram),
    "cdf": Takes((*_BOUNDED, "bins"), Cdf),
    "covariance": Takes(_BOUNDED, _of_two(Covariance), columns=_TWO),
    "correlation": Takes(_BOUNDED, _of_two(Correlation), columns=_TWO),
    "regression": Takes(_BOUNDED, _regression, columns=_SEVERAL),
}
# Fields that only some kinds use.
_OWN = ("of", "bounds", "fraction", "interval", "bins", "candidates", "first")


class Mistake(ProgramError):
    """A mistake in one field of a question, which says the field."""

    def __init__(self, field: str, error: ProgramError) -> None:
        self.field, self.error = field, error
        super().__init__(str(error))


class About:
    """A context in which a ProgramError, or one of a class, is a mistake in a field."""

    def __init__(self, field: str, of: type[ProgramError] = ProgramError) -> None:
        self._field, self._of = field, of

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if isinstance(error, self._of) and not isinstance(error, Mistake):
            raise Mistake(self._field, error) from None


# ── from a body ──────────────────────────────────────────────────────────────────────


def question_of(body: Mapping[str, Any]) -> Question:
    """The question that a body is; Mistake says in which field it is none."""
    known = [field.name for field in fields(Question)]
    for name in body:
        if name not in known:
            wrong = BadWire(f"unknown key {name[:40]!r}{suggest(name, known)}; there are {', '.join(known)}")
            raise Mistake(name[:40], wrong)
    for name in ("table", "kind"):
        if body.get(name) is None:
            raise Mistake(name, BadWire(f"{name!r} is missing"))
    if body.get("epsilon") is None and body.get("rho") is None:
        raise Mistake("epsilon", BadWire("'epsilon' is missing, or 'rho' instead"))
    if body.get("epsilon") is not None and body.get("rho") is not None:
        raise Mistake("rho", BadWire("say 'epsilon' or 'rho', not both: a question is asked at one"))
    read: dict[str, Any] = {}
    for name, given in body.items():
        if given is not None:
            with About(name):
                read[name] = _READ[name](given, name)
    question = Question(**read)
    _check_uses(question)
    return question


def _check_uses(question: Question) -> None:
    """Mistake if a field is missing, or is there and not used: it may have meant another question."""
    takes = KINDS[question.kind]
    for name in takes.required:
        if getattr(question, name) is None:
            raise Mistake(
                name, BadQuery(f"{_words(question.kind)} of what? Say {name!r}, such as {_SUCH[name]}")
            )
    for name in _OWN:
        if getattr(question, name) is not None and name not in takes.fields:
            raise Mistake(name, BadQuery(f"{_words(question.kind)} has no {name}: leave it out"))
    if "of" in takes.required:
        _check_columns(question, takes.columns)
    if question.keys is not None and question.by is None:
        raise Mistake("keys", BadPartition('keys of what? Say by what, too: "by": "city"'))
    if question.discover is not None and question.by is None:
        raise Mistake("discover", BadPartition('keys of what? Say by what, too: "by": "city"'))
    if question.discover is not None and question.keys is not None:
        raise Mistake("discover", BadPartition("keys are listed, or found: say 'keys' or 'discover'"))


def _check_columns(question: Question, columns: range | None) -> None:
    """Mistake unless it is of as many expressions, and bounds, as its kind has."""
    what, of, bounds = _words(question.kind), question.of, question.bounds
    several = bounds is not None and not _is_pair(bounds)
    if columns is None:
        if not isinstance(of, str):
            raise Mistake("of", BadQuery(f"{what} is of one: a text, such as {_SUCH['of']}"))
        if several:
            raise Mistake("bounds", BadWire("'bounds' are two numbers: [least, largest]"))
        return
    if not isinstance(of, tuple) or len(of) not in columns:
        most = "two" if columns is _TWO else f"two to {columns[-1]}"
        raise Mistake("of", BadQuery(f'{what} is of {most}, in a list, such as ["income", "age"]'))
    if bounds is not None and not (several and len(bounds) == len(of)):
        raise Mistake("bounds", BadWire("'bounds' are a list of [least, largest], one for each of 'of'"))


def _is_pair(bounds: tuple[Any, ...]) -> bool:
    return not any(each is None or isinstance(each, tuple) for each in bounds)


def _words(kind: str) -> str:
    return f"a {kind.replace('_', ' ')}" if kind[0] not in "aeiou" else f"an {kind}"


_SUCH = {"of": '"age"', "fraction": "0.9", "first": "3"}


def _text(given: Any, name: str, most: int = TEXT_CHARACTERS) -> str:
    if type(given) is not str or not given.strip():
        raise BadWire(f"{name!r} is a text")
    if not is_text(given):
        raise BadWire(f"{name!r} is Unicode text: this one has a lone surrogate")
    if len(given) > most:
        raise TooLarge(f"{name!r} has at most {most:,} characters")
    return given


def _kind(given: Any, name: str) -> str:
    if type(given) is not str or given not in KINDS:
        raise BadWire(
            f"no kind {str(given)[:40]!r}{suggest(str(given), KINDS)}; there are {', '.join(KINDS)}"
        )
    found: str = given
    return found


def _bounds(given: Any, name: str) -> Pair | tuple[Pair | None, ...]:
    if type(given) is list and 0 < len(given) <= MOST_COLUMNS and all(type(one) in _BOUNDS for one in given):
        return tuple(None if one is None else _pair(one, name) for one in given)
    return _pair(given, name)


_BOUNDS = (list, type(None))


def _pair(given: Any, name: str) -> Pair:
    if type(given) is not list or len(given) != 2:
        raise BadWire("'bounds' are two numbers: [least, largest]")
    return number_of(given[0], name), number_of(given[1], name)


def _texts(given: Any, name: str) -> str | tuple[str, ...]:
    if type(given) is list:
        return tuple(_text(one, name) for one in given)
    return _text(given, name)


def _candidates(given: Any, name: str) -> tuple[Value, ...]:
    return tuple(map(_scalar, _list(given, name)))


def _first(given: Any, name: str) -> int:
    if type(given) is not int or not 1 <= given <= 10**9:
        raise BadWire("'first' is how many are wanted, 1 or more")
    return given


def _scalar(given: Any) -> Value:
    found: Value = wire.from_json(given, Value)
    return found


def _keys(given: Any, name: str) -> Any:
    if type(given) is dict:
        return {column: tuple(map(_scalar, _list(keys, name))) for column, keys in given.items()}
    return tuple(
        tuple(map(_scalar, key)) if type(key) is list else _scalar(key) for key in _list(given, name)
    )


def _list(given: Any, name: str) -> list[Any]:
    if type(given) is not list or not given:
        raise BadWire(f"{name!r} is a list of values, such as [0, 1]")
    return given


def _bins(given: Any, name: str) -> int | tuple[Number, ...]:
    if type(given) is list:
        if len(given) > MOST_BINS:
            raise TooLarge(f"at most {MOST_BINS:,} bins")
        return tuple(number_of(edge, name) for edge in given)
    if type(given) is not int or given < 1:
        raise BadWire("'bins' is a number of bins, or the list of the edges between them")
    if given > MOST_BINS:
        raise TooLarge(f"at most {MOST_BINS:,} bins")
    return given


def _size(given: Any, name: str) -> int:
    if type(given) is not int or not 1 <= given <= 10**18:
        raise BadWire("'size' is an assumed number of rows, 1 or more")
    return given


_READ: dict[str, Callable[[Any, str], Any]] = {
    "table": lambda given, name: _text(given, name, 500),
    "kind": _kind,
    "epsilon": number_of,
    "rho": number_of,
    "where": _text,
    "of": _texts,
    "bounds": _bounds,
    "by": _texts,
    "keys": _keys,
    "discover": discovering_of,
    "fraction": number_of,
    "interval": number_of,
    "bins": _bins,
    "candidates": _candidates,
    "first": _first,
    "size": _size,
    "request_id": lambda given, name: _text(given, name, REQUEST_ID_CHARACTERS),
}
assert _READ.keys() == {field.name for field in fields(Question)}
assert KINDS.keys() == set(get_args(Kind))


# ── to a query ───────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Asked:
    """A question, as it is asked of a client's table."""

    table: Table
    at: Amount
    query: Inquiry[Answer | Answers]
    by: Cells | None
    keys: Any
    parts: int | None

    def ask(self) -> Answer | Answers:
        """Ask it, in whatever system the table is."""
        if self.by is None:
            return asking.ask(self.table.facts, self.at, self.query)
        if isinstance(self.keys, Discover):
            return ask_found(self.table.facts, self.at, self.query, self.by, self.keys)
        return asking.ask_parts(self.table.facts, self.at, self.query, self.by, self.keys)


def asked_of(question: Question, table: Table) -> Asked:
    """The question, asked of a table; Mistake says in which field it cannot be."""
    if question.where is not None:
        with About("where"):
            table = table.where(formula(question.where, "the filter"))
    at = _amount(question)
    subject = table.facts.subject
    cells: list[Cell] = []
    if question.of is not None:
        with About("of"):
            texts = (question.of,) if isinstance(question.of, str) else question.of
            cells = [subject.cell(formula(text, "what is asked of"), question.kind) for text in texts]
    given: dict[str, Any] = {}
    for name in KINDS[question.kind].fields:
        value = getattr(question, name)
        if value is not None:
            with About(name):
                given[name] = _AS_GIVEN[name](value, cells)
    query = KINDS[question.kind].make(**given)
    by: Cells | None = None
    keys: Any = None
    parts: int | None = None
    most = 1
    if question.by is not None:
        texts = (question.by,) if isinstance(question.by, str) else question.by
        with About("by"):
            each = [formula(text, "by") for text in texts]
            by = cells_of_key(subject, lambda row: [f(row) for f in each], "partition")
        with About("discover" if question.discover else "keys"):
            if question.discover is not None:
                keys = _found(question, query)
                most = keys.at_most
            else:
                keys = None if question.keys is None else _typed(question.keys, by)
                parts = most = len(keyed(subject, by, keys).labels)
            if question.kind == "distinct_count" and most > MOST_ONE_BY_ONE:
                raise TooLarge(
                    f"each part is asked by itself here: at most {MOST_ONE_BY_ONE} keys"
                    + (f', "at_most": {MOST_ONE_BY_ONE}' if question.discover else "")
                )
    with About("of" if by is None else "discover" if question.discover else "keys"):
        if len(cells) > 1 and 2 ** len(cells) * most > MOST_PRODUCTS:
            raise TooLarge("too many products of columns in one question: take fewer columns, or fewer keys")
    return Asked(table, at, query, by, keys, parts)


def _found(question: Question, query: Inquiry[Answer | Answers]) -> Discover:
    """How the keys of a question are found; by what is counted, or else by a query before it."""
    assert question.discover is not None
    how = question.discover.how
    if how.epsilon is None and not isinstance(query, Count):
        raise BadPartition(
            "to find the keys is a query of its own, before this one: say what it is asked at, "
            '"discover": {"epsilon": "0.1", …}, or "rho"'
        )
    return how


def amount_field(question: Question) -> str:
    """Which field says what it is asked at."""
    return "epsilon" if question.rho is None else "rho"


def _amount(question: Question) -> Amount:
    """What a question is asked at: an ε, or a ρ."""
    with About(amount_field(question)):
        if question.rho is not None:
            return Rho(exact.rho(exactly(question.rho, BadEpsilon)))
        assert question.epsilon is not None  # one of the two is there: question_of
        return exact.epsilon(exactly(question.epsilon, BadEpsilon))


def _edge(number: Number) -> int | float:
    found = exactly(number)
    if isinstance(found, Fraction):
        return int(found) if found.denominator == 1 else float(found)
    edge: int | float = found
    return edge


def _as_bounds(given: Any, _: list[Cell]) -> tuple[Any, ...]:
    if _is_pair(given):
        return tuple(map(exactly, given))
    return tuple(None if each is None else tuple(map(exactly, each)) for each in given)


_AS_GIVEN: dict[str, Callable[[Any, list[Cell]], Any]] = {
    "of": lambda given, cells: cells[0] if isinstance(given, str) else tuple(cells),
    "bounds": _as_bounds,
    "fraction": lambda given, _: exactly(given),
    "interval": lambda given, _: exactly(given),
    "bins": lambda given, _: given if isinstance(given, int) else list(map(_edge, given)),
    "candidates": lambda given, cells: [_timed(each, cells[0].type) for each in given],
    "first": lambda given, _: given,
}


def _typed(keys: Any, by: Cells) -> Any:
    """The keys, with days and times that were written as texts."""
    names = list(by)
    types = [cell.type for cell in by.values()]
    if isinstance(keys, Mapping):
        return {
            name: [_timed(key, by[name].type) if name in by else key for key in some]
            for name, some in keys.items()
        }
    if len(names) == 1:
        return [_timed(key, types[0]) for key in keys]
    return [
        tuple(map(_timed, key, types)) if isinstance(key, tuple) and len(key) == len(types) else key
        for key in keys
    ]


def _timed(key: Any, type_: Type) -> Any:
    if isinstance(key, str) and type_ in (Type.DATE, Type.TIMESTAMP):
        return time_of(key, exactly=type_ is Type.TIMESTAMP)
    return key
