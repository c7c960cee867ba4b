"""Settings for every test."""

import gc
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

# A shared machine may stall for a second; a slow example is not a failure.
settings.register_profile("fpinq", deadline=None)
settings.load_profile("fpinq")


@pytest.fixture
def little_garbage() -> Iterator[None]:
    """Collecting garbage looks at what the test made: all that a run has made before is kept out of it."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """How much was compared, where a test recorded it."""
    found = [dict(report.user_properties) for report in terminalreporter.stats.get("passed", [])]
    for engine in sorted({one["engine"] for one in found if "engine" in one}):
        files, answers = (
            sum(o[what] for o in found if o.get("engine") == engine) for what in ("files", "answers")
        )
        terminalreporter.write_line(f"{engine}: {files} files, {answers} answers compared with the reference")
