"""Connections, before and between requests: nobody has shown a token yet, so nobody may hold much.

A connection has a few seconds and some kilobytes to say what it asks for. What
is not HTTP is told so at the quantum, like everything else. Half of the files
that this process may have open are for connections, the others for data; where
there are too many, the one that has been silent longest makes way.
"""

import resource
from asyncio import TimerHandle, Transport
from contextlib import suppress
from time import monotonic
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

HEAD_SECONDS = 10.0
HEAD_BYTES = 2**16
# Where a machine sets no limit of its own.
MOST_FILES = 2**16


def _bounded(limit: int) -> int:
    return MOST_FILES if limit == resource.RLIM_INFINITY else min(limit, MOST_FILES)


class Connection(AutoHTTPProtocol):  # type: ignore[misc, valid-type]  # uvicorn's own is one of two
    """uvicorn's connection, with bounds."""

    quantum_seconds = 0.0
    at_most = 500

    _asking: TimerHandle | None = None
    _bytes = 0

    @classmethod
    def configure(cls, quantum_seconds: float) -> None:
        """Bounds for this process."""
        soft, hard = (_bounded(limit) for limit in resource.getrlimit(resource.RLIMIT_NOFILE))
        if hard > soft:
            with suppress(OSError, ValueError):  # a machine may not allow what it says it does
                resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
                soft = hard
        cls.quantum_seconds, cls.at_most = quantum_seconds, max(1, soft // 2)

    def connection_made(self, transport: Transport) -> None:
        """Somebody is there, and has so long to ask."""
        super().connection_made(transport)
        self._since = monotonic()
        self._expect_a_head()
        if len(self.connections) > self.at_most:
            self._make_way()

    def _make_way(self) -> None:
        """Close the connection that has been silent longest: this one, if all others are being answered."""
        there = [other for other in self.connections if not other.transport.is_closing()]
        if len(there) > self.at_most:
            silent = [other for other in there if not other._is_answering()]
            min(silent, key=lambda other: other._since).transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody is there."""
        self._stop_expecting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Some bytes of a request, or of several."""
        super().data_received(data)
        self._promise_nothing()
        if self._is_answering():
            self._stop_expecting()
            return
        self._since = monotonic()
        self._bytes += len(data)
        if self._bytes > HEAD_BYTES:
            self.transport.close()
        elif self._asking is None:
            self._expect_a_head()

    def _promise_nothing(self) -> None:
        """Nobody is told to go on: that would be a reply before the quantum."""
        for cycle in (self.cycle, *(waiting for waiting, *_ in getattr(self, "pipeline", ()))):
            if cycle is not None:
                cycle.waiting_for_100_continue = False

    def send_400_response(self, msg: str) -> None:
        """What came is not HTTP."""
        self._stop_expecting()
        self.flow.pause_reading()
        self.loop.call_later(self.quantum_seconds, self._refuse, msg)

    def _refuse(self, msg: str) -> None:
        if not self.transport.is_closing():
            super().send_400_response(msg)

    def _is_answering(self) -> bool:
        cycle: Any = self.cycle
        return cycle is not None and not cycle.response_complete

    def _expect_a_head(self) -> None:
        self._asking = self.loop.call_later(HEAD_SECONDS, self._close_unless_answering)

    def _stop_expecting(self) -> None:
        self._bytes = 0
        if self._asking is not None:
            self._asking.cancel()
            self._asking = None

    def _close_unless_answering(self) -> None:
        self._asking = None
        if not self._is_answering():
            self.transport.close()
