"""What was asked, and what came of it: for whoever asked, so that looking again costs nothing.

A file of its own beside the tokens: nothing is decided by it, and the guarantee does
not rest on it. What was charged and released is in the ledger; if this file is lost, so is a history.
"""

import json
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from threading import local
from typing import Any, NamedTuple

from fpinq.model.errors import ProgramError
from fpinq.server.tokens import keep_private
from fpinq.server.told import AnswerTold

_SCHEMA = """
CREATE TABLE IF NOT EXISTS questions (
    number INTEGER PRIMARY KEY,
    ledger TEXT NOT NULL,
    analyst TEXT NOT NULL,
    request TEXT NOT NULL,
    question TEXT NOT NULL,
    asked_at REAL NOT NULL,
    reply TEXT,
    shown_at REAL,
    UNIQUE (ledger, analyst, request)
)
"""
_COLUMNS = "number, request, question, asked_at, reply, shown_at"


class Kept(NamedTuple):
    """A question that was asked; its answer is None as long as there is none to be shown."""

    number: int
    request_id: str
    question: dict[str, Any]
    asked_at: float
    answer: AnswerTold | None


class Questions:
    """The questions of everybody, each their own."""

    def __init__(self, path: str | Path, ledger: str, clock: Callable[[], float] = time.time) -> None:
        self._path, self._ledger, self._clock = str(path), ledger, clock
        self._local = local()
        keep_private(self._path, "the questions")
        try:
            self._connection().executescript(_SCHEMA)
        except sqlite3.Error as error:
            raise ProgramError(f"the questions cannot be kept at {self._path!r}: {error}") from None

    def begin(self, analyst: str, request: str, question: dict[str, Any]) -> Kept | None:
        """Note a question before it is asked; the one of this request id, if there is one."""
        added = self._connection().execute(
            "INSERT OR IGNORE INTO questions (ledger, analyst, request, question, asked_at)"
            " VALUES (?, ?, ?, ?, ?)",
            (self._ledger, analyst, request, json.dumps(question), self._clock()),
        )
        return None if added.rowcount else self.find(analyst, request)

    def forget(self, analyst: str, request: str) -> None:
        """A question that was refused before anything was done: as if it had not been asked."""
        self._connection().execute(
            "DELETE FROM questions WHERE ledger = ? AND analyst = ? AND request = ? AND reply IS NULL",
            (self._ledger, analyst, request),
        )

    def answer(self, analyst: str, request: str, answer: AnswerTold, wait_seconds: float) -> None:
        """Note an answer; it is shown from the time on at which the reply leaves, and not before."""
        self._connection().execute(
            "UPDATE questions SET reply = ?, shown_at = ? WHERE ledger = ? AND analyst = ? AND request = ?"
            " AND reply IS NULL",
            (json.dumps(answer), self._clock() + wait_seconds, self._ledger, analyst, request),
        )

    def find(self, analyst: str, request: str) -> Kept | None:
        """An analyst's question of this request id."""
        found = self._connection().execute(
            f"SELECT {_COLUMNS} FROM questions WHERE ledger = ? AND analyst = ? AND request = ?",
            (self._ledger, analyst, request),
        )
        return next(map(self._kept, found), None)

    def listed(self, analyst: str, before: int | None, limit: int) -> list[Kept]:
        """An analyst's own questions, newest first."""
        found = self._connection().execute(
            f"SELECT {_COLUMNS} FROM questions WHERE ledger = ? AND analyst = ? AND number < ?"
            " ORDER BY number DESC LIMIT ?",
            (self._ledger, analyst, 2**62 if before is None else before, limit),
        )
        return list(map(self._kept, found))

    def _kept(self, row: tuple[Any, ...]) -> Kept:
        number, request, question, asked_at, reply, shown_at = row
        shown = reply is not None and shown_at <= self._clock()
        return Kept(number, request, json.loads(question), asked_at, json.loads(reply) if shown else None)

    def _connection(self) -> sqlite3.Connection:
        found = getattr(self._local, "connection", None)
        if found is None:
            found = self._local.connection = sqlite3.connect(self._path, timeout=10, isolation_level=None)
            found.execute("PRAGMA journal_mode = WAL")
        return found
