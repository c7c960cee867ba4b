"""Kill −9 at every point of the charge–release path, and look at what is left. Run by test_crashes.

A child runs the program and dies at its n-th point: before or after the n-th
statement, or at the n-th write that would make a file longer than a limit, in
the middle of that write. Then another process opens the ledger, verifies it,
and runs the program again with the same request ids.
"""

import json
import os
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from faults.program import BUDGET, EACH, SPENT, THREADS, TURNS, run, run_together, system_over
from fpinq.ledger import Ledger, Observation, open_store, wire
from fpinq.ledger.anchor import Anchor, AnchorFile, Mark
from fpinq.ledger.verify import verify
from fpinq.ledger.wire import canonical
from fpinq.runtime import Answered

# What is run, and what is spent when it has got through.
Program = tuple[Callable[[Any, Callable[[str, Observation], Any]], None], Any]
ALONE: Program = (run, SPENT)
TOGETHER: Program = (run_together, THREADS * TURNS * EACH)


class Dying:
    """Statements that kill their process at the n-th point."""

    def __init__(self, statements: Any, points: "Points") -> None:
        self._statements = statements
        self._points = points

    def rows(self, *statement: Any) -> Any:
        self._points.pass_one()
        found = self._statements.rows(*statement)
        self._points.pass_one()
        return found

    def run(self, *statement: Any) -> Any:
        self._points.pass_one()
        changed = self._statements.run(*statement)
        self._points.pass_one()
        return changed

    def each(self, statements: Any) -> Any:
        found = []
        for statement in statements:
            self._points.pass_one()
            found += self._statements.each([statement])
        self._points.pass_one()
        return found


class Points:
    """Counts down to a kill."""

    def __init__(self, left: int) -> None:
        self.left = left

    def pass_one(self) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


class DyingStore:
    """A store whose statements are points; COMMIT and BEGIN too, where they are statements of its own."""

    def __init__(self, store: Any, points: Points) -> None:
        self._store = store
        self._points = points
        if hasattr(store, "_statements"):
            store._statements = Dying(store._statements, points)

    @contextmanager
    def writing(self, *, durable: bool) -> Iterator[Any]:
        with self._store.writing(durable=durable) as statements:
            yield self._wrapped(statements)
            self._points.pass_one()
        self._points.pass_one()

    @contextmanager
    def reading(self) -> Iterator[Any]:
        with self._store.reading() as statements:
            yield self._wrapped(statements)

    def rows(self, statement: str) -> Any:
        return self._store.rows(statement)

    def _wrapped(self, statements: Any) -> Any:
        return statements if isinstance(statements, Dying) else Dying(statements, self._points)

    def close(self) -> None:
        self._store.close()


