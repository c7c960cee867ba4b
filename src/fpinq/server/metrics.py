"""Prometheus metrics that are the same on neighbouring data.

Counted is what was asked, and what was refused or failed for a reason that is
not in the data: mostly before the charge, but a ledger that cannot record an
answer fails after it. Times, engine failures and answers depend on the data, so
they are in the owner's log or nowhere.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from fpinq.ledger import RootState
from fpinq.model.errors import EngineError
from fpinq.runtime.refusals import failure_of


class Metrics:
    """Counters of one server process."""

    def __init__(self) -> None:
        self._actions: Counter[str] = Counter()
        self._refusals: Counter[str] = Counter()

    def asked(self, op: str) -> None:
        """An action arrived."""
        self._actions[op] += 1

    def refused(self, error: BaseException) -> None:
        """A request was refused, or failed."""
        if not isinstance(error, EngineError):
            self._refusals[failure_of(error).code] += 1

    def text(self, roots: Mapping[str, RootState]) -> str:
        """All of them in Prometheus' text format."""
        lines = [
            "# HELP fpinq_actions_total Actions that arrived, by kind.",
            "# TYPE fpinq_actions_total counter",
        ]
        lines += [f'fpinq_actions_total{{op="{op}"}} {n}' for op, n in sorted(self._actions.items())]
        lines += [
            "# HELP fpinq_refusals_total Requests refused or failed, by code; not failures of an engine.",
            "# TYPE fpinq_refusals_total counter",
        ]
        lines += [f'fpinq_refusals_total{{code="{code}"}} {n}' for code, n in sorted(self._refusals.items())]
        lines += [
            "# HELP fpinq_budget_remaining What is left of a data set's budget.",
            "# TYPE fpinq_budget_remaining gauge",
        ]
        lines += [
            f'fpinq_budget_remaining{{dataset="{name}"}} {float(root.remaining)}'
            for name, root in sorted(roots.items())
        ]
        lines += [
            "# HELP fpinq_delta_remaining What is left of a data set's δ for keys, where it has one.",
            "# TYPE fpinq_delta_remaining gauge",
        ]
        lines += [
            f'fpinq_delta_remaining{{dataset="{name}"}} {float(root.remaining_delta)}'
            for name, root in sorted(roots.items())
            if root.registered.keys_delta
        ]
        lines += ["# HELP fpinq_frozen Whether a data set is frozen.", "# TYPE fpinq_frozen gauge"]
        lines += [
            f'fpinq_frozen{{dataset="{name}"}} {int(root.frozen)}' for name, root in sorted(roots.items())
        ]
        return "\n".join(lines) + "\n"


class Shared:
    """A look at the ledger that all who ask at the same time share.

    Anybody may ask for the metrics, so however many do, one of them waits for the ledger.
    """

    def __init__(self, look: Callable[[], Mapping[str, RootState]]) -> None:
        self._look = look
        self._thread = ThreadPoolExecutor(1, "fpinq-metrics")
        self._under_way: asyncio.Future[Mapping[str, RootState]] | None = None

    async def look(self) -> Mapping[str, RootState]:
        """What the ledger says; a look that is under way is that of all who ask meanwhile."""
        if self._under_way is None or self._under_way.done():
            self._under_way = asyncio.get_running_loop().run_in_executor(self._thread, self._look)
        return await asyncio.shield(self._under_way)
