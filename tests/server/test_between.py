"""Between the end of a measurement and the quantum, nothing that anybody can see says that it ended."""

from concurrent.futures import Future, ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from threading import Event, Thread
from time import monotonic, sleep
from typing import Any

import pytest

from fpinq.ledger.entries import parsed
from fpinq.model.actions import Assign
from fpinq.model.transformations import Take
from fpinq.server.questions.systems import Working
from server.live import COUNT, Live, Reply, people, serve

COLUMNS = {"age": {"bounds": [0, 110]}}
TWO_QUERIES = [
    ("/questions", {"table": "people", "kind": "average", "of": "age", "epsilon": "1/10"}),
    ("/sql", {"statement": "SELECT COUNT(*), COUNT(DISTINCT age) FROM people", "epsilon": "1/10"}),
]


def public(live: Live) -> str:
    """What anybody may look at, at any time: each look's own reply leaves later, with what was so then."""
    return live.house.metrics.text(live.house.ledger.roots())


@pytest.mark.parametrize(("path", "body"), TWO_QUERIES)
def test_nothing_is_counted_between_a_measurement_and_the_quantum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, body: dict[str, Any]
) -> None:
    measured, waiting = [], []

    def mechanism(query: Any, _: Any, epsilon: Any) -> Any:
        measured.append(public(live))
        return (50,) * query.integers

    monkeypatch.setattr(Working, "until_quantum", lambda _: waiting.append(public(live)))
    with serve(tmp_path, people(9, columns=COLUMNS), mechanism=mechanism) as live:
        assert live.send("POST", path, body, live.token()).status == 200
    assert len(measured) == 2
    assert waiting[0] == measured[0]


FOUND_FIRST = [
    (
        "/questions",
        {
            "table": "people",
            "kind": "average",
            "of": "age",
            "by": "age",
            "epsilon": "1/10",
            "discover": {"epsilon": "1/10", "within": {"op": "integers", "low": 0, "high": 110}},
        },
    ),
    (
        "/sql",
        {
            "statement": "SELECT /*+ domain(age, 0, 110) */ age, MEDIAN(age) FROM people GROUP BY age",
            "epsilon": 1,
        },
    ),
]


@pytest.mark.parametrize("found", [(), (20, 50, 21, 60)], ids=["none", "two"])
@pytest.mark.parametrize(("path", "body"), FOUND_FIRST)
def test_nothing_is_counted_between_the_finding_of_keys_and_the_quantum(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    body: dict[str, Any],
    found: tuple[int, ...],
) -> None:
    measured, waiting = [], []

    def mechanism(query: Any, _: Any, epsilon: Any) -> Any:
        measured.append(public(live))
        if query.mechanism == "keys":
            return found
        return 50 if query.integers == 1 else (50,) * query.integers

    monkeypatch.setattr(Working, "until_quantum", lambda _: waiting.append(public(live)))
    with serve(tmp_path, people(9, columns=COLUMNS), mechanism=mechanism) as live:
        reply = live.send("POST", path, body, live.token())
        assert reply.status == 200, reply.body
    assert (len(measured) > 1) == bool(found)
    assert waiting[:1] == measured[: len(waiting[:1])]


@pytest.mark.parametrize(("path", "body"), TWO_QUERIES)
def test_what_others_spend_while_a_question_is_measured_is_not_in_its_reply(
    tmp_path: Path, path: str, body: dict[str, Any]
) -> None:
    """Else somebody who spends a little every millisecond would be the clock of somebody else's."""
    alone, among_others = (_told(tmp_path / str(others), path, body, others) for others in (0, 3))
    assert alone == among_others
    assert alone["remaining"] == {"people": "89/10"}


def _told(folder: Path, path: str, body: dict[str, Any], others: int) -> Any:
    """The reply to a question, during whose first measurement others ask so many."""
    folder.mkdir()
    left = others

    def mechanism(query: Any, _: Any, epsilon: Any) -> Any:
        nonlocal left
        if left:
            left -= 1
            assert live.act(session, other, COUNT).status == 200
        return (50,) * query.integers

    with serve(folder, people(9, columns=COLUMNS), mechanism=mechanism) as live:
        other = live.token("bob")
        session = live.session(other)
        told = live.send("POST", path, {**body, "request_id": "one"}, live.token()).json
        assert live.left() == 9 - Fraction(1 + others, 10)
        return told


# ── what was recorded ────────────────────────────────────────────────────────────────

