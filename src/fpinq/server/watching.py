"""What those who watch over analysts see: the trace, what was spent by whom and when, the head, a replay."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import islice
from threading import Lock
from typing import Any

from fpinq.ledger import Ledger, open_store
from fpinq.ledger.entries import Head, Line, body_of, parsed
from fpinq.ledger.errors import LedgerCorrupt
from fpinq.ledger.notation import show_body
from fpinq.ledger.spending import Spendings
from fpinq.ledger.verify import verify
from fpinq.model.books import FOR_KEYS
from fpinq.model.events import Registered
from fpinq.runtime.refusals import TooManyRequests
from fpinq.server.house import House
from fpinq.server.told import Corrupt, HeadTold, SpentTold, Verified

ZERO = Fraction(0)
# A request looks at so many entries, and characters of them, at the most; the next one goes on from there.
LOOKED_AT = 10_000
LOOKED_AT_CHARACTERS = 2**22
PAGE = 100
LOOK_AGAIN_SECONDS = 0.25
# What was spent over time is told by so many points at the most.
POINTS = 200


@dataclass(frozen=True)
class Sieve:
    """Which entries are wanted: of a data set, of an analyst, of a kind, with a word in their text."""

    dataset: str | None = None
    analyst: str | None = None
    kind: str | None = None
    word: str | None = None

    def lets(self, entry: Mapping[str, Any]) -> bool:
        """Whether an entry is wanted."""
        return (
            self.analyst in (None, entry.get("analyst"))
            and self.kind in (None, entry["kind"])
            and (self.word is None or self.word.lower() in entry["text"].lower())
            and (self.dataset is None or self.dataset in _data_sets(entry))
        )


def _data_sets(entry: Mapping[str, Any]) -> set[str]:
    """The data sets that an entry says something of: those charged, or named."""
    action = entry.get("action") or {}
    named = {action.get("table"), *action.get("arguments", ()), entry.get("name")}
    return {*entry.get("charged", {}), *(name for name in named if isinstance(name, str))}


def head_of(head: Head) -> HeadTold:
    """The last entry."""
    return {"seq": head.seq, "hash": head.hash}


def entry_of(line: Line) -> dict[str, Any]:
    """An entry: what it says, its hash, and both in words."""
    return {**parsed(line), "hash": line.hash, "text": show_body(body_of(line))}


def after(ledger: Ledger, seq: int, limit: int, sieve: Sieve) -> tuple[list[dict[str, Any]], int]:
    """Entries after one, oldest first; and the last that was looked at."""
    found: list[dict[str, Any]] = []
    looking = Looking()
    for line in ledger.entries(seq):
        seq = line.seq
        entry = entry_of(line)
        if sieve.lets(entry):
            found.append(entry)
        if len(found) == limit or looking.has_seen_enough(line):
            break
    return found, seq


def before(ledger: Ledger, seq: int, limit: int, sieve: Sieve) -> tuple[list[dict[str, Any]], int]:
    """Entries before one, newest first; and the last that was looked at."""
    found: list[dict[str, Any]] = []
    looking = Looking()
    while seq > 0:
        first = max(seq - PAGE, 0)
        for line in reversed(list(islice(ledger.entries(first - 1), seq - first))):
            seq = line.seq
            entry = entry_of(line)
            if sieve.lets(entry):
                found.append(entry)
            if len(found) == limit or looking.has_seen_enough(line):
                return found, seq
    return found, seq


@dataclass
class Looking:
    """How much of a ledger a request has looked at: an entry is as long as whoever wrote it liked."""

    entries: int = 0
    characters: int = 0

    def has_seen_enough(self, line: Line) -> bool:
        """Take one more; whether it is the last."""
        self.entries += 1
        self.characters += len(line.text)
        return self.entries >= LOOKED_AT or self.characters >= LOOKED_AT_CHARACTERS


async def news(ledger: Ledger, seq: int, seconds: float) -> None:
    """Wait until there is an entry after one, or the time is over."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while loop.time() < end:
        head = await loop.run_in_executor(None, ledger.head)
        if head.seq > seq:
            return
        await asyncio.sleep(min(LOOK_AGAIN_SECONDS, max(0.0, end - loop.time())))


