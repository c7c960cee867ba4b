"""Versions on HTTP: who cannot be understood is told so, on both sides; who says nothing is of the first."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

import fpinq as fp
from fpinq.ledger import wire
from fpinq.server.versions import check_spoken
from server.live import COUNT, Live, people, serve

NEWER = str(wire.VERSION + 1)


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    with serve(tmp_path, people(1)) as found:
        yield found


def test_a_client_that_says_no_version_is_served(live: Live) -> None:
    token = live.token()
    reply = live.act(live.session(token), token, COUNT)
    assert (reply.status, {k.lower(): v for k, v in reply.headers.items()}["fpinq-wire"]) == (200, "1")


@pytest.mark.parametrize("path", ["/sessions", "/datasets", "/nowhere", "/healthz", "/sessions/x/actions"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_every_reply_says_its_version(live: Live, method: str, path: str) -> None:
    reply = live.send(method, path)
    assert {k.lower(): v for k, v in reply.headers.items()}["fpinq-wire"] == str(wire.VERSION)


def test_a_newer_client_is_refused_before_anything_is_charged(live: Live) -> None:
    token = live.token()
    session = live.session(token)
    body = {"request_id": "r", "action": COUNT}
    reply = live.send("POST", f"/sessions/{session}/actions", body, token, Fpinq_Wire=NEWER)
    assert (reply.status, reply.code) == (400, "other_version")
    assert reply.json["error"]["fields"] == {"client": wire.VERSION + 1, "server": wire.VERSION}
    assert live.left() == 1
    assert 'fpinq_refusals_total{code="other_version"} 1' in live.send("GET", "/metrics").body.decode()


def test_a_newer_client_raises_what_the_server_said(live: Live) -> None:
    table = live.connect()["people"]
    http = table.facts.system._http
    http._headers[wire.HEADER] = NEWER
    with pytest.raises(fp.OtherVersion, match="ask its owner to upgrade") as raised:
        table.noisy_count(0.5)
    assert (raised.value.client, raised.value.server) == (wire.VERSION + 1, wire.VERSION)
    http._headers[wire.HEADER] = str(wire.VERSION)
    assert table.noisy_count(0.5).charged == Fraction(1, 2)


def test_a_newer_server_is_refused_by_the_client(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = live.connect()
    monkeypatch.setattr("fpinq.server.versions._SAID", (b"fpinq-wire", NEWER.encode()))
    with pytest.raises(fp.OtherVersion, match="install a newer one"):
        catalog["people"].noisy_count(0.5)


@pytest.mark.parametrize("said", [b"", b"x", b"-1", b"1.0", b"9" * 5000, "²".encode("latin-1")])
def test_what_is_no_version_is_bad_wire(said: bytes) -> None:
    with pytest.raises(fp.BadWire):
        check_spoken(said)


@pytest.mark.parametrize("said", ["x", "", "²", "9" * 5000, "1"])
def test_a_reply_with_no_readable_version_is_taken_as_of_the_first(said: str) -> None:
    from fpinq.client.remote import check_spoken as check_reply

    check_reply(said)
