"""Who may ask what, and where."""

import json
import os
import re
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import hypothesis
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.routing import Match, Route

import fpinq as fp
from fpinq.ledger.errors import Frozen
from fpinq.model.errors import ProgramError
from fpinq.runtime.refusals import FAILURES
from fpinq.server.app import session_of
from fpinq.server.openapi import _EXAMPLES
from fpinq.server.tokens import Tokens
from server.live import COUNT, Live, people, serve


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    with serve(tmp_path, people(1, caps={"carol": Fraction(1, 4)})) as found:
        yield found


def test_public_addresses_need_no_token(live: Live) -> None:
    assert live.send("GET", "/healthz").json == {"ok": True}
    assert live.send("GET", "/limits").json["body_bytes"] == 1_000_000
    assert live.send("GET", "/metrics").status == 200
    assert live.send("GET", "/openapi.json").status == 200


@pytest.mark.parametrize("path", ["/datasets", "/datasets/people", "/trace", "/sessions/x/tables/people"])
def test_everything_else_needs_one(live: Live, path: str) -> None:
    assert (live.send("GET", path).status, live.send("GET", path).code) == (401, "not_authenticated")
    assert live.send("GET", path, token="fpq_00_00").code == "not_authenticated"


def test_each_role_may_do_its_own(live: Live) -> None:
    analyst, auditor, owner = (live.token(role, role) for role in ("analyst", "auditor", "owner"))
    session = live.session(analyst)
    assert live.act(session, analyst, COUNT).status == 200
    assert live.send("GET", "/trace", token=auditor).status == 200
    assert live.send("GET", "/trace", token=owner).status == 200
    assert live.send("POST", "/datasets/people/freeze", token=owner).status == 200
    for method, path, token in [
        ("GET", "/trace", analyst),
        ("POST", "/datasets/people/unfreeze", analyst),
        ("POST", "/datasets/people/unfreeze", auditor),
        ("POST", "/sessions", auditor),
        ("POST", "/sessions", owner),
        ("POST", f"/sessions/{session}/actions", auditor),
    ]:
        reply = live.send(method, path, token=token)
        assert (reply.status, reply.code) == (403, "not_allowed"), (method, path)


def test_the_catalog_says_what_is_public(live: Live) -> None:
    (found,) = live.send("GET", "/datasets", token=live.token()).json["datasets"]
    assert found == {
        "name": "people",
        "unit": None,
        "block_of": None,
        "notion": "epsilon",
        "budget": "1",
        "remaining": "1",
        "promised": "1",
        "keys_delta": None,
        "remaining_delta": None,
        "frozen": False,
        "description": "",
        "tables": [
            {
                "name": "people",
                "description": "",
                "descriptions": {},
                "rows_per_unit": None,
                "rows_at_most": 100_000,
                "columns": {},
                "schema": [["age", "int64"], ["gender", "int64"], ["name", "string"]],
            }
        ],
    }
    assert live.send("GET", "/datasets/poeple", token=live.token()).code == "unknown_data_set"


def test_a_frozen_data_set_answers_nobody_at_once_and_charges_nothing(live: Live) -> None:
    table = live.connect()["people"]
    table.noisy_count(0.1)
    owner = live.token("olga", "owner")
    assert live.send("POST", "/datasets/people/freeze", token=owner).json["frozen"] is True
    with pytest.raises(Frozen):
        table.noisy_count(0.1)
    assert table.remaining == Fraction(9, 10)
    live.send("POST", "/datasets/people/unfreeze", token=owner)
    table.noisy_count(0.1)
    assert table.remaining == Fraction(8, 10)


def test_a_token_is_shown_once_and_kept_as_a_hash(live: Live, tmp_path: Path) -> None:
    token = live.token()
    secret = token.split("_")[2]
    assert secret not in repr(live.house.tokens.listed())
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("tokens*"))
    assert secret.encode() not in stored
    assert bytes.fromhex(secret) not in stored
    assert (tmp_path / "tokens").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("mask", [0o022, 0o000])
