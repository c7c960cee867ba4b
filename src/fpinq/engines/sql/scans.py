"""Scans: data that is read again each time, and columns of ours made of it on the way."""

from collections.abc import Container

from fpinq.model.frozen import dataclass


@dataclass(frozen=True)
class Scan:
    """A source and the SQL of the columns that are made of it. Written down, it has all of them."""

    columns: tuple[tuple[str, str], ...]
    source: str

    def __str__(self) -> str:
        return f"({self.select})"

    @property
    def select(self) -> str:
        """The SELECT of all columns."""
        return self._listing([f"{sql} AS {name}" for name, sql in self.columns])

    def only(self, names: Container[str]) -> str:
        """The same rows with some of the columns: what nothing reads is not planned either."""
        return f"({self._listing([f'{sql} AS {name}' for name, sql in self.columns if name in names])})"

    def _listing(self, listed: list[str]) -> str:
        return f"SELECT {', '.join(listed) or '1 AS one'} FROM {self.source}"
