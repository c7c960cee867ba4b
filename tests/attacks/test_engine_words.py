"""An engine's own words may quote a row: they reach the owner's log, and nothing an analyst can look at."""

import dataclasses
import io
import logging
import os
import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import fpinq as fp
from fpinq.engines import owner
from fpinq.engines.duckdb import DuckDB, engine
from fpinq.engines.spark import Spark
from fpinq.model.plans import RootTable
from fpinq.model.statistics import Records
from fpinq.runtime import ReferenceEngine
from server.live import COUNT, people, serve
from traced import SOURCES, Interrupted, at_line, interrupt

CANARY = "canary-7f3a"
ROWS = [{"name": CANARY, "age": i % 7} for i in range(31_337)]
EXACT = "31337"


def words_of(error: BaseException, seen: set[int] | None = None) -> Iterator[str]:
    """Everything that can be read off an error, and off those it came from."""
    seen = set() if seen is None else seen
    if id(error) in seen:
        return
    seen.add(id(error))
    yield repr(error.args) + str(error) + repr(vars(error)) + repr(getattr(error, "__notes__", ()))
    yield "".join(traceback.format_exception(error))
    yield repr(pickle.dumps((type(error), error.args, vars(error))))
    for frame, _ in traceback.walk_tb(error.__traceback__):
        yield from _locals_of(frame)
    for other in (error.__cause__, error.__context__):
        if other is not None:
            yield from words_of(other, seen)


def _locals_of(frame: FrameType) -> Iterator[str]:
    if frame.f_code.co_filename == __file__:  # the test holds the data itself
        return
    for name, value in frame.f_locals.items():
        with suppress(Exception):  # of what was not finished
            yield f"{name} = {value!r}"


def fails(*given: object, **named: object) -> Any:
    """What an engine might do: the row is in a local, in the message and in what the error came from."""
    row = {"name": CANARY, "exact": int(EXACT)}
    try:
        raise KeyError(CANARY)
    except KeyError:
        raise RuntimeError(f"could not convert {row}")  # noqa: B904 - the context is the point


def refuses(*given: object, **named: object) -> Any:
    try:
        raise ValueError(CANARY)
    except ValueError as error:
        raise fp.BadQuery("no such thing") from error


def quotes_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB's own message, of a cast that fails on a row."""
    lower = engine.lower

    def wrong(*given: Any) -> Any:
        cast = f"SELECT CAST(x AS INTEGER) FROM (SELECT '{CANARY}' AS x UNION ALL SELECT '1')"
        return dataclasses.replace(lower(*given), sql=cast, parameters={})

    monkeypatch.setattr(engine, "lower", wrong)


def runs_out(query: object, statistic: Any, epsilon: object) -> Any:
    raise MemoryError(f"{statistic}")


MEASURING: dict[str, Callable[[Any, pytest.MonkeyPatch], None]] = {
    "duckdb quotes a row": lambda system, patch: quotes_a_row(patch),
    "an engine fails": lambda system, patch: patch.setattr(type(system.engine), "measure", fails),
    "an engine refuses": lambda system, patch: patch.setattr(system.engine, "measure", refuses),
    "the look before fails": lambda system, patch: patch.setattr(engine, "lower", fails),
    "a mechanism runs out": lambda system, patch: patch.setattr(system, "_mechanism", runs_out),
    "a mechanism refuses": lambda system, patch: patch.setattr(system, "_mechanism", refuses),
}


@pytest.mark.parametrize("how", MEASURING)
def test_nothing_of_an_error_of_a_query_holds_a_word_of_the_engine(
    how: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], recwarn: Any
) -> None:
    table = fp.protect(ROWS, budget=1, engine=DuckDB(), schema={"name": "string", "age": "int64"})
    MEASURING[how](table.facts.system, monkeypatch)
    with pytest.raises(fp.EngineError) as raised:
        table.noisy_count(0.5)
    words = list(words_of(raised.value))
    assert not [word for word in words if CANARY in word or EXACT in word]
    assert raised.value.__context__ is None
    assert CANARY not in "".join(capfd.readouterr()) + repr([str(w.message) for w in recwarn])
    assert table.remaining == 0.5  # and the charge stands


