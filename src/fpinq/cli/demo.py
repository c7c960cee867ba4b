"""fpinq demo: what the kernel charges, step by step; with --page, a made-up town served with its page."""

import sys
import webbrowser
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

from fpinq.cli.options import port
from fpinq.cli.output import add_forms, print_rows, tell
from fpinq.cli.serve import address, listen, needs_server, until_stopped
from fpinq.cli.town import made_up
from fpinq.model.accounts import remaining, scaling_factor
from fpinq.model.actions import Action, AskBudget, AskScale, Assign, Partition, Query
from fpinq.model.clamps import Clamp
from fpinq.model.epsilon import decimal_down
from fpinq.model.expressions import Apply, Column, Expression, Literal, Schema, Type
from fpinq.model.notation import show_action
from fpinq.model.queries import Count, Moments
from fpinq.model.semantics import Bottom, Configuration, Label, Measure, Told, initial, step
from fpinq.model.transformations import Concat, Partitioning, SelectMany, Where

PEOPLE = Schema.of({"age": Type.INT64, "gender": Type.INT64})


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `fpinq demo`."""
    parser.add_argument("--page", action="store_true", help="serve a made-up town, and open its page")
    parser.add_argument(
        "--port", type=port, default=0, help="with --page: where; by default any that is free"
    )
    parser.add_argument("--no-open", action="store_true", help="with --page: only say where it is")
    add_forms(parser)


def run(arguments: Namespace) -> int:
    """The paper's figure and its Listing 1, through the kernel's rules; or a town and its page."""
    return serve_town(arguments) if arguments.page else play(arguments)


def serve_town(arguments: Namespace) -> int:
    """A made-up town on this machine, with tokens for each role, until told to stop; nothing of it stays."""
    needs_server()
    from fpinq.server import Config, create_app

    with TemporaryDirectory(prefix="fpinq-demo-") as folder:
        config = Config(made_up(), Path(folder) / "tokens", str(Path(folder) / "ledger"))
        app = create_app(config)
        tokens = app.state.house.tokens
        listening = listen("127.0.0.1", arguments.port)
        town = (("alice", "analyst"), ("olga", "owner"), ("ann", "auditor"))
        where = [f"{address(listening)}/#token={tokens.create(name, role)}" for name, role in town]
        if arguments.json or arguments.csv:
            rows = [[*each, one] for each, one in zip(town, where, strict=True)]
            print_rows(arguments, ["name", "role", "address"], rows)
        else:
            tell("A made-up town, on this machine only. Each address signs in; Ctrl-C ends it.\n")
            for (name, role), one in zip(town, where, strict=True):
                tell(f"  {name + ', ' + role:<15}  {one}")
        sys.stdout.flush()
        if not arguments.no_open:
            webbrowser.open(where[0])
        until_stopped(app, listening)
    return 0


def play(arguments: Namespace) -> int:
    """The paper's figure and its Listing 1."""
    tour = [
        (
            "The paper's figure: each table and how many of its records one record of A can change",
            Played(initial({"A": (PEOPLE, Fraction(22))}), figure()),
        ),
        (
            "Listing 1 with a budget of 1: two parts cost what one costs; then the budget is gone",
            Played(initial({"people": (PEOPLE, Fraction(1))}), listing1()),
        ),
    ]
    if arguments.json or arguments.csv:
        rows = [[number, *row] for number, (_, played) in enumerate(tour, 1) for row in played.rows]
        print_rows(arguments, ["program", "action", "rule", "seen", "budget left"], rows)
        return 0
    for title, played in tour:
        tell(f"{title}\n")
        for action, rule, seen, left in played.rows:
            tell(f"  {action:<48} {rule:<9}  {seen:<3} budget left {left}")
        factors = ", ".join(f"{name} {factor}" for name, factor in played.factors.items())
        tell(f"\n  scaling factors: {factors}\n")
    tell("Next: fpinq demo --page  (a made-up town and its page), fpinq check  (the theorem)")
    return 0


def figure() -> list[Action]:
    """A…G with scaling factors 1, 2, 3, 10, 3, 3, 22."""
    record = (("age", Column("age")), ("gender", Column("gender")))

    def times(k: int) -> SelectMany:
        return SelectMany((record,) * k, k)

    by_gender = Partitioning(Column("gender"), (0, 1))
    return [
        Assign("B", times(2), ("A",)),
        Assign("C", times(3), ("A",)),
        Assign("D", times(5), ("B",)),
        Partition(("E", "F"), "C", by_gender),
        Assign("E4", times(4), ("E",)),
        Assign("G", Concat(), ("D", "E4")),
        Query("G", Fraction(1), (Count(),)),
        AskBudget(),
    ]


def listing1() -> list[Action]:
    """The average age of adults by gender, then of everybody, then one query too many."""
    age: Expression = Column("age")
    average = Moments(Clamp(age, 0, 110), 1)
    return [
        Assign("adults", Where(Apply("greater", (age, Literal.of(17)))), ("people",)),
        Partition(("women", "men"), "adults", Partitioning(Column("gender"), (0, 1))),
        Query("women", Fraction(1, 2), (average,)),
        Query("men", Fraction(1, 2), (average,)),
        Query("people", Fraction(1, 2), (average,)),
        Query("people", Fraction(1, 10), (Count(),)),
        AskScale("women"),
    ]


class Played:
    """A program, step by step: each action, its rule, what is seen of it and what is left."""

    def __init__(self, c: Configuration, actions: Sequence[Action]) -> None:
        self.rows: list[tuple[str, str, str, str]] = []
        for action in actions:
            transition = step(c, action)
            c = transition.configuration
            left = ", ".join(decimal_down(amount) for amount in remaining(c.accounts).values())
            self.rows.append((show_action(action), transition.rule, _seen(transition.label), left))
        tables = c.environment.items()
        self.factors = {name: scaling_factor(c.accounts, table.sensitivity) for name, table in tables}


def _seen(label: Label) -> str:
    match label:
        case Bottom():
            return "⊥"
        case Told(fact=int(factor)):
            return str(factor)
        case Told(fact=Mapping() as amounts):
            return ", ".join(decimal_down(amount) for amount in amounts.values())
        case Measure():
            return "v"
        case _:
            return "τ"
