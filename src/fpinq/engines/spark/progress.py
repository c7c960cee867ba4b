"""How far a long job has come: a line of stages done and tasks running, where somebody is looking."""

import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

from fpinq.model.frozen import dataclass

# A job that is shorter than this shows nothing.
QUIET_SECONDS = 2.0
_EVERY_SECONDS = 0.5


@dataclass(frozen=True)
class Stages:
    """Stages and tasks that are known of so far. Counts of work, not of records."""

    done: int
    total: int
    tasks_done: int
    tasks_total: int

    def line(self, seconds: float) -> str:
        """The stages, the tasks and the time as one line."""
        full = 24 * self.tasks_done // max(self.tasks_total, 1)
        bar = "█" * full + "░" * (24 - full)
        stages = f"stage {min(self.done + 1, self.total)} of {self.total}" if self.total else "planning"
        return f"Spark {bar} {stages}, {self.tasks_done}/{self.tasks_total} tasks  {seconds:.0f} s"


class Progress(AbstractContextManager["Progress"]):
    """Shows the stages of what runs inside it, once that takes long; silent where nobody is looking."""

    def __init__(self, look: Callable[[], Stages | None], show: Callable[[str], None] | None) -> None:
        self._look, self._show = look, show
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> "Progress":
        if self._show is not None:
            self._thread = threading.Thread(target=self._watch, name="fpinq-progress", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        assert self._show is not None
        began = time.monotonic()
        shown = False
        wait = QUIET_SECONDS
        while not self._over.wait(wait):
            wait = _EVERY_SECONDS
            try:
                stages = self._look()
            except Exception:  # What is shown must never disturb what is measured.
                break
            if stages is not None:
                self._show(stages.line(time.monotonic() - began))
                shown = True
        if shown:
            self._show("")


def shown_where() -> Callable[[str], None] | None:
    """How to show a line: in a terminal, in a notebook, or nowhere."""
    if sys.stderr.isatty():
        return lambda line: print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None or "IPKernelApp" not in shell.config:
        return None
    return _NotebookLine()


class _NotebookLine:
    """One line of a notebook's output, written again and again."""

    def __init__(self) -> None:
        self._handle: Any = None

    def __call__(self, line: str) -> None:
        from IPython import display  # type: ignore[import-not-found,unused-ignore]

        text = display.Pretty(line)
        if self._handle is None:
            self._handle = display.display(text, display_id=True)
        else:
            self._handle.update(text)


def stages_of(tracker: Any, group: str) -> Stages | None:
    """The stages of a job group, from a SparkContext's status tracker."""
    stages = []
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        stages += list(info.stageIds) if info is not None else []
    infos = [info for info in map(tracker.getStageInfo, stages) if info is not None]
    if not infos:
        return None
    tasks = sum(info.numTasks for info in infos)
    finished = sum(info.numCompletedTasks for info in infos)
    done = sum(info.numCompletedTasks == info.numTasks for info in infos)
    return Stages(done, len(stages), finished, tasks)