@pytest.mark.parametrize("engine", [DuckDB, ReferenceEngine, Spark])
@pytest.mark.parametrize("door", ["measure", "add_root", "add_persons"])
def test_every_door_of_every_engine_speaks_our_words_only(
    engine: Any, door: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = engine()
    inside = ["check_unchanged", "_check_new", "_add", "_lock", "_database", "_pins"]
    for name in inside:
        if name in vars(opened):
            monkeypatch.setattr(opened, name, Breaking())
        elif hasattr(engine, name):
            monkeypatch.setattr(engine, name, fails)
    asked = {
        "measure": lambda: opened.measure(RootTable("x"), None, [Records()]),
        "add_root": lambda: opened.add_root("x", Breaking()),
        "add_persons": lambda: opened.add_persons("x", {"t": Breaking()}, unit="a"),
    }[door]
    with pytest.raises(fp.FpinqError) as raised:
        asked()
    assert not [word for word in words_of(raised.value) if CANARY in word]
    assert isinstance(raised.value, fp.EngineError if door == "measure" else fp.BadData)


class Breaking:
    """Fails whatever is done with it, and quotes a row."""

    to_pylist = __enter__ = __getitem__ = __len__ = __iter__ = fails

    def __exit__(self, *given: object) -> None: ...


def no_text() -> pa.Array:
    offsets, text = pa.py_buffer(b"\0\0\0\0\x0c\0\0\0"), pa.py_buffer(CANARY.encode() + b"\xff")
    return pa.StringArray.from_buffers(1, offsets, text)


FRAMES: dict[str, Callable[[], Any]] = {
    "rows of several types": lambda: [{"a": CANARY}, {"a": 1}],
    "rows of no type": lambda: [{"a": object()}, {"a": CANARY}],
    "a huge integer": lambda: [{"a": 10**40}, {"a": CANARY}],
    "objects": lambda: pd.DataFrame({"a": [CANARY, 1, datetime(2020, 1, 1)]}),
    "lists": lambda: pd.DataFrame({"a": [[CANARY], [1]]}),
    "polars objects": lambda: pl.DataFrame({"a": [CANARY, None]}, schema={"a": pl.Object}),
    "arrow bytes": lambda: pa.table({"a": pa.array([CANARY.encode() + b"\xff"], pa.binary())}),
    "arrow that is no text": lambda: pa.table({"a": no_text()}),
}


@pytest.mark.parametrize("place", ["noise", "runtime/mechanisms"])
def test_an_interruption_shows_nothing_of_what_it_interrupted(place: str) -> None:
    """Ctrl-C while noise was drawn left frames that hold exact integers, which notebooks show."""
    exact = 31_337_000 + 17
    data = fp.protect([{"n": exact}], budget=10**9, schema={"n": "int64"})

    def ask() -> object:
        return data.noisy_sum(1, "n", bounds=(0, 10**12))

    step, where = 0, f"{SOURCES}/{place}"
    while True:
        step += 1
        try:
            if not at_line(step, ask, interrupt, where=where, but=("with ",)):
                break
        except (Interrupted, fp.EngineError) as error:
            for words in words_of(error):
                assert str(exact) not in words
    assert step > 5


@pytest.mark.parametrize("schema", [None, {"a": "int64"}, {"a": "timestamp"}])
@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("engine", ["duckdb", "reference"])
def test_data_that_cannot_be_protected_is_refused_in_our_words(
    tmp_path: Path, engine: str, frame: str, schema: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    refused: list[fp.FpinqError] = []
    for ledger in (None, tmp_path / "ledger"):
        try:
            fp.protect(FRAMES[frame](), budget=1, name="people", engine=engine, schema=schema, ledger=ledger)
        except fp.FpinqError as error:
            refused.append(error)
    for error in refused:
        assert CANARY not in str(error) + repr(error.args) + "".join(traceback.format_exception(error))
        assert error.__cause__ is error.__context__ is None
    assert CANARY not in "".join(capfd.readouterr())


def test_a_file_that_cannot_be_read_is_refused_in_our_words(tmp_path: Path) -> None:
    damaged = tmp_path / "people.parquet"
    damaged.write_bytes(b"PAR1" + CANARY.encode() * 100 + b"PAR1")
    with pytest.raises(fp.BadData) as raised:
        fp.protect(damaged, budget=1)
    assert not [word for word in words_of(raised.value) if CANARY in word]
    assert raised.value.__context__ is None


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
def test_a_server_tells_a_reference_only(
    tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with serve(tmp_path, people(1, ROWS, engine=engine)) as live:
        token = live.token()
        session = live.session(token)
        held = live.house._engines[engine]
        monkeypatch.setattr(type(held), "measure", fails)
        told = live.act(session, token, COUNT)
    assert told.code == "engine_error"
    assert CANARY.encode() not in told.body
    assert CANARY not in "".join(capfd.readouterr())


# ── the owner's log ──────────────────────────────────────────────────────────────────

PROGRAM = f"""
import sys, logging
{{setup}}
import fpinq as fp
def fails(*given): raise RuntimeError("{CANARY}")
table = fp.protect([{{{{"a": 1}}}}], budget=1, engine="reference", schema={{{{"a": "int64"}}}})
table.facts.system.engine.measure = fails
try:
    table.noisy_count(0.5)
except fp.EngineError as error:
    print("failed", error.reference)
"""


def run(setup: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """An analyst's program in a process of its own: under pytest logging is set up already."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.format(setup=setup)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **(environment or {})},
    )


@pytest.mark.parametrize(
    "setup",
    [
        "",
        "logging.basicConfig(level=logging.DEBUG)",
        "logging.getLogger('fpinq').addHandler(logging.StreamHandler(sys.stdout))",
    ],
)
def test_a_program_s_own_logging_does_not_get_the_owner_s_log(setup: str) -> None:
    """With none set up, logging's last resort printed the row to standard error."""
    done = run(setup)
    assert "failed" in done.stdout
    assert CANARY not in done.stdout + done.stderr


def test_the_owner_says_where_the_log_goes_and_finds_the_reference_there(tmp_path: Path) -> None:
    kept = tmp_path / "owner.log"
    done = run("logging.basicConfig(level=logging.DEBUG)", {owner.OWNER_LOG: str(kept)})
    reference = done.stdout.split()[-1]
    assert CANARY not in done.stdout + done.stderr
    (line,) = (line for line in kept.read_text().splitlines() if reference in line)
    assert CANARY in line
    assert kept.stat().st_mode & 0o077 == 0


def test_an_owner_s_log_that_cannot_be_written_prints_nothing_of_what_it_would_hold(tmp_path: Path) -> None:
    done = run("", {owner.OWNER_LOG: str(tmp_path / "nowhere" / "owner.log")})
    assert "cannot be written" in done.stderr
    assert CANARY not in done.stdout + done.stderr


def test_a_handler_of_the_owner_s_logger_gets_what_engines_say() -> None:
    said = io.StringIO()
    handler = logging.StreamHandler(said)
    logger = logging.getLogger("fpinq.owner")
    logger.addHandler(handler)
    try:
        reference = owner.noted(RuntimeError(CANARY))
    finally:
        logger.removeHandler(handler)
    assert reference in said.getvalue()
    assert CANARY in said.getvalue()


def test_a_row_that_an_engine_quotes_gives_no_orders_to_the_owner_s_terminal(tmp_path: Path) -> None:
    file = owner.OwnersFile(str(tmp_path / "owner.log"))
    stream = io.StringIO()
    screen = logging.StreamHandler(stream)
    logger = logging.getLogger("fpinq.owner")
    before = logger.propagate
    try:
        owner.write_to(file)
        owner.write_to(screen)
        owner.noted(ValueError("row 'a\x1b[2J\x9b31m'"))
    finally:
        logger.removeHandler(file)
        logger.removeHandler(screen)
        logger.propagate = before
        file.close()
    for text in (stream.getvalue(), (tmp_path / "owner.log").read_text("utf-8")):
        assert "a\\x1b[2J\\x9b31m" in text
        assert not {"\x1b", "\x9b"} & set(text)
