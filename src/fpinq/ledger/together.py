"""Together: steps that wait at the same time are written in one transaction.

    wait ──▸ one of those that wait leads ──▸ decide each, write all, commit ──▸ each is told

Syncing a commit to disk takes longer than a step, and one sync is as good as
many. So whoever finds nobody writing leads: it takes along all who wait, in
their order. Nobody is told anything before the commit; if that fails, it fails
for all of them, and nothing is there.
"""

from collections import deque
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, suppress
from contextvars import copy_context
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Any, Generic, TypeVar

from fpinq.ledger.store import Sought
from fpinq.ledger.writing import Writing
from fpinq.model.errors import BadTransformation, FpinqError, KernelViolation, LedgerError
from fpinq.model.semantics import Label

T = TypeVar("T")

# How many steps are written at once: the first of them waits for the last.
AT_MOST = 64
# Whoever waits looks again after so long: one that led may have been cut short, anywhere, by a signal.
LOOK_SECONDS = 1.0


class Behind(Exception):
    """A session with a long past that is not at hand: it is replayed while others act, and asked again."""

    def __init__(self, name: str, before: int) -> None:
        super().__init__(name)
        self.name, self.before = name, before


class Large(Exception):
    """A step that has much to compute: that is done while others act, and then it is asked again."""

    def __init__(self, rehearse: Callable[[], Label]) -> None:
        super().__init__()
        self.rehearse = rehearse


# What refuses a step. Anything else is a failure of the database, or a mistake: then nothing is written.
REFUSALS = (FpinqError, KernelViolation, Behind, Large)


class _Apart:
    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is None or isinstance(error, REFUSALS) or not isinstance(error, Exception):
            return
        if isinstance(error, RecursionError):
            raise BadTransformation("nested too deeply for the machine that it is asked of") from None
        raise KernelViolation(f"a step failed ({type(error).__name__})") from error


_APART = _Apart()


def alone() -> AbstractContextManager[None]:
    """What is computed here without the database fails for its own step, and for no other."""
    return _APART


class Step(Generic[T]):
    """What a thread wants decided and written, and what became of it.

    Of steps with the same key one is written at a time: none finds what it
    depends on in the same transaction. `sought` is the entry that it asks for
    first, and `decide` is given it, if it is there. It raises what refuses the
    step, before it appends anything.
    """

    def __init__(
        self,
        key: Hashable,
        decide: Callable[[Writing, Any], T],
        *,
        durable: bool = True,
        sought: Sought | None = None,
    ) -> None:
        self.key, self.durable, self.sought = key, durable, sought
        self.is_over = False
        self._decide = decide
        self._context = copy_context()  # whose step it is, whoever takes it
        self._decided: T | None = None
        self._error: BaseException | None = None
        self._told: SimpleQueue[None] = SimpleQueue()
        self._unclaimed = [self]

    @property
    def is_claimed(self) -> bool:
        """Whether somebody takes it, or has."""
        return not self._unclaimed

    def claim(self) -> bool:
        """Whether it is now one's own to take: it is nobody else's, wherever one is cut short."""
        try:
            self._unclaimed.pop()
        except IndexError:
            return False
        return True

    def decide(self, writing: Writing, found: Any) -> None:
        """Take the step. What refuses it is its own; what stops it otherwise is everybody's."""
        appended = writing.appended
        try:
            self._decided = self._context.run(self._decide, writing, found)
        except BaseException as error:
            self._error = error
            if not isinstance(error, REFUSALS) or writing.appended != appended:
                raise

    def end(self, error: BaseException | None = None) -> None:
        """It was committed; or it was not, and nothing was written."""
        if error is not None and (self._error is None or not isinstance(self._error, REFUSALS)):
            self._error = error if error is self._error else _as_told(error)
        self.is_over = True
        self.tell()

    def tell(self) -> None:
        """Let whoever waits for it look."""
        self._told.put(None)

    def wait(self) -> bool:
        """Wait until there is something to see; False if nobody said so."""
        with suppress(Empty):
            self._told.get(timeout=LOOK_SECONDS)
            return True
        return False

    def outcome(self) -> T:
        """What was decided, once it is over."""
        if self._error is not None:
            raise self._error
        return self._decided  # type: ignore[return-value]


class Together:
    """Those who wait to write, and who leads. commit decides and writes steps, or raises and writes none.

    That each step is taken once does not depend on who leads: it is claimed, and
    commits come one after the other.
    """

    def __init__(self, commit: Callable[[list[Step[Any]]], None]) -> None:
        self._commit = commit
        self._waiting: deque[Step[Any]] = deque()
        self._leading = Lock()

    def take(self, step: Step[T]) -> T:
        """What becomes of a step: decided and, if something was to be written, committed."""
        leading = self._leading
        if not self._waiting and leading.acquire(blocking=False):  # nobody is there: it is written alone
            try:
                step.claim()
                self._write([step])
            finally:
                leading.release()
                self._tell_next()
            return step.outcome()
        try:
            self._waiting.append(step)
            while not step.is_over:
                self._lead_or_wait(step)
        finally:
            with suppress(ValueError):
                self._waiting.remove(step)
        return step.outcome()

    def _lead_or_wait(self, step: Step[Any]) -> None:
        leading = self._leading
        if leading.acquire(blocking=False):
            try:
                self._lead()
            finally:
                leading.release()
                self._tell_next()
        elif not step.wait() and not step.is_claimed:
            self._leading = Lock()  # whoever has the other is slow, or was cut short before it gave it back

    def _tell_next(self) -> None:
        """Who came meanwhile waits for this; who comes now finds nobody leading."""
        for step in tuple(self._waiting):
            if not step.is_claimed:
                step.tell()
                return

    def _lead(self) -> None:
        """Take along those who wait: the first of each key, in order. The others wait for the next."""
        steps: list[Step[Any]] = []
        keys: set[Hashable] = set()
        try:
            for step in tuple(self._waiting):
                if len(steps) < AT_MOST and step.key not in keys and step.claim():
                    steps.append(step)
                    keys.add(step.key)
        except BaseException as error:
            _end(steps, error)
            raise
        self._write(steps)

    def _write(self, steps: list[Step[Any]]) -> None:
        """Steps that are one's own, in one transaction; then they are over, whatever became of them."""
        try:
            self._commit(steps)
        except BaseException as error:
            _end(steps, error)
            if not isinstance(error, Exception):
                raise
        else:
            _end(steps)


def _end(steps: list[Step[Any]], error: BaseException | None = None) -> None:
    for step in steps:
        step.end(error)


def _as_told(error: BaseException) -> BaseException:
    """An error of the transaction, as each of its steps is told."""
    if isinstance(error, FpinqError | KernelViolation):
        return error
    return LedgerError(f"the ledger was not written ({type(error).__name__}): nothing was answered")