# ── spending ─────────────────────────────────────────────────────────────────────────


@dataclass
class Growth:
    """What was spent of a data set, as it grew."""

    total: Fraction = Fraction(0)
    points: list[tuple[str, Fraction]] = field(default_factory=list)

    def take(self, at: str, cost: Fraction) -> None:
        """One more charge."""
        self.total += cost
        self.points.append((at, self.total))
        if len(self.points) > 2 * POINTS:  # every second one, and the last
            self.points = self.points[(len(self.points) - 1) % 2 :: 2]


class Spending:
    """The charges of the trace, added up: read once, and from then on what is new."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._seq = -1
        self._each = Spendings()
        self._growths: dict[str, Growth] = {}
        self._lock = Lock()

    def told(self, house: House) -> list[SpentTold]:
        """What was spent of every data set."""
        with self._lock:
            self._read()
            held = list(house.data_sets)  # before the ledger is asked: one more may arrive at any time
            states = self._ledger.roots()
            return [self._of(name, states[name].registered) for name in held]

    def _read(self) -> None:
        for line in self._ledger.entries(self._seq):
            self._each.take(line)
            entry = parsed(line)
            for root, cost in (entry.get("charged") or {}).items():
                self._growths.setdefault(root, Growth()).take(entry["at"], Fraction(cost))
            self._seq = line.seq

    def _of(self, name: str, root: Registered) -> SpentTold:
        spent, deltas = self._by_analyst(name), self._by_analyst(name + FOR_KEYS)
        listed = {*spent, *deltas, *(root.caps or {}), *(root.keys_caps or {})}
        growth = self._growths.get(name, Growth())
        return {
            "name": name,
            "budget": str(root.amount),
            "cap": _told(root.cap),
            "keys_delta": _told(root.keys_delta or None),
            "analysts": [
                {
                    "name": who,
                    "spent": str(spent.get(who, ZERO)),
                    "cap": _told(root.cap_of(who)),
                    "spent_delta": _told(deltas.get(who, ZERO) if root.keys_delta else None),
                    "keys_cap": _told(root.keys_cap_of(who)),
                }
                for who in sorted(listed)
            ],
            "over_time": [{"at": at, "spent": str(total)} for at, total in _thinned(growth.points)],
        }

    def _by_analyst(self, charged: str) -> dict[str, Fraction]:
        """What each has spent of what is charged under a name: a data set's own, or its δ's."""
        return {who or "": found.charged for (who, of), found in self._each.each.items() if of == charged}


def _told(amount: Fraction | None) -> str | None:
    return None if amount is None else str(amount)


def _thinned(points: list[tuple[str, Fraction]]) -> Iterator[tuple[str, Fraction]]:
    step = max(1, len(points) // POINTS)
    for number, point in enumerate(points, 1):
        if number % step == 0 or number == len(points):
            yield point


# ── replaying ────────────────────────────────────────────────────────────────────────


class Replaying:
    """The ledger verified on request, one at a time: each entry replayed through the kernel."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._lock = Lock()

    def verified(self) -> Verified | Corrupt:
        """What verification found; TooManyRequests while another is under way."""
        if not self._lock.acquire(blocking=False):
            raise TooManyRequests("the ledger is being verified already: look again in a while")
        try:
            with closing(open_store(self._address, create=False)) as store:
                report = verify(store)
        except LedgerCorrupt as error:
            return {"ok": False, "entry": error.seq, "what": error.what}
        finally:
            self._lock.release()
        return {
            "ok": True,
            "entries": report.entries,
            "sessions": report.sessions,
            "unanswered": report.unanswered,
            "head": head_of(report.head),
            "datasets": {
                name: {"budget": str(budget), "spent": str(spent)}
                for name, (budget, spent) in report.roots.items()
            },
        }
