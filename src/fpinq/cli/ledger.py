"""fpinq ledger show | spending | verify | head | backup | restore | upgrade."""

import os
import re
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from fpinq.cli.options import number
from fpinq.cli.output import add_forms, print_facts, print_rows, tell
from fpinq.cli.progress import Progress
from fpinq.cli.words import counted

if TYPE_CHECKING:
    from fpinq.ledger.verify import Report


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `fpinq ledger`."""
    what = parser.add_subparsers(dest="what", required=True, metavar=" | ".join(_COMMANDS))
    commands = {}
    for name, (text, _) in _COMMANDS.items():
        command = commands[name] = what.add_parser(name, help=text)
        command.add_argument("ledger", help="a file, or a postgresql:// address")
    for command in commands.values():
        add_forms(command)
    for name in ("verify", "restore"):
        commands[name].add_argument(
            "--expect-head", metavar="HASH", help="a head that was kept: no older copy was put back"
        )
    commands["verify"].add_argument(
        "--jobs", type=number, default=os.cpu_count() or 1, help="how many processes to use"
    )
    for name in ("show", "spending"):
        commands[name].add_argument("--after", type=int, default=-1, metavar="SEQ", help="only later entries")
    commands["show"].add_argument(
        "--format", type=int, metavar="N", help="the entries of format N, from before an upgrade"
    )
    commands["spending"].add_argument(
        "--each", action="store_true", help="every query that was charged or refused, not only the sums"
    )
    commands["backup"].add_argument("to", help="a file that does not exist yet")
    commands["restore"].add_argument("to", help="where the ledger is to be: a file that does not exist")


def run(arguments: Namespace) -> int:
    """0 if the ledger is what was written; 1 if it is not. What cannot be read has its own error's code."""
    from fpinq.ledger.errors import LedgerCorrupt

    try:
        return _COMMANDS[arguments.what][1](arguments)
    except LedgerCorrupt as error:
        tell(f"✗ {error if error.seq >= 0 else error.what}", file=sys.stderr)
        return 1


def _head(arguments: Namespace) -> int:
    from fpinq.ledger import open_store
    from fpinq.ledger.store import Pages

    with closing(open_store(arguments.ledger, create=False)) as store, store.reading() as statements:
        head = Pages(statements).head()
    if arguments.json or arguments.csv:
        print_facts(arguments, {"seq": head.seq, "hash": head.hash})
    else:
        tell(f"{head.seq} {head.hash}")
    return 0


def _verify(arguments: Namespace) -> int:
    from fpinq.ledger import open_store
    from fpinq.ledger.verify import verify

    with closing(open_store(arguments.ledger, create=False)) as store, _progress("verifying") as show:
        report = verify(store, _expected(arguments), show, arguments.jobs)
    if _for_programs(arguments, report):
        return 0
    tell(f"✓ {_followed(report)} follow from each other and the kernel")
    _print_left(report)
    if report.unanswered:
        tell(f"  {report.unanswered:,} charged without a recorded answer: cut short, or being measured")
    tell(f"  head {report.head.seq} {report.head.hash}")
    return 0


def _for_programs(arguments: Namespace, report: "Report") -> bool:
    """Print what was found of a ledger, for programs; False for people."""
    if not (arguments.json or arguments.csv):
        return False
    left = {f"left of {name}": budget - spent for name, (budget, spent) in report.roots.items()}
    facts = {"entries": report.entries, "sessions": report.sessions, "unanswered": report.unanswered}
    print_facts(arguments, {**facts, **left, "seq": report.head.seq, "hash": report.head.hash})
    return True


def _followed(report: "Report") -> str:
    return f"{counted(report.entries, 'entry', 'entries')} of {counted(report.sessions, 'session')}"


def _print_left(report: "Report") -> None:
    from fpinq.model.epsilon import decimal_down

    for name, (budget, spent) in report.roots.items():
        tell(f"  {name}: {decimal_down(budget - spent)} of {decimal_down(budget)} left")


def _expected(arguments: Namespace) -> str | None:
    """The hash of a head that was kept. An anchor that is gone says nothing, which is not to say none."""
    if arguments.expect_head is None:
        return None
    said = re.search(r"(?:^|\s)([0-9a-f]{64})\s*$", arguments.expect_head, re.ASCII | re.IGNORECASE)
    if said is None:
        from fpinq.model.errors import ProgramError

        raise ProgramError(
            "--expect-head is what fpinq ledger head printed or an anchor holds, and ends with a hash: "
            f"{arguments.expect_head!r} has none, so nothing was done"
        )
    return said[1].lower()