def test_nobody_else_reads_the_tokens_or_what_sqlite_keeps_beside_them(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        tokens = Tokens(tmp_path / "tokens")
        tokens.create("alice", "analyst")
        modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(["tokens", "tokens-wal", "tokens-shm"], 0o600)


def test_tokens_that_others_can_read_are_taken_from_them(tmp_path: Path) -> None:
    held = Tokens(tmp_path / "tokens")  # keeps what SQLite has beside the file
    held.create("alice", "analyst")
    for path in tmp_path.iterdir():
        path.chmod(0o644)
    Tokens(tmp_path / "tokens")
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


def test_where_no_tokens_can_be_kept_is_said(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match=r"tokens cannot be kept at .*No such file"):
        Tokens(tmp_path / "nowhere" / "tokens")
    (tmp_path / "people.csv").write_text("age,gender\n" * 100)
    with pytest.raises(ProgramError, match=r"tokens cannot be kept at .*not a database"):
        Tokens(tmp_path / "people.csv")


def test_a_revoked_token_ends_at_once(live: Live) -> None:
    token = live.token()
    table = fp.connect(live.url, token)["people"]
    table.noisy_count(0.1)
    live.house.tokens.revoke(token.split("_")[1])
    with pytest.raises(fp.NotAuthenticated):
        table.noisy_count(0.1)
    assert live.left() == Fraction(9, 10)


def test_a_token_expires(tmp_path: Path) -> None:
    now = [1000.0]
    tokens = Tokens(tmp_path / "tokens", clock=lambda: now[0])
    token = tokens.create("alice", "analyst", seconds=60)
    assert tokens.bearer(f"Bearer {token}").name == "alice"
    now[0] = 1060.0
    with pytest.raises(fp.NotAuthenticated):
        tokens.bearer(f"Bearer {token}")


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer x", "Basic {}", "Bearer {}0", "Bearer fpq__", "Bearer ￿_é_", "{}"]
)
def test_every_wrong_header_is_refused_in_the_same_words(tmp_path: Path, header: str | None) -> None:
    tokens = Tokens(tmp_path / "tokens")
    token = tokens.create("alice", "analyst")
    with pytest.raises(fp.NotAuthenticated) as refused:
        tokens.bearer(None if header is None else header.format(token))
    with pytest.raises(fp.NotAuthenticated) as nobody:
        tokens.bearer("Bearer fpq_000000000000_" + "0" * 64)
    assert str(refused.value) == str(nobody.value)


def test_the_trace_is_the_chain_of_all_that_was_done(live: Live) -> None:
    token = live.token()
    session = live.session(token)
    live.act(session, token, COUNT, "once")
    auditor = live.token("ann", "auditor")
    entries = live.send("GET", "/trace", token=auditor).json["entries"]
    assert [entry["kind"] for entry in entries] == ["ledger", "root", "action", "answer"]
    assert entries[2]["analyst"] == "alice"
    assert entries[2]["charged"] == {"people": "1/10"}
    assert all(later["previous"] == earlier["hash"] for earlier, later in pairwise(entries))
    rest = live.send("GET", "/trace?after=1&limit=1", token=auditor).json["entries"]
    assert rest == entries[2:3]
    assert live.send("GET", "/trace?limit=1000000", token=auditor).code == "bad_wire"


def test_an_analyst_s_cap_holds_over_all_their_sessions(live: Live) -> None:
    first, second = live.connect("carol")["people"], live.connect("carol")["people"]
    first.noisy_count(0.2)
    assert second.remaining == Fraction(1, 20)
    with pytest.raises(fp.BudgetExceeded):
        second.noisy_count(0.1)
    assert live.connect("dave")["people"].remaining == Fraction(8, 10)


