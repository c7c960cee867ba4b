"""fpinq query: one question to a server, from the shell."""

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from fpinq.cli.constants import constant, number
from fpinq.model.epsilon import decimal_down
from fpinq.model.errors import BadExpression, ProgramError
from fpinq.model.expressions import Type

_URL = "http://127.0.0.1:8000"
_OF_A_COLUMN = ("sum", "average", "variance", "median", "histogram", "cdf")


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `fpinq query`."""
    parser.add_argument("dataset", help="its name; of several tables, dataset.table")
    parser.add_argument("question", choices=("count", *_OF_A_COLUMN, "budget", "price"))
    parser.add_argument("expression", nargs="?", help='of what, such as "x.age"')
    parser.add_argument("--url", help=f"the server; by default FPINQ_URL's, or {_URL}")
    parser.add_argument("--token", help="by default FPINQ_TOKEN's")
    parser.add_argument(
        "--epsilon", default="0.1", help="how much of the budget to use, such as 1/3; by default %(default)s"
    )
    parser.add_argument("--bounds", nargs=2, metavar=("LOW", "HIGH"), help="the least and the largest value")
    parser.add_argument("--where", action="append", default=[], help='such as "x.age > 17"')
    parser.add_argument(
        "--by", action="append", help='one answer for each key, such as "x.gender"; again for keys of several'
    )
    parser.add_argument("--keys", action="append", help="the keys, such as 0,1; again for each --by")


def run(arguments: Namespace) -> int:
    """Ask, and print the answer."""
    import fpinq as fp

    _check(arguments)
    url = arguments.url or os.environ.get("FPINQ_URL") or _URL
    table = _table(fp.connect(url, arguments.token), arguments.dataset)
    for predicate in arguments.where:
        table = table.where(_lambda(predicate))
    match arguments.question:
        case "budget":
            _print(table.remaining, decimal_down)
            return 0
        case "price":
            _print(table.price(arguments.epsilon), lambda price: str(Fraction(price)))
            return 0
        case "count":
            asked: Any = fp.count()
        case question:
            of = _lambda(arguments.expression)
            asked = getattr(fp, question)(of, bounds=_bounds(arguments.bounds))
    if arguments.by is None:
        _print(table.query(arguments.epsilon, asked))
        return 0
    _print(table.query(arguments.epsilon, asked, **_parts(arguments, table)))
    return 0


def _parts(arguments: Namespace, table: Any) -> dict[str, Any]:
    """What the answers are by, and for which keys."""
    by = {expression: _lambda(expression) for expression in arguments.by}
    given = zip(by.items(), arguments.keys or (), strict=arguments.keys is not None)
    keys = {expression: _keys(listed, table, f) for (expression, f), listed in given}
    if len(by) > 1:
        return {"by": by, "keys": keys or None}
    return {"by": next(iter(by.values())), "keys": next(iter(keys.values()), None)}


def _check(arguments: Namespace) -> None:
    """ProgramError if something was said that the question does not use: it may have meant another."""
    question = arguments.question
    if question in _OF_A_COLUMN:
        if arguments.expression is None:
            raise ProgramError(f'{question} of what? Say fpinq query … {question} "x.age"')
    elif arguments.expression is not None:
        raise ProgramError(
            f"{question} is of rows, not of {arguments.expression!r}: leave it out; "
            'which rows is said by --where "x.age > 17"'
        )
    elif arguments.bounds is not None:
        raise ProgramError(f"{question} has no bounds: leave out --bounds")
    if arguments.keys is not None and arguments.by is None:
        raise ProgramError('--keys of what? Say --by "x.gender" too')
    if arguments.keys is not None and len(arguments.keys) != len(set(arguments.by)):
        raise ProgramError(
            "each --by has --keys of its own, or none has: then those are taken that are known"
        )


def _table(catalog: Mapping[str, Any], name: str) -> Any:
    data_set, dot, table = name.partition(".")
    found = catalog[data_set]
    if not isinstance(found, Mapping):
        if dot:
            raise ProgramError(f"{data_set} is one table: say {data_set}, not {name}")
        return found
    if table not in found:
        tables = " or ".join(f"{data_set}.{t}" for t in found)
        raise ProgramError(f"{data_set} has several tables: say {tables}")
    return found[table]


def _lambda(expression: str) -> Callable[[Any], Any]:
    """An expression over the row x. It is the analyst's own and runs in the analyst's own process."""
    import fpinq as fp

    try:
        code = compile(f"lambda x: {expression}", "<expression>", "eval")
        made: Callable[[Any], Any] = eval(code, {"__builtins__": {"abs": abs}, "fp": fp})
    except SyntaxError:
        raise BadExpression(f"{expression!r} is not an expression over x, such as x.age > 17") from None
    return made


def _bounds(given: list[str] | None) -> tuple[Any, Any] | None:
    return None if given is None else (number(given[0]), number(given[1]))


def _keys(given: str, table: Any, by: Callable[[Any], Any]) -> list[Any]:
    """The keys as values of the type that is partitioned by. Asking for the type is free."""
    type_ = Type(table.select(lambda x: {"key": by(x)}).schema["key"])
    return [constant(key, type_) for key in given.split(",")]


def _print(answer: Any, show: Callable[[Any], str] = str) -> None:
    if isinstance(answer, Mapping):
        for key, one in answer.items():
            shown = "\t".join(map(str, key)) if isinstance(key, tuple) else key
            print(f"{shown}\t{show(one)}")
    else:
        print(show(answer))
