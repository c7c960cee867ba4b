"""fpinq query: one question to a server, from the shell."""

import os
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from fpinq.cli import questions
from fpinq.cli.constants import constant
from fpinq.cli.options import number, share
from fpinq.cli.output import add_forms, print_facts
from fpinq.cli.questions import QUESTIONS
from fpinq.model.epsilon import decimal_down
from fpinq.model.errors import BadExpression, ProgramError
from fpinq.model.expressions import Type
from fpinq.model.notions import stated

URL = "http://127.0.0.1:8000"
# What is asked of a table's account, and costs nothing.
_FREE = {"budget": "what is left", "price": "what --epsilon would cost"}

_EXAMPLES = """
examples:
  fpinq query people count --where "x.age > 17"
  fpinq query people average x.age --bounds 0 110 --epsilon 0.5 --by x.gender --keys 0,1
  fpinq query people quantile x.age --fraction 0.25 0.5 0.75
  fpinq query people histogram x.age --bins 10 --csv
  fpinq query people correlation x.age x.hours --bounds 0 110 --bounds 0 100
  fpinq query people average x.age --epsilon 0.5 --dry-run
"""


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `fpinq query`."""
    add_server(parser)
    asked = {name: question.help for name, question in QUESTIONS.items()} | _FREE
    parser.formatter_class = RawDescriptionHelpFormatter
    parser.epilog = (
        "questions:\n" + "\n".join(f"  {name:<20}{text}" for name, text in asked.items()) + "\n" + _EXAMPLES
    )
    parser.add_argument("dataset", help="its name; of several tables, dataset.table")
    parser.add_argument("question", choices=asked, metavar="question", help="one of those below")
    parser.add_argument("expression", nargs="*", help='of what, such as "x.age"')
    parser.add_argument(
        "--epsilon",
        default="0.1",
        help="how much of the budget to use, such as 1/3, or 'rho 1/1000'; by default %(default)s",
    )
    parser.add_argument(
        "--bounds",
        nargs=2,
        action="append",
        metavar=("LOW", "HIGH"),
        help="the least and the largest value; again for each expression",
    )
    parser.add_argument("--bins", type=number, help="into how many bins")
    parser.add_argument(
        "--fraction",
        type=share,
        nargs="+",
        metavar="F",
        help="how far up, such as 0.25; several are one query",
    )
    parser.add_argument(
        "--interval", type=share, metavar="0.95", help="with an interval of this confidence, from the same ε"
    )
    parser.add_argument(
        "--candidates", type=_listed, metavar="A,B,…", help="the public values to choose from"
    )
    parser.add_argument("--first", type=number, metavar="K", help="how many")
    parser.add_argument("--where", action="append", default=[], help='such as "x.age > 17"')
    parser.add_argument(
        "--by", action="append", help='one answer for each key, such as "x.gender"; again for keys of several'
    )
    parser.add_argument("--keys", action="append", help="the keys, such as 0,1; again for each --by")
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="what it would cost and how far off it would be; nothing is asked",
    )
    add_forms(parser)


def add_server(parser: ArgumentParser) -> None:
    """Which server, and who asks."""
    parser.add_argument("--url", help=f"the server; by default FPINQ_URL's, or {URL}")
    parser.add_argument("--token", help="by default FPINQ_TOKEN's")


def connected(arguments: Namespace) -> Any:
    """The catalog of the server that was named."""
    import fpinq as fp

    return fp.connect(arguments.url or os.environ.get("FPINQ_URL") or URL, arguments.token)


def run(arguments: Namespace) -> int:
    """Ask, and print the answer."""
    import fpinq as fp

    question = arguments.question
    _check(arguments)
    arguments.epsilon = stated(arguments.epsilon)
    table = connected(arguments).table(arguments.dataset)
    for predicate in arguments.where:
        table = table.where(expression(predicate))
    if question == "budget":
        _print_amounts(arguments, "left", table.remaining)
        return 0
    if question == "price":
        _print_amounts(arguments, "price", table.price(arguments.epsilon))
        return 0
    of = [expression(text) for text in arguments.expression]
    if arguments.candidates is not None:
        arguments.candidates = _typed(arguments.candidates, table, of[0])
    asked = QUESTIONS[question].made(fp, of, arguments)
    if arguments.dry_run:
        _print_plan(arguments, table, asked)
        return 0
    parts = {} if arguments.by is None else _parts(arguments, table)
    _print(arguments, table.query(arguments.epsilon, asked, **parts))
    return 0


def _check(arguments: Namespace) -> None:
    """ProgramError if something was said that the question does not use: it may have meant another."""
    question = arguments.question
    if question in QUESTIONS:
        questions.check(question, arguments)
    elif arguments.expression:
        raise ProgramError(
            f"{question} is of rows, not of {arguments.expression[0]!r}: leave it out; "
            'which rows is said by --where "x.age > 17"'
        )
    if arguments.keys is not None and arguments.by is None:
        raise ProgramError('--keys of what? Say --by "x.gender" too')
    if arguments.keys is not None and len(arguments.keys) != len(set(arguments.by)):
        raise ProgramError(
            "each --by has --keys of its own, or none has: then those are taken that are known"
        )


def _parts(arguments: Namespace, table: Any) -> dict[str, Any]:
    """What the answers are by, and for which keys."""
    by = {text: expression(text) for text in arguments.by}
    given = zip(by.items(), arguments.keys or (), strict=arguments.keys is not None)
    keys = {text: _typed(_listed(listed), table, f) for (text, f), listed in given}
    if len(by) > 1:
        return {"by": by, "keys": keys or None}
    return {"by": next(iter(by.values())), "keys": next(iter(keys.values()), None)}


def expression(text: str) -> Callable[[Any], Any]:
    """An expression over the row x. It is the analyst's own and runs in the analyst's own process."""
    import fpinq as fp

    try:
        code = compile(f"lambda x: {text}", "<expression>", "eval")
        made: Callable[[Any], Any] = eval(code, {"__builtins__": {"abs": abs}, "fp": fp})
    except SyntaxError:
        raise BadExpression(f"{text!r} is not an expression over x, such as x.age > 17") from None
    return made


def _listed(text: str) -> list[str]:
    return text.split(",")


def _typed(texts: list[str], table: Any, of: Callable[[Any], Any]) -> list[Any]:
    """Constants of the type that an expression has. Asking for the type is free."""
    type_ = Type(table.select(lambda x: {"key": of(x)}).schema["key"])
    return [constant(text, type_) for text in texts]


def _print_amounts(arguments: Namespace, what: str, amounts: Any) -> None:
    """What is left, rounded down, or what something costs, exactly: of each root, where there are several."""
    if arguments.json or arguments.csv:
        each = amounts if isinstance(amounts, Mapping) else {what: amounts}
        print_facts(arguments, {root: Fraction(amount) for root, amount in each.items()})
    elif isinstance(amounts, Mapping):
        print("\n".join(f"{root}\t{_amount(what, amount)}" for root, amount in amounts.items()))
    else:
        print(_amount(what, amounts))


def _amount(what: str, amount: Fraction) -> str:
    return decimal_down(amount) if what == "left" else str(Fraction(amount))


def _print_plan(arguments: Namespace, table: Any, asked: Any) -> None:
    """What it would cost, what that would leave, how far off it would be."""
    price, left = table.price(arguments.epsilon), table.remaining
    facts: dict[str, object] = {}
    for root in price if isinstance(price, Mapping) else [None]:
        of = "" if root is None else f" of {root}"
        cost, has = (
            (Fraction(price), Fraction(left))
            if root is None
            else (Fraction(price[root]), Fraction(left[root]))
        )
        facts |= {f"price{of}": cost, f"left{of}": has, f"then left{of}": has - cost}
        if cost > has:
            facts[f"then left{of}"] = "⊥: refused, and nothing charged"
    facts["scaling factor"] = table.scaling_factor
    facts["expected error"] = str(table.expected_error(asked, arguments.epsilon))
    print_facts(arguments, facts)


def _print(arguments: Namespace, answer: Any) -> None:
    if arguments.json:
        print(answer.to_json())
    elif arguments.csv:
        print(answer.to_csv(), end="")
    elif isinstance(answer, Mapping):
        for key, one in answer.items():
            shown = "\t".join(map(str, key)) if isinstance(key, tuple) else key
            print(f"{shown}\t{one}")
    else:
        print(answer)
