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

from fpinq.ledger.errors import RequestReused
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
# So many characters of questions and answers are told at once, or one that is longer.
PAGE_CHARACTERS = 2**22
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
        """Note a question before it is asked; the one of this request id, if there is one: see `asked`."""
        added = self._connection().execute(
            "INSERT OR IGNORE INTO questions (ledger, analyst, request, question, asked_at)"
            " VALUES (?, ?, ?, ?, ?)",
            (self._ledger, analyst, request, json.dumps(question), self._clock()),
        )
        return None if added.rowcount else self.asked(analyst, request, question)

    def asked(self, analyst: str, request: str, question: dict[str, Any]) -> Kept | None:
        """This question, if it was asked before; RequestReused if another was, under its request id."""
        known = self.find(analyst, request)
        if known is not None and known.question != question:
            raise RequestReused(request)
        return known

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

    def listed(self, analyst: str, before: int | None, limit: int) -> tuple[list[Kept], bool]:
        """An analyst's own questions, newest first, as many as are told at once; whether there are more."""
        rows = self._connection().execute(
            f"SELECT {_COLUMNS} FROM questions WHERE ledger = ? AND analyst = ? AND number < ?"
            " ORDER BY number DESC LIMIT ?",
            (self._ledger, analyst, 2**62 if before is None else before, limit + 1),
        )
        found: list[Kept] = []
        characters = 0
        for row in rows:
            # An answer that is not shown yet has no length either.
            characters += len(row[2]) + (len(row[4]) if self._is_shown(row) else 0)
            if len(found) == limit or (found and characters > PAGE_CHARACTERS):
                return found, True
            found.append(self._kept(row))
        return found, False

    def _is_shown(self, row: tuple[Any, ...]) -> bool:
        *_, reply, shown_at = row
        return reply is not None and shown_at <= self._clock()

    def _kept(self, row: tuple[Any, ...]) -> Kept:
        number, request, question, asked_at, reply, _ = row
        answer = json.loads(reply) if self._is_shown(row) else None
        return Kept(number, request, json.loads(question), asked_at, answer)

    def _connection(self) -> sqlite3.Connection:
        found = getattr(self._local, "connection", None)
        if found is None:
            found = self._local.connection = sqlite3.connect(self._path, timeout=10, isolation_level=None)
            found.execute("PRAGMA journal_mode = WAL")
        return found
