"""Connections of strangers: told at the quantum what is not understood, and bounded in all they hold."""

import socket
import time
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import pytest

from fpinq.server import connections
from fpinq.server.connections import Connection
from server.live import Live, people, serve

NOT_UNDERSTOOD = {
    "no HTTP": b"HELO example.org\r\n\r\n",
    "a control character": b"GET /\x01 HTTP/1.1\r\nHost: x\r\n\r\n",
    "an address that is none": b"GET http://[ HTTP/1.1\r\nHost: x\r\n\r\n",
    "bytes that are no text": b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
    "a length that is none": b"POST /sessions HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n",
    "chunks that are none": b"POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "a web socket": (
        b"GET /x/actions HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    ),
}


def opened(live: Live) -> socket.socket:
    return socket.create_connection(("127.0.0.1", live.port), timeout=30)


@pytest.mark.parametrize("sent", NOT_UNDERSTOOD)
def test_what_is_not_understood_is_told_so_at_the_quantum(tmp_path: Path, sent: str) -> None:
    quantum = Fraction(3, 10)
    with serve(tmp_path, people(1), quantum_seconds=quantum) as live, opened(live) as stranger:
        began = time.monotonic()
        stranger.sendall(NOT_UNDERSTOOD[sent])
        told = stranger.recv(1000)
        assert time.monotonic() - began >= quantum - Fraction(1, 100)
        assert told.split()[1] in (b"400", b"404")


def test_nobody_is_told_to_go_on_before_the_quantum(tmp_path: Path) -> None:
    quantum = Fraction(3, 10)
    with serve(tmp_path, people(1), quantum_seconds=quantum) as live, opened(live) as asking:
        token = live.token()
        head = (
            f"POST /sessions/x/actions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
            "Content-Length: 2\r\nExpect: 100-continue\r\n\r\n"
        )
        began = time.monotonic()
        asking.sendall(head.encode())
        asking.settimeout(0.2)
        with pytest.raises(TimeoutError):
            asking.recv(1)
        asking.settimeout(30)
        asking.sendall(b"{}")
        assert asking.recv(1000).split()[1] in (b"400", b"404")
        assert time.monotonic() - began >= quantum - Fraction(1, 100)


def test_a_head_that_dribbles_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.5)
    with serve(tmp_path, people(1)) as live, opened(live) as stranger:
        stranger.settimeout(0.1)
        stranger.sendall(b"GET /healthz HTTP/1.1\r\n")
        for _ in range(300):
            try:
                stranger.sendall(b"X: y\r\n")
                if stranger.recv(1) == b"":
                    return
            except TimeoutError:
                continue
            except OSError:
                return
        pytest.fail("a head without an end was read for half a minute")


def test_a_head_without_an_end_is_not_kept(tmp_path: Path) -> None:
    with serve(tmp_path, people(1)) as live, opened(live) as stranger:
        sent = 0
        stranger.sendall(b"GET /healthz HTTP/1.1\r\n")
        with suppress(OSError):  # closed on the other side
            while sent < 50_000_000:
                stranger.sendall(b"X: " + b"y" * 16_000 + b"\r\n")
                sent += 16_000
        assert sent < 50_000_000


def test_who_is_silent_makes_way_for_who_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Connection, "at_most", 5)
    with serve(tmp_path, people(1)) as live:
        silent = [opened(live) for _ in range(20)]
        try:
            assert live.send("GET", "/healthz").status == 200
        finally:
            for each in silent:
                each.close()


def test_half_of_the_files_are_for_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Connection, "at_most", 1)
    monkeypatch.setattr(connections.resource, "getrlimit", lambda what: (100, 100))
    Connection.configure(0.0)
    assert Connection.at_most == 50
