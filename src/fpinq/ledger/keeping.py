"""Keeping: an anchor elsewhere is moved along with what is on disk."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from threading import Lock

from fpinq.ledger.anchor import Anchor, Mark, check_held
from fpinq.ledger.store import Pages
from fpinq.model.errors import ProgramError


class Keeping:
    """The anchor of a ledger, if it has one, and what that holds.

    alone lets nobody else in, reading gives the ledger's pages meanwhile, mark what is on disk now.
    """

    def __init__(
        self,
        alone: Callable[[], AbstractContextManager[object]],
        reading: Callable[[], AbstractContextManager[Pages]],
        mark: Callable[[], Mark],
    ) -> None:
        self.anchor: Anchor | None = None
        self._held: Mark | None = None
        self._alone, self._reading, self._mark = alone, reading, mark
        self._moving = Lock()

    def begin(self, anchor: Anchor) -> None:
        """From now on it is this anchor; LedgerRolledBack if it knows of more than there is."""
        if self.anchor is not None and self.anchor.place != anchor.place:
            raise ProgramError(
                f"this ledger is open already, with the anchor {self.anchor.place}: say the same"
            )
        held = anchor.hold(None)
        self._check_held(held, anchor)
        self.anchor, self._held = anchor, held
        self.keep()

    def keep(self) -> None:
        """Move the anchor to what is on disk. Whoever is told of an entry is told after this.

        One that waits for another finds that its entry was kept with it.
        """
        if self.anchor is None:
            return
        with self._moving:
            mark = self._mark()
            if self._held is not None and self._held.seq >= mark.seq:
                return
            before = self.anchor.hold(mark)
            if before != self._held:  # another process was here; of the same ledger, or of a copy?
                self._check_held(before, self.anchor)
            self._held = mark if before is None else max(before, mark, key=lambda each: each.seq)

    def check(self, pages: Pages, ledger: str) -> None:
        """LedgerRolledBack unless a ledger that was read again has what the anchor held last."""
        if self.anchor is not None and self._held is not None:
            check_held(pages, ledger, self._held, self.anchor.place)

    def _check_held(self, mark: Mark | None, anchor: Anchor) -> None:
        if mark is not None:
            with self._alone(), self._reading() as pages:
                check_held(pages, self._mark().ledger, mark, anchor.place)