QUANTUM = Fraction(2)
ONE_QUERY: list[tuple[str, dict[str, Any]]] = [
    ("/sessions/{session}/actions", {"action": COUNT}),
    ("/questions", {"table": "people", "kind": "count", "epsilon": "1/10"}),
    ("/sql", {"statement": "SELECT COUNT(*) FROM people", "epsilon": "1/10"}),
]
# Every way to read, as whoever may read most; those of one's own as whoever asked.
READING = [
    ("GET", "/trace?newest=true"),
    ("GET", "/trace?wait=0.1&after=3"),
    ("GET", "/spending"),
    ("POST", "/ledger/verify"),
]
ANYBODYS = [("GET", path) for path in ("/metrics", "/healthz", "/limits", "/datasets", "/datasets/people")]
ONES_OWN = [("GET", path) for path in ("/questions", "/questions/slow", "/me")]


def test_every_way_to_read_is_looked_at_here(tmp_path: Path) -> None:
    known = {path.partition("?")[0] for _, path in (*READING, *ANYBODYS, *ONES_OWN)}
    known = {path.replace("/slow", "/{request_id}").replace("/people", "/{name}") for path in known}
    unchanging = {"/openapi.json", "/sessions/{session}/tables/{variable}"}
    with serve(tmp_path, people(9)) as live:
        described = live.send("GET", "/openapi.json").json["paths"]
    assert {path for path, methods in described.items() if "get" in methods} - unchanging <= known


@pytest.mark.parametrize(("path", "body"), ONE_QUERY)
def test_nobody_reads_that_a_measurement_has_ended_before_its_quantum(
    tmp_path: Path, path: str, body: dict[str, Any]
) -> None:
    """An auditor read in the trace when an answer was recorded, which was when its measurement ended."""
    for attempt in range(5):
        before, after, in_time = _read_around_the_end(tmp_path / str(attempt), path, body)
        if in_time:
            assert before == after
            return
    pytest.fail("in five attempts the machine was too slow to read everything within one quantum")


def _read_around_the_end(
    folder: Path, path: str, body: dict[str, Any]
) -> tuple[list[bytes], list[bytes], bool]:
    """What can be read before a measurement ends, and after; and whether all was asked in one quantum."""
    folder.mkdir()
    measuring, go_on = Event(), Event()

    def mechanism(query: Any, *_: Any) -> Any:
        measuring.set()
        assert go_on.wait(10)
        return (50,) * query.integers

    with (
        serve(folder, people(9, columns=COLUMNS), mechanism=mechanism, quantum_seconds=QUANTUM) as live,
        ThreadPoolExecutor(40) as at_once,
    ):
        alice, auditor = live.token(), live.token("audrey", "auditor")
        asked = {**body, "request_id": "slow"}
        place = path.format(session=live.session(alice))

        def all_that_is_read() -> "list[Future[Reply]]":
            ways = [(READING, auditor), (ANYBODYS, auditor), (ONES_OWN, alice)]
            return [at_once.submit(live.send, *way, token=who) for some, who in ways for way in some]

        began = monotonic()
        slow = at_once.submit(live.send, "POST", place, asked, alice)
        assert measuring.wait(10)
        meanwhile = all_that_is_read()
        sleep(0.5)  # they have arrived
        go_on.set()
        sleep(0.2)
        afterwards = all_that_is_read()
        sleep(0.5)
        in_time = monotonic() - began < QUANTUM - Fraction(1, 4)  # when the answer is written down
        before, after = ([each.result().body for each in replies] for replies in (meanwhile, afterwards))
        assert slow.result().status == 200
        kinds = [entry["kind"] for entry in live.send("GET", "/trace", token=auditor).json["entries"]]
        assert kinds[-1] == "answer"
    return before, after, in_time


def test_where_an_answer_stands_among_others_entries_does_not_tell_how_long_it_took(tmp_path: Path) -> None:
    """Somebody who writes an entry every few milliseconds would be the clock, whenever the trace is read."""
    quick, slow = (_entries_until_the_answer(tmp_path / str(seconds), seconds) for seconds in (0.0, 0.5))
    assert quick > 1.0
    assert slow > 1.0


def _entries_until_the_answer(folder: Path, seconds: float) -> float:
    """How long after the question its answer is recorded, by the entries of somebody else."""
    folder.mkdir()
    times: dict[str, float] = {}

    def mechanism(query: Any, *_: Any) -> Any:
        sleep(seconds)
        return (50,) * query.integers

    with serve(folder, people(9), mechanism=mechanism, quantum_seconds=QUANTUM) as live:
        alice = live.token()
        session = live.session(alice)
        asking = Thread(target=live.act, args=(session, alice, COUNT))
        asking.start()
        began = monotonic()
        for number in range(10_000):
            if not asking.is_alive():
                break
            live.house.ledger.act("clock", Assign(f"v{number}", Take(1), ("people",)), str(number), "bob")
            times[str(number)] = monotonic() - began
            sleep(0.02)
        asking.join()
        ticks, found = 0.0, None
        for line in live.house.ledger.entries(-1):
            entry = parsed(line)
            if entry["kind"] == "answer":
                found = ticks
            elif entry.get("analyst") == "bob":
                ticks = times[entry["request"]]
        assert found is not None
        return found