def in_a_child(work: Callable[[], object]) -> int:
    """Work, in a process that may die of it; how it ended, 0 or a signal."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(99)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0:
        raise AssertionError(f"the child failed with {os.WEXITSTATUS(status)}")
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


class DyingAnchor:
    """An anchor whose steps are points."""

    def __init__(self, anchor: AnchorFile, points: Points) -> None:
        self._anchor, self._points, self.place = anchor, points, anchor.place
        write = anchor._write

        def dying(mark: Mark) -> None:
            points.pass_one()
            write(mark)
            points.pass_one()

        anchor._write = dying  # type: ignore[method-assign]

    def hold(self, mark: Mark | None) -> Mark | None:
        self._points.pass_one()
        held = self._anchor.hold(mark)
        self._points.pass_one()
        return held


def run_until_dead(
    where: str,
    seen: str,
    die: Callable[[Any], Any],
    anchor: Anchor | None = None,
    program: Program = ALONE,
) -> None:
    """The program; whatever is released is written down by whoever asked, with the anchor as it is then."""
    file = os.open(seen, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def told(request: str, observation: Observation) -> None:
        os.write(file, (json.dumps([request, wire.encode(observation)]) + "\n").encode())

    program[0](system_over(Ledger(die(open_store(where)), anchor=anchor)), told)


def check(where: str, seen: str, anchor: str | None = None, program: Program = ALONE) -> None:
    """What must hold after any crash."""
    run, spent_in_all = program
    with closing(open_store(where)) as store:
        if anchor is not None:
            check_anchored(store, seen, anchor)
        # Begins it, if the child did not get that far.
        ledger = Ledger(store, anchor=None if anchor is None else AnchorFile(anchor))
        before = verify(store)
        told = dict(map(json.loads, Path(seen).read_text().splitlines())) if os.path.exists(seen) else {}
        released = [wire.decode_observation(text) for text in told.values()]
        charged = sum(sum(r.charged.values()) for r in released if isinstance(r, Answered))
        spent = before.roots["data"][1] if before.roots else 0
        assert charged <= spent <= BUDGET, f"released for {charged}, recorded {spent}"

        again: dict[str, str] = {}
        run(system_over(ledger), lambda request, seen: again.update({request: wire.encode(seen)}))
        for request, text in told.items():
            assert again[request] == text, f"{request} was told {text}, then {again[request]}"
        after = verify(store)
        # Everything was charged once: what the crash left half done was not charged again.
        assert after.roots["data"][1] == spent_in_all, f"{after.roots['data'][1]} instead of {spent_in_all}"
        assert after.unanswered == 0


def check_anchored(store: Any, seen: str, anchor: str) -> None:
    """Nothing was released that the anchor does not hold: an older copy without it would be refused."""
    held = AnchorFile(anchor).hold(None)
    with store.reading() as statements:
        ends = [
            seq
            for (seq, text) in statements.rows("SELECT seq, text FROM entries WHERE answers IS NOT NULL")
            if Path(seen).exists() and _released_in(text, Path(seen).read_text())
        ]
    assert all(held is not None and seq <= held.seq for seq in ends), f"{held} holds not all of {ends}"


def _released_in(text: str, told: str) -> bool:
    return canonical(json.loads(text)["released"]) in told.replace("\\", "")


def crash_at(
    place: Callable[[], str],
    folder: str,
    n: int,
    die: Callable[[Any], Any],
    anchor: Points | None = None,
    program: Program = ALONE,
) -> int:
    where, seen = place(), os.path.join(folder, f"seen-{n}")
    beside = f"{seen}.anchor" if anchor is not None else None
    made = None if beside is None or anchor is None else DyingAnchor(AnchorFile(beside), anchor)
    ended = in_a_child(lambda: run_until_dead(where, seen, die, made, program))
    in_a_child(lambda: check(where, seen, beside, program))
    return ended


def at_statements(place: Callable[[], str], folder: str, every: int) -> int:
    """Die at each statement (or each so many) until the program gets through; how many deaths."""
    for n in range(1, 100_000, every):
        if crash_at(place, folder, n, lambda store, n=n: DyingStore(store, Points(n))) == 0:
            return (n - 1) // every
    raise AssertionError("the program never gets through")


def at_commits_of_several(place: Callable[[], str], folder: str, every: int) -> int:
    """The same, of threads whose steps are written together, with an anchor."""
    for n in range(1, 100_000, every):
        points = Points(n)
        die = lambda store, points=points: DyingStore(store, points)  # noqa: E731
        if crash_at(place, folder, n, die, points, TOGETHER) == 0:
            return (n - 1) // every
    raise AssertionError("the program never gets through")


def with_an_anchor(place: Callable[[], str], folder: str, every: int) -> int:
    """Die at each statement and at each step of the anchor; how many deaths."""
    for n in range(1, 100_000, every):
        points = Points(n)
        die = lambda store, points=points: DyingStore(store, points)  # noqa: E731
        if crash_at(place, folder, n, die, points) == 0:
            return (n - 1) // every
    raise AssertionError("the program never gets through")


def at_writes(place: Callable[[], str], folder: str, step: int) -> int:
    """Die in the middle of the write that passes a limit, for growing limits; how many deaths."""

    def limited(limit: int) -> Callable[[Any], Any]:
        def die(store: Any) -> Any:
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            return store

        return die

    # The shared memory of the WAL is 32 KiB from the start.
    for deaths, limit in enumerate(range(33 * 1024, 10**7, step)):
        if crash_at(place, folder, limit, limited(limit)) == 0:
            return deaths
    raise AssertionError("the program never gets through")


def main() -> None:
    kind, where, amount = sys.argv[1], sys.argv[2], int(sys.argv[3])
    folder = tempfile.mkdtemp(prefix="fpinq-crash-", dir=where if os.path.isdir(where) else None)
    numbers = iter(range(10**9))

    def file() -> str:
        return os.path.join(folder, f"{next(numbers)}.ledger")

    def database() -> str:
        import psycopg

        name = f"crash_{os.getpid()}_{next(numbers)}"
        with psycopg.connect(where, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")  # type: ignore[arg-type]
        return where.replace("/postgres?", f"/{name}?")

    try:
        match kind:
            case "statements":
                print(at_statements(file if os.path.isdir(where) else database, folder, amount))
            case "together":
                print(at_commits_of_several(file if os.path.isdir(where) else database, folder, amount))
            case "anchor":
                print(with_an_anchor(file if os.path.isdir(where) else database, folder, amount))
            case "writes":
                print(at_writes(file, folder, amount))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
