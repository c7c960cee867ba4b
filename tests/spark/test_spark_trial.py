"""A Spark that is known to be wrong, or was never tested, gets no data."""

from types import SimpleNamespace
from typing import Any

import pytest

from fpinq.engines.spark import trial
from fpinq.model.errors import UnfitEngine


@pytest.fixture
def untried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "_passed", set())


@pytest.mark.parametrize("version", ["3.5.9", "4.0.4", "4.4.0", "4.10.1", "5.0.0-SNAPSHOT", "unknown"])
def test_a_version_that_was_not_tested_is_refused(untried: None, version: str) -> None:
    session: Any = SimpleNamespace(version=version)
    with pytest.raises(UnfitEngine, match="was not tested on"):
        trial.check(session, session)


def test_a_spark_is_tried_once_in_a_process(spark: Any, untried: None) -> None:
    trial.check(*spark._sessions)
    trial.check(SimpleNamespace(), SimpleNamespace(version=spark._sessions[0].version))  # type: ignore[arg-type]


def test_the_union_that_counts_rows_twice_fails_the_trial(spark: Any, untried: None) -> None:
    adaptive, plain = spark._sessions
    if plain.version < "4.1":
        pytest.skip("the fault came with 4.1")
    wrong = plain.newSession()
    for key in plain.conf.getAll:
        if plain.conf.isModifiable(key):
            wrong.conf.set(key, plain.conf.get(key))
    wrong.conf.set("spark.sql.unionOutputPartitioning", "true")
    with pytest.raises(UnfitEngine, match="answers wrongly"):
        trial.check(adaptive, wrong)
