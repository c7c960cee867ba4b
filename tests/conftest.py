"""Settings for every test."""

from typing import Any

from hypothesis import settings

# A shared machine may stall for a second; a slow example is not a failure.
settings.register_profile("fpinq", deadline=None)
settings.load_profile("fpinq")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """How much was compared, where a test recorded it."""
    found = [dict(report.user_properties) for report in terminalreporter.stats.get("passed", [])]
    for engine in sorted({one["engine"] for one in found if "engine" in one}):
        files, answers = (
            sum(o[what] for o in found if o.get("engine") == engine) for what in ("files", "answers")
        )
        terminalreporter.write_line(f"{engine}: {files} files, {answers} answers compared with the reference")
