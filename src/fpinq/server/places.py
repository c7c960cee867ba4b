"""Places: how many requests of whom are under way. One analyst's requests never take another's places.

A request takes a place when it is known from whom it comes, before its body is
read, and keeps it until its reply has left, so that how many are under way
tells no more than the times of the replies do. Whoever has no token takes none.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from fpinq.runtime.refusals import TooManyRequests
from fpinq.server.limits import Limits
from fpinq.server.tokens import Bearer

# Where a request is found in its ASGI scope.
VISIT = "fpinq.visit"


class Places:
    """The places of everybody. Used on the event loop only."""

    def __init__(self, limits: Limits) -> None:
        self._each, self._in_all = limits.concurrent_requests, limits.concurrent_requests_in_all
        self._taken: Counter[str] = Counter()
        self._by_analysts = 0

    @contextmanager
    def visit(self) -> Iterator["Visit"]:
        """A request, for as long as it is under way."""
        visit = Visit(self)
        try:
            yield visit
        finally:
            visit.leave()

    def take(self, bearer: Bearer) -> None:
        """TooManyRequests if somebody has all their places, or analysts have all there are."""
        if self._taken[bearer.name] >= self._each:
            raise TooManyRequests(f"at most {self._each} requests at a time")
        if bearer.role == "analyst":  # those who watch over analysts are not shut out by them
            if self._by_analysts >= self._in_all:
                raise TooManyRequests(f"at most {self._in_all} requests of all analysts at a time")
            self._by_analysts += 1
        self._taken[bearer.name] += 1

    def give_back(self, bearer: Bearer) -> None:
        """A place is free again."""
        self._by_analysts -= bearer.role == "analyst"
        self._taken[bearer.name] -= 1
        if not self._taken[bearer.name]:
            del self._taken[bearer.name]


class Visit:
    """One request: it has a place once it is known from whom it comes."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._bearer: Bearer | None = None

    def enter(self, bearer: Bearer) -> None:
        """Take a place, once."""
        if self._bearer is None:
            self._places.take(bearer)
            self._bearer = bearer

    def leave(self) -> None:
        """Give it back."""
        if self._bearer is not None:
            self._places.give_back(self._bearer)
            self._bearer = None
