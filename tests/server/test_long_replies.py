"""Long replies: whoever has or reads much of what is kept keeps nobody waiting."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastapi.routing
import pytest

from fpinq.ledger import sqlite
from fpinq.server import replies, watching
from fpinq.server.questions import kept
from fpinq.server.questions.kept import Questions
from server.asked import ask
from server.live import COUNT, Live, people, serve

COLUMNS = {"age": {"bounds": [0, 110]}, "gender": {"keys": [0, 1]}}
STATEMENT = {"statement": "SELECT COUNT(*) FROM people", "epsilon": "1/100"}


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    with serve(tmp_path, people(4, columns=COLUMNS)) as it:
        yield it


def test_no_reply_is_written_down_where_everybodys_requests_arrive(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer, a page of them or of the trace is megabytes, and all others would wait for it."""
    analyst, owner = live.token(), live.token("olga", "owner")
    session = live.session(analyst)
    live.act(session, analyst, COUNT)
    asked = ask(live, analyst, table="people", kind="count", request_id="mine")
    assert asked.status == 200
    written: list[str] = []
    reply = replies.reply

    def noted(status: int, value: object) -> replies.Reply:
        written.append(threading.current_thread().name)
        return reply(status, value)

    async def left_to_the_framework(**_: Any) -> None:
        raise AssertionError("the framework writes a reply down where requests arrive")

    monkeypatch.setattr(replies, "reply", noted)
    monkeypatch.setattr(fastapi.routing, "serialize_response", left_to_the_framework)
    requests: list[tuple[str, str, Any, str]] = [
        ("GET", "/datasets", None, analyst),
        ("GET", "/datasets/people", None, analyst),
        ("GET", "/me", None, analyst),
        ("GET", f"/sessions/{session}/tables/people", None, analyst),
        ("GET", "/questions", None, analyst),
        ("GET", "/questions/mine", None, analyst),
        ("POST", "/sessions", None, analyst),
        ("POST", "/quotes", {"table": "people", "kind": "count", "epsilon": "1/10"}, analyst),
        ("POST", "/questions", {"table": "people", "kind": "count", "epsilon": "1/10"}, analyst),
        ("POST", "/sql", STATEMENT, analyst),
        ("GET", "/trace", None, owner),
        ("GET", "/spending", None, owner),
        ("POST", "/ledger/verify", None, owner),
        ("POST", "/datasets/people/freeze", None, owner),
        ("POST", "/datasets/people/unfreeze", None, owner),
    ]
    live.send("GET", "/limits")
    (arriving,) = written  # where requests arrive, which is where these few bytes are made
    for method, path, body, token in requests:
        written.clear()
        assert live.send(method, path, body, token).status in (200, 201), path
        assert len(written) == 1, path
        assert arriving not in written, path


def test_a_page_of_one_s_questions_ends_where_it_is_long_and_says_that_there_are_more(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = live.token()
    for _ in range(4):
        assert ask(live, token, table="people", kind="count", by="gender").status == 200

    def page(**given: int) -> dict[str, Any]:
        query = "&".join(f"{name}={value}" for name, value in given.items())
        found: dict[str, Any] = live.send("GET", f"/questions?{query}", token=token).json
        return found

    whole = page()
    assert (len(whole["questions"]), whole["more"]) == (4, False)
    assert (len(page(limit=3)["questions"]), page(limit=3)["more"]) == (3, True)
    assert page(limit=4)["more"] is False
    monkeypatch.setattr(kept, "PAGE_CHARACTERS", 10)  # each is longer: one at a time
    found, told = [], page()
    while True:
        found += told["questions"]
        if not told["more"]:
            break
        told = page(before=found[-1]["number"])
        assert len(told["questions"]) == 1
    assert found == whole["questions"]


def test_how_long_an_answer_is_that_is_not_shown_yet_does_not_end_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else whoever looks at a page would know that a measurement has ended, before the quantum."""
    monkeypatch.setattr(kept, "PAGE_CHARACTERS", 1_000)
    now = 100.0
    questions = Questions(tmp_path / "questions", "a ledger", lambda: now)
    for request in ("first", "second"):
        questions.begin("alice", request, {"kind": "count"})
    before = questions.listed("alice", None, 10)
    questions.answer("alice", "second", {"words": "x" * 2_000}, 5)  # type: ignore[typeddict-item]
    assert questions.listed("alice", None, 10) == before
    now += 6
    found, more = questions.listed("alice", None, 10)
    assert ([each.request_id for each in found], more) == (["second"], True)


def test_a_look_at_the_trace_ends_after_so_many_characters_and_goes_on_there(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, auditor = live.token(), live.token("ada", "auditor")
    session = live.session(token)
    for _ in range(3):
        live.act(session, token, COUNT)

    def look(query: str) -> dict[str, Any]:
        found: dict[str, Any] = live.send("GET", f"/trace?{query}", token=auditor).json
        return found

    whole = look("")["entries"]
    monkeypatch.setattr(watching, "LOOKED_AT_CHARACTERS", 10)
    after, newest = [], []
    told = look("")
    while told["entries"]:
        after += told["entries"]
        told = look(f"after={told['looked_at']}")
    told = look("newest=1")
    while told["entries"]:
        newest += told["entries"]
        told = look(f"before={told['looked_at']}")
    assert after == whole == newest[::-1]
    assert len(look("word=nowhere")["entries"]) == 0
    assert look("word=nowhere")["looked_at"] == 0


def test_to_read_one_entry_of_a_ledger_no_more_than_a_hundred_are_read(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An entry is as long as a request may be, and they are read while all others wait: 10,000 were 8 GB."""
    ledger = live.house.ledger
    for _ in range(60):
        ledger.freeze("people")
        ledger.unfreeze("people")
    read: list[int] = []
    rows = sqlite._Statements.rows

    def noted(self: sqlite._Statements, statement: str, *parameters: Any) -> Any:
        found = rows(self, statement, *parameters)
        read.append(len(found))
        return found

    monkeypatch.setattr(sqlite._Statements, "rows", noted)
    assert next(ledger.entries()).seq == 0
    assert 1 < max(read) <= 100
    assert sum(read) <= 101  # the head, too
    assert len(list(ledger.entries())) > 100


@pytest.mark.parametrize("number", [2**63, 10**23])
def test_a_place_beyond_all_numbers_is_refused_and_no_mistake_of_the_server(live: Live, number: int) -> None:
    analyst, auditor = live.token(), live.token("ada", "auditor")
    for path, token in (
        (f"/questions?before={number}", analyst),
        (f"/trace?after={number}", auditor),
        (f"/trace?before={number}", auditor),
    ):
        assert live.send("GET", path, token=token).code == "bad_wire"
    assert live.send("GET", f"/questions?before={2**63 - 1}", token=analyst).status == 200
    assert live.send("GET", f"/trace?after={2**63 - 1}", token=auditor).status == 200
