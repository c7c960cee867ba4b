"""fpinq explain: what is public about a server's tables, and what a plan of them costs. Free of charge."""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from fractions import Fraction

from fpinq.cli.output import add_forms, print_facts, print_rows, tell
from fpinq.cli.query import add_server, connected, expression


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `fpinq explain`."""
    add_server(parser)
    parser.add_argument(
        "dataset", nargs="?", help="its name; of several tables, dataset.table; all without one"
    )
    parser.add_argument("--where", action="append", default=[], help='such as "x.age > 17"')
    parser.add_argument("--epsilon", default="1", help="the ε whose price is shown; by default %(default)s")
    add_forms(parser)


def run(arguments: Namespace) -> int:
    """Print the derivation with its scaling factors, the price and what is left."""
    catalog = connected(arguments)
    if arguments.dataset is None:
        print_rows(arguments, ["data set"], [[name] for name in catalog], "this server has no data sets yet")
        return 0
    table = catalog.table(arguments.dataset)
    for predicate in arguments.where:
        table = table.where(expression(predicate))
    if arguments.json or arguments.csv:
        columns = ", ".join(f"{name} {type_}" for name, type_ in table.schema.items())
        facts: dict[str, object] = {"columns": columns, "scaling factor": table.scaling_factor}
        for what, amounts in (("price", table.price(arguments.epsilon)), ("left", table.remaining)):
            each = amounts.items() if isinstance(amounts, Mapping) else [(None, amounts)]
            facts |= {what if of is None else f"{what} of {of}": Fraction(amount) for of, amount in each}
        print_facts(arguments, facts)
        return 0
    tell(table.explain(), table, sep="\n\n")
    return 0
