"""fpinq query: one question to a server, from the shell."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from typing import Any

from fpinq.model.errors import BadExpression, ProgramError

_OF_A_COLUMN = ("sum", "average", "variance", "median", "histogram", "cdf")


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `fpinq query`."""
    parser.add_argument("dataset", help="its name; of several tables, dataset.table")
    parser.add_argument("question", choices=("count", *_OF_A_COLUMN, "budget", "price"))
    parser.add_argument("expression", nargs="?", help='of what, such as "x.age"')
    parser.add_argument("--url", default="http://127.0.0.1:8000", help="the server")
    parser.add_argument("--token", help="by default FPINQ_TOKEN")
    parser.add_argument("--epsilon", default="0.1", help="how much of the budget to use, such as 0.1 or 1/3")
    parser.add_argument("--bounds", nargs=2, metavar=("LOW", "HIGH"), help="the least and the largest value")
    parser.add_argument("--where", action="append", default=[], help='such as "x.age > 17"')
    parser.add_argument("--by", help='one answer for each key, such as "x.gender"')
    parser.add_argument("--keys", help="the keys, such as 0,1")


def run(arguments: Namespace) -> int:
    """Ask, and print the answer."""
    import fpinq as fp

    table = _table(fp.connect(arguments.url, arguments.token), arguments.dataset)
    for predicate in arguments.where:
        table = table.where(_lambda(predicate))
    match arguments.question:
        case "budget":
            print(table.remaining)
            return 0
        case "price":
            print(table.price(arguments.epsilon))
            return 0
        case "count":
            asked: Any = fp.count()
        case question:
            if arguments.expression is None:
                raise ProgramError(f'{question} of what? Say fpinq query … {question} "x.age"')
            of = _lambda(arguments.expression)
            asked = getattr(fp, question)(of, bounds=_bounds(arguments.bounds))
    if arguments.by is None:
        _print(table.query(arguments.epsilon, asked))
        return 0
    keys = None if arguments.keys is None else [_constant(key) for key in arguments.keys.split(",")]
    _print(table.query(arguments.epsilon, asked, by=_lambda(arguments.by), keys=keys))
    return 0


def _table(catalog: Mapping[str, Any], name: str) -> Any:
    data_set, _, table = name.partition(".")
    found = catalog[data_set]
    if not isinstance(found, Mapping):
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
    return None if given is None else (_constant(given[0]), _constant(given[1]))


def _constant(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _print(answer: Any) -> None:
    if isinstance(answer, Mapping):
        for key, one in answer.items():
            print(f"{key}\t{one}")
    else:
        print(answer)