@contextmanager
def _progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """How far a verification has come, in hundredths."""
    shown = 0
    with Progress(what, 100) as progress:

        def show(done: int, total: int) -> None:
            nonlocal shown
            while shown < 100 * done // total:
                shown += 1
                progress.advance(f"{done:,} of {total:,} entries")

        yield show


def _backup(arguments: Namespace) -> int:
    from fpinq.ledger.copying import back_up

    with _progress("verifying the copy") as show:
        report = back_up(arguments.ledger, arguments.to, show)
    if _for_programs(arguments, report):
        return 0
    tell(f"✓ {_followed(report)} are in {arguments.to}, and were verified there")
    tell(f"  head {report.head.seq} {report.head.hash}")
    return 0


def _restore(arguments: Namespace) -> int:
    from fpinq.ledger.copying import put_back

    with _progress("verifying the copy") as show:
        report = put_back(arguments.ledger, arguments.to, _expected(arguments), show)
    if _for_programs(arguments, report):
        return 0
    tell(f"✓ {_followed(report)} are in {arguments.to}, and were verified")
    _print_left(report)
    if arguments.expect_head is None:
        tell(
            "  all data sets are frozen: what was charged since the copy was made is not known, and was "
            "learned all the same.\n  fpinq dataset unfreeze NAME, once you know what is left "
            "(docs/operating/ledger.md)"
        )
    return 0


def _spending(arguments: Namespace) -> int:
    from fpinq.ledger import open_store
    from fpinq.ledger.spending import charges, spendings
    from fpinq.ledger.store import Pages

    with closing(open_store(arguments.ledger, create=False)) as store, store.reading() as statements:
        pages = Pages(statements)
        if arguments.each:
            names = ["entry", "at", "analyst", "asked", "charged"]
            rows = [
                [seq, at, analyst, asked, " ".join(f"{root} {cost}" for root, cost in charged.items()) or "⊥"]
                for seq, at, analyst, asked, charged in charges(pages.after(max(arguments.after, -1)))
            ]
            print_rows(arguments, names, rows, "nothing was asked yet")
            return 0
        names = ["analyst", "data set", "questions", "charged", "left of cap", "last"]
        found = spendings(pages.after(-1))
    each = [[one.analyst, one.root, one.questions, one.charged, one.left, one.last] for one in found]
    print_rows(arguments, names, each, "nothing was charged yet")
    return 0


def _show(arguments: Namespace) -> int:
    from fpinq.ledger import open_store
    from fpinq.ledger.entries import START, body_of
    from fpinq.ledger.notation import show_body
    from fpinq.ledger.spending import at
    from fpinq.ledger.store import Pages

    after = max(arguments.after, START.seq)
    with closing(open_store(arguments.ledger, create=False)) as store, store.reading() as statements:
        pages = Pages(statements)
        older = None if arguments.format is None else pages.of_format(arguments.format)
        shown = (
            (stored.seq, at(stored), stored.hash[:12], show_body(body_of(stored)))
            for stored in (pages.after(after) if older is None else older)
            if stored.seq > after
        )
        if arguments.json or arguments.csv:
            print_rows(arguments, ["seq", "at", "hash", "entry"], shown)
            return 0
        for seq, when, start_of_hash, text in shown:
            tell(f"{seq:>6}  {when}  {start_of_hash}  {text}")
    return 0


def _upgrade(arguments: Namespace) -> int:
    from fpinq.ledger import open_store
    from fpinq.ledger.upgrade import upgrade
    from fpinq.ledger.verify import verify

    with closing(open_store(arguments.ledger, create=False)) as store:
        older = upgrade(store)
        report = verify(store)
    if _for_programs(arguments, report):
        return 0
    if older is None:
        tell("✓ it is of this version's format already: nothing was changed")
        return 0
    tell(
        f"✓ {counted(older.head.seq + 1, 'entry', 'entries')} of {counted(older.sessions, 'session')} were "
        "followed, and are kept as they are: programs begin anew, with what was charged"
    )
    _print_left(report)
    tell(f"  head {report.head.seq} {report.head.hash}, which goes on from {older.head.hash}")
    return 0


_COMMANDS: dict[str, tuple[str, Callable[[Namespace], int]]] = {
    "show": ("the trace, as the paper writes it", _show),
    "spending": ("who spent what of which data set, and what is left of their caps", _spending),
    "verify": ("recompute the chain, and take every step again through the kernel", _verify),
    "head": ("the number and hash of the last entry: keep it elsewhere", _head),
    "backup": ("a verified copy of a file, while it is used", _backup),
    "restore": ("put a copy back, frozen: it has forgotten what was charged since", _restore),
    "upgrade": ("from an older format to this one, with all that was charged", _upgrade),
}