def test_the_examples_of_openapi_work(live: Live) -> None:
    written = live.send("GET", "/openapi.json").json
    described = written["paths"]["/sessions/{session}/actions"]["post"]
    examples = described["requestBody"]["content"]["application/json"]["examples"]
    assert examples.keys() == _EXAMPLES.keys()
    token = live.token()
    session = live.session(token)
    for name, example in examples.items():
        reply = live.send("POST", f"/sessions/{session}/actions", example["value"], token)
        expected = described["responses"]["200"]["content"]["application/json"]["examples"][name]["value"]
        assert reply.status == 200, reply.body
        assert reply.json["observation"].keys() == expected["observation"].keys()
        assert reply.json["observation"]["op"] == expected["observation"]["op"]
    for path, operations in written["paths"].items():
        for operation in operations.values():
            assert operation["summary"], path


def test_metrics_count_what_was_asked_and_nothing_of_the_data(live: Live) -> None:
    token = live.token()
    session = live.session(token)
    live.act(session, token, COUNT)
    live.act(session, token, {"op": "nonsense"})
    text = live.send("GET", "/metrics").body.decode()
    assert 'fpinq_actions_total{op="query"} 1' in text
    assert 'fpinq_refusals_total{code="bad_wire"} 1' in text
    assert 'fpinq_budget_remaining{dataset="people"} 0.9' in text
    for line in text.splitlines():
        assert line.startswith("#") or re.fullmatch(r'\w+\{\w+="\w+"\} [0-9.e+-]+', line), line


def test_unknown_addresses_have_a_code_too(live: Live) -> None:
    assert live.send("GET", "/nowhere").code == "not_found"
    asked = live.send("GET", "/questions/never", token=live.token())
    assert (asked.status, asked.code) == (404, "not_found")
    assert "none of your questions has this request id" in asked.json["error"]["message"]
    refused = live.send("DELETE", "/datasets")
    assert refused.code == "method_not_allowed"
    assert "no such method" in refused.json["error"]["message"]
    assert refused.headers["allow"] == "GET"


def test_codes_are_unique_and_every_error_has_one() -> None:
    codes = [failure.code for failure in FAILURES.values()]
    assert len(set(codes)) == len(codes)
    for failure in FAILURES.values():
        assert 400 <= failure.status < 600
        assert 1 <= failure.exit_code < 126


def test_replies_are_json_and_say_not_to_be_kept(live: Live) -> None:
    token = live.token()
    reply = live.act(live.session(token), token, COUNT)
    assert reply.headers["content-type"] == "application/json"
    assert reply.headers["cache-control"] == "no-store"
    every = {"content-type", "content-length", "cache-control", "fpinq-wire"}
    assert {name.lower() for name in reply.headers} == every
    assert json.dumps(reply.json, sort_keys=True, separators=(",", ":")).encode() == reply.body


PIECES = ["/", "/sessions/", "/actions", "sessions", "actions", "x", "é", "%2f", "..", "\n", " ", "?"]


@given(
    method=st.sampled_from(["POST", "GET", "PUT", "post", "OPTIONS"]),
    pieces=st.lists(st.sampled_from(PIECES), max_size=8),
    root=st.sampled_from(["", "", "", "/sessions"]),
)
@hypothesis.example("POST", ["/sessions/", "x", "/actions"], "")
@settings(max_examples=500, deadline=None)
def test_what_is_taken_for_an_action_is_what_the_route_of_actions_takes(
    method: str, pieces: list[str], root: str
) -> None:
    """They are told from other requests before a framework is asked: no others, and by the same names."""
    scope = {"type": "http", "method": method, "path": "".join(pieces), "root_path": root}
    route = Route("/sessions/{session}/actions", lambda request: None, methods=["POST"])
    match, found = route.matches(scope)
    session = session_of(scope)
    if session is not None:
        assert (match, found["path_params"]) == (Match.FULL, {"session": session})
    elif match is Match.FULL:  # then the framework finds the route
        assert root or scope["path"].endswith("\n")
