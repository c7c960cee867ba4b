"""Memory and threads: what an owner says DuckDB is told; nonsense is refused with what to write."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fpinq as fp
from fpinq.client import systems
from fpinq.engines.duckdb import DuckDB
from fpinq.engines.registry import KINDS
from fpinq.engines.resources import MEMORY_AT_LEAST, Resources, resources
from fpinq.model.errors import ProgramError
from fpinq.model.plans import RootTable
from fpinq.model.statistics import Records
from fpinq.server import config


@pytest.fixture(autouse=True)
def no_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process in which nothing was protected yet."""
    monkeypatch.setattr(systems, "_systems", {})
    monkeypatch.setattr(systems, "_limits", {})


def protect(**said: Any) -> Any:
    return fp.protect([{"a": 1}], budget=1, schema={"a": "int64"}, **said)


def told(engine: Any) -> tuple[int, int]:
    """What DuckDB takes for its limits: memory in MiB, threads."""
    asked = "SELECT current_setting('memory_limit'), current_setting('threads')"
    ((memory, threads),) = engine._database.connection.execute(asked).fetchall()
    amount, unit = memory.split()
    return round(float(amount) * {"MiB": 1, "GiB": 1024}[unit]), threads


def test_what_protect_is_told_duckdb_is_told() -> None:
    assert told(protect(memory_limit="256 MiB", threads=1).facts.system.engine) == (256, 1)


def test_what_is_not_said_duckdb_decides() -> None:
    engine = DuckDB()
    engine.add_root("t", [{"a": 1}])
    plain = duckdb.connect()
    asked = "SELECT current_setting('memory_limit'), current_setting('threads')"
    assert engine._database.connection.execute(asked).fetchall() == plain.execute(asked).fetchall()
    engine.close()


def test_limits_hold_for_the_database_that_new_files_need(tmp_path: Path) -> None:
    engine = DuckDB(memory_limit=MEMORY_AT_LEAST, threads=1)
    for name in ("a", "b"):
        duckdb.sql(f"COPY (SELECT range AS x FROM range(1000)) TO '{tmp_path / name}.parquet'")
        engine.add_root(name, tmp_path / f"{name}.parquet")
        assert told(engine) == (128, 1)
        assert engine.measure(RootTable(name), None, [Records()]) == [{0: 1000}]
    engine.close()


@pytest.mark.parametrize(
    ("written", "bytes_"),
    [
        ("2GB", 2 * 10**9),
        ("4 GiB", 4 * 2**30),
        ("512mb", 512 * 10**6),
        ("1.5GiB", 3 * 2**29),
        (" 1tb ", 10**12),
        ("200000 KiB", 200_000 * 1024),
        (2**30, 2**30),
    ],
)
def test_an_amount_of_memory_is_written_in_several_ways(written: object, bytes_: int) -> None:
    assert resources(written).memory_limit == bytes_


@pytest.mark.parametrize(
    "nonsense", ["80%", "2", "", "GB", "-2GB", "2 G B", "1e3GB", "2GBs", 2.0, True, b"2GB", [2], "٢GB"]
)
def test_what_is_no_amount_is_refused_with_what_to_write(nonsense: object) -> None:
    with pytest.raises(ProgramError, match=r"memory_limit is an amount such as '2GB', '512MiB'"):
        protect(memory_limit=nonsense)


@pytest.mark.parametrize("little", [2, 0, -1, "1KB", "127MiB"])
def test_too_little_memory_is_refused_with_what_to_write(little: object) -> None:
    with pytest.raises(ProgramError, match=r"128 MiB is the least: write '2GB' for two gigabytes"):
        protect(memory_limit=little)


@pytest.mark.parametrize("nonsense", [0, -1, 4097, 1.0, True, "2", None.__class__])
def test_what_is_no_number_of_threads_is_refused(nonsense: object) -> None:
    with pytest.raises(ProgramError, match="threads is a whole number, 1 to 4,096"):
        protect(threads=nonsense)


@pytest.mark.parametrize("name", sorted(set(KINDS) - {"duckdb"}))
def test_other_engines_are_told_elsewhere(name: str) -> None:
    for said in ({"threads": 2}, {"memory_limit": "2GB"}):
        with pytest.raises(ProgramError, match=r"memory_limit and threads are DuckDB's; ."):
            protect(engine=name, **said)


def test_an_engine_that_is_made_has_its_limits() -> None:
    engine = DuckDB(threads=1)
    with pytest.raises(ProgramError, match="said where an engine is made"):
        protect(engine=engine, threads=2)
    assert told(protect(engine=engine).facts.system.engine)[1] == 1
    engine.close()


def test_limits_are_said_first_or_never() -> None:
    protect()
    with pytest.raises(ProgramError, match="it runs already: say them where data is first protected"):
        protect(threads=1)


def test_limits_said_again_are_the_same_or_refused() -> None:
    first = protect(threads=1)
    assert protect(threads=1).facts.system is protect().facts.system is first.facts.system
    with pytest.raises(ProgramError, match="the same or nothing afterwards"):
        protect(threads=2)
    with pytest.raises(ProgramError, match="the same or nothing afterwards"):
        protect(threads=1, memory_limit="2GB")


def test_each_ledger_has_an_engine_and_limits_of_its_own(tmp_path: Path) -> None:
    protect(threads=1)
    other = protect(threads=2, name="other", ledger=str(tmp_path / "x.ledger"))
    assert told(other.facts.system.engine)[1] == 2


# ── a server ─────────────────────────────────────────────────────────────────────────


def test_a_configuration_says_both(tmp_path: Path) -> None:
    found = config.parse({"memory_limit": "2GiB", "threads": 4}, tmp_path)
    assert found.resources == Resources(2 * 2**30, 4)
    assert config.parse({}, tmp_path).resources == Resources()
    with pytest.raises(ProgramError, match="memory_limit is an amount"):
        config.parse({"memory_limit": "much"}, tmp_path)
    with pytest.raises(ProgramError, match="threads is a whole number"):
        config.parse({"threads": "4"}, tmp_path)


@given(st.integers(2**30, 2**50) | st.none(), st.integers(1, 4096) | st.none(), st.integers(1, 8))
def test_workers_together_have_no_more_than_was_said(
    memory: int | None, threads: int | None, workers: int
) -> None:
    share = Resources(memory, threads).shared(workers)
    assert (share.memory_limit is None) == (memory is None)
    assert (share.threads is None) == (threads is None)
    if memory is not None and share.memory_limit is not None:
        assert memory - workers < share.memory_limit * workers <= memory
    if threads is not None and share.threads is not None:
        assert share.threads == max(1, int(Fraction(threads, workers)))


def test_too_small_a_share_is_refused_before_anything_is_served() -> None:
    with pytest.raises(ProgramError, match="for each of 4 workers is too little; 512 MiB are enough"):
        Resources(MEMORY_AT_LEAST * 4 - 4, None).shared(4)


def test_a_worker_is_told_its_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fpinq.cli import serve

    (tmp_path / "fpinq.toml").write_text('memory_limit = "1GiB"\nthreads = 4\n')
    monkeypatch.setenv("FPINQ_CONFIG", str(tmp_path / "fpinq.toml"))
    for workers, share in (("1", (1024, 4)), ("2", (512, 2)), ("8", (128, 1))):
        monkeypatch.setenv("FPINQ_WORKERS", workers)
        house = serve.application(new_ledger=True).state.house
        assert told(house._engines["duckdb"]) == share
        house.close()
