"""A question: what is asked of which table, as plain data; and as a query of the client's."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Literal, NamedTuple, get_args

from fpinq.client import asking
from fpinq.client.answers import Answer, Answers
from fpinq.client.choices import Median, Quantile
from fpinq.client.counting import Proportion
from fpinq.client.extremes import Maximum, Minimum
from fpinq.client.formulas import formula, time_of
from fpinq.client.histograms import Cdf, Histogram
from fpinq.client.keys import Cells, cells_of_key, keyed
from fpinq.client.queries import Average, Count, DistinctCount, Inquiry, StandardDeviation, Sum, Variance
from fpinq.client.table import Table
from fpinq.ledger import wire
from fpinq.ledger.errors import BadWire
from fpinq.model import epsilon as exact
from fpinq.model.epsilon import Epsilon
from fpinq.model.errors import BadEpsilon, BadPartition, BadQuery, ProgramError, suggest
from fpinq.model.expressions import Type, Value, is_text
from fpinq.runtime.refusals import TooLarge

Number = int | float | str
Scalar = bool | int | float | str | None
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
    "histogram",
    "cdf",
]

TEXT_CHARACTERS = 10_000
REQUEST_ID_CHARACTERS = 100
MOST_BINS = 10_000
# Questions of which each part is asked by itself have at most so many parts.
MOST_ONE_BY_ONE = 100
NUMBER_CHARACTERS = 100
LONGEST_EXPONENT = 400


@dataclass(frozen=True)
class Question:
    """What is asked of which table. Texts are formulas: `age > 17`, `income / 12`."""

    table: Annotated[str, "a data set; of several tables, dataset.table"]
    kind: Kind
    epsilon: Annotated[Number, 'how much of the budget to use: 0.1, "1/3"']
    where: Annotated[str | None, "only rows where this is true"] = None
    of: Annotated[str | None, "of what: a column, or a formula"] = None
    bounds: Annotated[
        tuple[Number, Number] | None, "the least and the largest value; by default the owner's"
    ] = None
    by: Annotated[str | tuple[str, ...] | None, "one answer for each key of these"] = None
    keys: Annotated[tuple[Any, ...] | Mapping[str, tuple[Scalar, ...]] | None, "by default the owner's"] = (
        None
    )
    fraction: Annotated[Number | None, "of a quantile: 0.9 has nine tenths of the rows below it"] = None
    interval: Annotated[Number | None, "of a quantile: also where it is, with this confidence"] = None
    bins: Annotated[
        int | tuple[Number, ...] | None, "of a histogram: how many, or the edges between them"
    ] = None
    size: Annotated[int | None, "for quotes: how many rows to assume where the error depends on it"] = None
    request_id: Annotated[str | None, "sent again with the same, a question is charged once"] = None


class Takes(NamedTuple):
    """What a kind of question is made of: the fields that it uses, and the query that it is."""

    fields: tuple[str, ...]
    make: Callable[..., Inquiry[Answer | Answers]]
    required: tuple[str, ...] = ("of",)


_BOUNDED = ("of", "bounds")
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
    "histogram": Takes((*_BOUNDED, "bins"), Histogram),
    "cdf": Takes((*_BOUNDED, "bins"), Cdf),
}
# Fields that only some kinds use.
_OWN = ("of", "bounds", "fraction", "interval", "bins")


class Mistake(ProgramError):
    """A mistake in one field of a question, which says the field."""

    def __init__(self, field: str, error: ProgramError) -> None:
        self.field, self.error = field, error
        super().__init__(str(error))


class About:
    """A context in which a ProgramError is a mistake in a field."""

    def __init__(self, field: str) -> None:
        self._field = field

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if isinstance(error, ProgramError) and not isinstance(error, Mistake):
            raise Mistake(self._field, error) from None


# ── from a body ──────────────────────────────────────────────────────────────────────


def question_of(body: Mapping[str, Any]) -> Question:
    """The question that a body is; Mistake says in which field it is none."""
    known = [field.name for field in fields(Question)]
    for name in body:
        if name not in known:
            wrong = BadWire(f"unknown key {name[:40]!r}{suggest(name, known)}; there are {', '.join(known)}")
            raise Mistake(name[:40], wrong)
    for name in ("table", "kind", "epsilon"):
        if body.get(name) is None:
            raise Mistake(name, BadWire(f"{name!r} is missing"))
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
    if question.keys is not None and question.by is None:
        raise Mistake("keys", BadPartition('keys of what? Say by what, too: "by": "city"'))


def _words(kind: str) -> str:
    return f"a {kind.replace('_', ' ')}" if kind[0] not in "aeiou" else f"an {kind}"


_SUCH = {"of": '"age"', "fraction": "0.9"}


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


def _number(given: Any, name: str) -> Number:
    if type(given) in (int, float) or (type(given) is str and 0 < len(given) <= NUMBER_CHARACTERS):
        number: Number = given
        return number
    raise BadWire(f'{name!r} is a number, or a text such as "1/3"')


def _bounds(given: Any, name: str) -> tuple[Number, Number]:
    if type(given) is not list or len(given) != 2:
        raise BadWire("'bounds' are two numbers: [least, largest]")
    return _number(given[0], name), _number(given[1], name)


def _by(given: Any, name: str) -> str | tuple[str, ...]:
    if type(given) is list:
        return tuple(_text(one, name) for one in given)
    return _text(given, name)


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
        return tuple(_number(edge, name) for edge in given)
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
    "epsilon": _number,
    "where": _text,
    "of": _text,
    "bounds": _bounds,
    "by": _by,
    "keys": _keys,
    "fraction": _number,
    "interval": _number,
    "bins": _bins,
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
    epsilon: Epsilon
    query: Inquiry[Answer | Answers]
    by: Cells | None
    keys: Any
    parts: int | None

    def ask(self) -> Answer | Answers:
        """Ask it, in whatever system the table is."""
        if self.by is None:
            return asking.ask(self.table.facts, self.epsilon, self.query)
        return asking.ask_parts(self.table.facts, self.epsilon, self.query, self.by, self.keys)


def asked_of(question: Question, table: Table) -> Asked:
    """The question, asked of a table; Mistake says in which field it cannot be."""
    if question.where is not None:
        with About("where"):
            table = table.where(formula(question.where, "the filter"))
    with About("epsilon"):
        epsilon = exact.epsilon(_exactly(question.epsilon, BadEpsilon))
    subject = table.facts.subject
    given: dict[str, Any] = {}
    for name in KINDS[question.kind].fields:
        value = getattr(question, name)
        if value is not None:
            with About(name):
                given[name] = _AS_GIVEN[name](value)
    if question.of is not None:
        with About("of"):
            given["of"] = subject.cell(formula(question.of, "what is asked of"), question.kind)
    query = KINDS[question.kind].make(**given)
    by, keys, parts = None, None, None
    if question.by is not None:
        texts = (question.by,) if isinstance(question.by, str) else question.by
        with About("by"):
            each = [formula(text, "by") for text in texts]
            by = cells_of_key(subject, lambda row: [f(row) for f in each], "partition")
        with About("keys"):
            keys = None if question.keys is None else _typed(question.keys, by)
            parts = len(keyed(subject, by, keys).labels)
            if question.kind == "distinct_count" and parts > MOST_ONE_BY_ONE:
                raise TooLarge(f"each part is asked by itself here: at most {MOST_ONE_BY_ONE} keys")
    return Asked(table, epsilon, query, by, keys, parts)


def _exactly(number: Number, error: type[ProgramError] = BadQuery) -> Any:
    """A number of a body: a text may be 1/3, too."""
    if not isinstance(number, str):
        if isinstance(number, float) and not math.isfinite(number):
            raise error("numbers are finite")
        return number
    try:
        found = Fraction(number) if "/" in number else _of_decimal(Decimal(number))
    except (ValueError, ArithmeticError):
        found = None
    if found is None:
        raise error(f'{number[:40]!r} is not a number, such as 0.1 or "1/3"')
    return found


def _of_decimal(number: Decimal) -> Fraction | None:
    """A decimal exactly, if it is not far larger or smaller than doubles are: 1e999999999 is a short text."""
    return exact.rational(number) if abs(number.adjusted()) <= LONGEST_EXPONENT else None


def _edge(number: Number) -> int | float:
    found = _exactly(number)
    if isinstance(found, Fraction):
        return int(found) if found.denominator == 1 else float(found)
    edge: int | float = found
    return edge


_AS_GIVEN: dict[str, Callable[[Any], Any]] = {
    "of": lambda given: given,
    "bounds": lambda given: tuple(map(_exactly, given)),
    "fraction": _exactly,
    "interval": _exactly,
    "bins": lambda given: given if isinstance(given, int) else list(map(_edge, given)),
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
