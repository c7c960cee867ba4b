"""What auditors and owners see: the trace in words, what was spent by whom, the head, a replay."""

import threading
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from fpinq.server import watching
from server.live import COUNT, Live, people, serve

NO_DELTA = {"spent_delta": None, "keys_cap": None}


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    with serve(tmp_path, people(1, caps={"carol": Fraction(1, 4)})) as found:
        for who, times in (("alice", 3), ("bob", 2)):
            token = found.token(who)
            session = found.session(token)
            for _ in range(times):
                found.act(session, token, COUNT)
        yield found


def trace(live: Live, **asked: Any) -> Any:
    query = "&".join(f"{name}={value}" for name, value in asked.items())
    return live.send("GET", f"/trace?{query}", token=live.token("ann", "auditor")).json


def test_the_newest_entries_come_first_page_by_page(live: Live) -> None:
    oldest = [entry["seq"] for entry in trace(live)["entries"]]
    first = trace(live, newest=1, limit=4)
    assert [entry["seq"] for entry in first["entries"]] == oldest[::-1][:4]
    assert first["head"] == {"seq": oldest[-1], "hash": first["entries"][0]["hash"]}
    rest = trace(live, before=first["looked_at"])
    assert [entry["seq"] for entry in rest["entries"]] == oldest[::-1][4:]


def test_entries_are_told_in_words_and_found_by_what_they_are_about(live: Live) -> None:
    texts = [entry["text"] for entry in trace(live, kind="action", analyst="bob")["entries"]]
    assert len(texts) == 2
    assert all("query(people, count, 1/10)" in text and text.startswith("bob/") for text in texts)
    assert len(trace(live, dataset="people", kind="action")["entries"]) == 5
    assert trace(live, dataset="cars")["entries"] == []
    assert len(trace(live, word="ANSWER", newest=1)["entries"]) == 5


def test_a_search_goes_on_where_it_stopped(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "LOOKED_AT", 3)
    found, at = trace(live, kind="root"), -1
    assert (found["entries"][0]["kind"], found["looked_at"]) == ("root", 2)
    found = trace(live, newest=1, kind="root")
    while not found["entries"]:
        assert found["looked_at"] != at
        at = found["looked_at"]
        found = trace(live, before=at, kind="root")
    assert found["entries"][0]["seq"] == 1


def test_whoever_waits_for_news_is_told_when_there_is_some(live: Live) -> None:
    head = trace(live)["head"]["seq"]
    began = time.monotonic()
    assert trace(live, after=head, wait=0.5)["entries"] == []
    assert time.monotonic() - began >= 0.5
    found: list[Any] = []
    waiting = threading.Thread(target=lambda: found.append(trace(live, after=head, wait=20)))
    waiting.start()
    time.sleep(0.3)
    live.send("POST", "/datasets/people/freeze", token=live.token("olga", "owner"))
    waiting.join(15)
    assert [entry["text"] for entry in found[0]["entries"]] == ["freeze people"]


def test_what_was_spent_is_told_by_analyst_and_over_time(live: Live) -> None:
    (found,) = live.send("GET", "/spending", token=live.token("olga", "owner")).json["datasets"]
    assert found["analysts"] == [
        {"name": "alice", "spent": "3/10", "cap": None, **NO_DELTA},
        {"name": "bob", "spent": "1/5", "cap": None, **NO_DELTA},
        {"name": "carol", "spent": "0", "cap": "1/4", **NO_DELTA},
    ]
    assert found["keys_delta"] is None
    assert [point["spent"] for point in found["over_time"]] == ["1/10", "1/5", "3/10", "2/5", "1/2"]
    assert live.send("GET", "/spending", token=live.token()).code == "not_allowed"


def test_many_points_in_time_are_few_and_end_where_they_end() -> None:
    spent = watching.Growth()
    for number in range(10_000):
        spent.take(str(number), Fraction(1))
    assert len(spent.points) <= 2 * watching.POINTS
    assert spent.points[-1] == ("9999", Fraction(10_000))
    thinned = list(watching._thinned(spent.points))
    assert watching.POINTS / 2 <= len(thinned) <= 2 * watching.POINTS


def test_a_replay_says_that_all_entries_follow_or_which_does_not(live: Live, tmp_path: Path) -> None:
    auditor = live.token("ann", "auditor")
    found = live.send("POST", "/ledger/verify", token=auditor).json
    assert (found["ok"], found["entries"], found["datasets"]) == (
        True,
        live.house.ledger.head().seq + 1,
        {"people": {"budget": "1", "spent": "1/2"}},
    )
    assert live.send("POST", "/ledger/verify", token=live.token()).code == "not_allowed"
