"""fpinq query: one question to a server, from the shell."""

import os
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from fpinq.cli import finding, questions
from fpinq.cli.constants import constant
from fpinq.cli.options import number, share
from fpinq.cli.output import add_forms, is_rich, print_answers, print_facts, tell
from fpinq.cli.questions import QUESTIONS
from fpinq.client.spelling import show_delta
from fpinq.model.epsilon import decimal_down
from fpinq.model.errors import BadExpression, ProgramError
from fpinq.model.expressions import Type
from fpinq.model.notions import stated
from fpinq.model.visible import visible

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
  fpinq query people top x.city --first 3
  fpinq query people count --rho 1/1000
  fpinq query people count --by x.city --delta 1e-10
  fpinq query people average x.age --by x.city --domain strings:32 --keys-epsilon 0.1
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
    add_amount(parser, "how much of the budget to use")
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
    parser.add_argument("--delta", help="find the keys of --by that nobody listed, at this δ: 1e-10")
    parser.add_argument(
        "--domain",
        action="append",
        metavar="strings:32",
        help="which keys there can be, found without a δ: strings:BYTES, integers:LOW:HIGH, "
        "dates:FIRST:LAST, booleans; again for each --by",
    )
    parser.add_argument(
        "--keys-epsilon",
        metavar="0.1",
        help="to find the keys at, where something else than a count is asked",
    )
    parser.add_argument("--keys-rho", metavar="1/1000", help="the same, of a budget in ρ")
    parser.add_argument("--per-person", type=number, metavar="K", help="in how many keys a person counts")
    parser.add_argument("--keys-at-most", type=number, metavar="N", help="how many keys are shown")
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="what it would cost and how far off it would be; nothing is asked",
    )
    add_forms(parser)


def add_amount(parser: ArgumentParser, text: str) -> None:
    """--epsilon, or --rho: what is asked at."""
    at = parser.add_mutually_exclusive_group()
    at.add_argument("--epsilon", default="0.1", help=f"{text}, such as 1/3; by default %(default)s")
    at.add_argument("--rho", help="the same, of a budget in ρ, such as 1/1000")


def amount(arguments: Namespace) -> Any:
    """What is asked at, as it was said."""
    return stated(arguments.epsilon if arguments.rho is None else f"rho {arguments.rho}")


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
    arguments.epsilon = amount(arguments)
    table = connected(arguments).table(arguments.dataset)
    for predicate in arguments.where:
        table = table.where(expression(predicate))
    if question == "budget":
        _print_left(arguments, table)
        return 0
    if question == "price":
        _print_amounts(arguments, "price", table.price(arguments.epsilon))
        return 0
    of = [expression(text) for text in arguments.expression]
    if arguments.candidates is not None:
        arguments.candidates = _typed(arguments.candidates, table, of[0])
    asked = QUESTIONS[question].made(fp, of, arguments)
    parts = {} if arguments.by is None else _parts(arguments, table)
    if arguments.dry_run:
        _print_plan(arguments, table, asked, parts)
        return 0
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
    finding.check(arguments)
    if arguments.keys is not None and len(arguments.keys) != len(set(arguments.by)):
        raise ProgramError(
            "each --by has --keys of its own, or none has: then those are taken that are known"
        )


def _parts(arguments: Namespace, table: Any) -> dict[str, Any]:
    """What the answers are by, and for which keys."""
    by = {text: expression(text) for text in arguments.by}
    if finding.is_asked(arguments):
        return {"by": by if len(by) > 1 else next(iter(by.values())), "keys": finding.found(arguments)}
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
        tell("\n".join(f"{visible(root)}\t{_amount(what, amount)}" for root, amount in amounts.items()))
    else:
        tell(_amount(what, amounts))


def _amount(what: str, amount: Fraction) -> str:
    return decimal_down(amount) if what == "left" else str(Fraction(amount))


def _print_left(arguments: Namespace, table: Any) -> None:
    """What is left; and of a δ for keys, where there is one."""
    left, deltas = ([*each.items()] if isinstance(each, Mapping) else [("", each)]
                    for each in (table.remaining, table.remaining_delta))  # fmt: skip
    keys = [(root, Fraction(amount)) for root, amount in deltas if amount]
    if arguments.json or arguments.csv:
        exact = {root or "left": Fraction(amount) for root, amount in left}
        print_facts(arguments, {**exact, **{f"{root or 'left'} δ": amount for root, amount in keys}})
        return
    _print_amounts(arguments, "left", table.remaining)
    for root, amount in keys:
        tell(f"{visible(root)}\tδ {show_delta(amount)}" if root else f"δ {show_delta(amount)}")


def _print_plan(arguments: Namespace, table: Any, asked: Any, parts: Mapping[str, Any]) -> None:
    """What it would cost, what that would leave, how far off it would be."""
    expected = table.expected_error(asked, arguments.epsilon, **parts)
    found = hasattr(expected, "threshold")
    price, left = expected.price if found else table.price(arguments.epsilon), table.remaining
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
    if found:
        facts |= finding.facts(expected, table)
    facts["expected error"] = str(expected.then or f"± {expected.half_width()}" if found else expected)
    print_facts(arguments, facts)


def _print(arguments: Namespace, answer: Any) -> None:
    """As every command does; in a pipe, keys and answers with tabs between them."""
    if arguments.json or arguments.csv or is_rich() or not isinstance(answer, Mapping):
        print_answers(arguments, answer)
        return
    for key, one in answer.items():
        parts = key if isinstance(key, tuple) else (key,)
        tell(*(visible(str(part)) for part in parts), one, sep="\t")
