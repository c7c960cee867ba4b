"""fpinq ledger show | verify | head | upgrade: the trace, whether it is whole, where it ends, its format."""

import os
import sys
from argparse import ArgumentParser, Namespace
from contextlib import closing

from fpinq.cli.options import number
from fpinq.cli.progress import Progress
from fpinq.cli.words import counted


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `fpinq ledger`."""
    what = parser.add_subparsers(dest="what", required=True, metavar="show | verify | head | upgrade")
    for name, text in (
        ("show", "the trace, as the paper writes it"),
        ("verify", "recompute the chain, and take every step again through the kernel"),
        ("head", "the number and hash of the last entry: keep it elsewhere"),
        ("upgrade", "from an older format to this one, with all that was charged"),
    ):
        command = what.add_parser(name, help=text)
        command.add_argument("ledger", help="a file, or a postgresql:// address")
        if name == "verify":
            command.add_argument(
                "--expect-head", metavar="HASH", help="a head that was kept: no older copy was put back"
            )
            command.add_argument(
                "--jobs", type=number, default=os.cpu_count() or 1, help="how many processes to use"
            )
        if name == "show":
            command.add_argument("--after", type=int, default=-1, metavar="SEQ", help="only later entries")
            command.add_argument(
                "--format",
                type=int,
                metavar="N",
                help="the entries of format N, from before an upgrade",
            )


def run(arguments: Namespace) -> int:
    """0 if the ledger is what was written; 1 if it is not. What cannot be read has its own error's code."""
    from fpinq.ledger.errors import LedgerCorrupt

    try:
        commands = {"show": _show, "verify": _verify, "head": _head, "upgrade": _upgrade}
        return commands[arguments.what](arguments)
    except LedgerCorrupt as error:
        print(f"✗ {error if error.seq >= 0 else error.what}", file=sys.stderr)
        return 1


def _head(arguments: Namespace) -> int:
    from fpinq.ledger import open_store
    from fpinq.ledger.store import Pages

    with closing(open_store(arguments.ledger, create=False)) as store, store.reading() as statements:
        head = Pages(statements).head()
    print(f"{head.seq} {head.hash}")
    return 0


def _verify(arguments: Namespace) -> int:
    from fpinq.ledger import open_store
    from fpinq.ledger.verify import verify
    from fpinq.model.epsilon import decimal_down

    expected = arguments.expect_head.split()[-1].lower() if arguments.expect_head else None
    with closing(open_store(arguments.ledger, create=False)) as store, Progress("verifying", 100) as progress:
        shown = 0

        def show(done: int, total: int) -> None:
            nonlocal shown
            while shown < 100 * done // total:
                shown += 1
                progress.advance(f"{done:,} of {total:,} entries")

        report = verify(store, expected, show, arguments.jobs)
    print(
        f"✓ {counted(report.entries, 'entry', 'entries')} of {counted(report.sessions, 'session')} "
        "follow from each other and the kernel"
    )
    for name, (budget, spent) in report.roots.items():
        print(f"  {name}: {decimal_down(budget - spent)} of {decimal_down(budget)} left")
    if report.unanswered:
        print(f"  {report.unanswered:,} charged without a recorded answer: cut short, or being measured")
    print(f"  head {report.head.seq} {report.head.hash}")
    return 0


def _show(arguments: Namespace) -> int:
    from fpinq.ledger import open_store
    from fpinq.ledger.entries import START, body_of, parsed
    from fpinq.ledger.notation import show_body
    from fpinq.ledger.store import Pages

    after = max(arguments.after, START.seq)
    with closing(open_store(arguments.ledger, create=False)) as store, store.reading() as statements:
        pages = Pages(statements)
        older = None if arguments.format is None else pages.of_format(arguments.format)
        for stored in pages.after(after) if older is None else older:
            if stored.seq > after:
                at = str(parsed(stored).get("at", ""))[:19]
                print(f"{stored.seq:>6}  {at}  {stored.hash[:12]}  {show_body(body_of(stored))}")
    return 0


def _upgrade(arguments: Namespace) -> int:
    from fpinq.ledger import open_store
    from fpinq.ledger.upgrade import upgrade
    from fpinq.ledger.verify import verify
    from fpinq.model.epsilon import decimal_down

    with closing(open_store(arguments.ledger, create=False)) as store:
        older = upgrade(store)
        report = verify(store)
    if older is None:
        print("✓ it is of this version's format already: nothing was changed")
        return 0
    print(
        f"✓ {counted(older.head.seq + 1, 'entry', 'entries')} of {counted(older.sessions, 'session')} were "
        "followed, and are kept as they are: programs begin anew, with what was charged"
    )
    for name, (budget, spent) in report.roots.items():
        print(f"  {name}: {decimal_down(budget - spent)} of {decimal_down(budget)} left")
    print(f"  head {report.head.seq} {report.head.hash}, which goes on from {older.head.hash}")
    return 0
