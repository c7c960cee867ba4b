"""Names: a program's table variables, and what they are called on a server."""

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from itertools import count

from fpinq.model import actions
from fpinq.model.actions import Action, AskPrice, AskScale, Assign, Partition
from fpinq.model.environments import Numbered, TableVariable


class Names:
    """A program's table variables and their names on the server.

    A session's variables live on the server, where each costs memory. Names of
    tables that the program has forgotten are used again, so a session has as
    many as the program holds at a time.
    """

    def __init__(self) -> None:
        self._names: dict[TableVariable, str] = {}
        self._free: list[str] = []
        # A finalizer may come at any time, so it only notes.
        self._dropped: deque[TableVariable | Numbered] = deque()
        self._numbers = count(1)

    def of(self, variable: TableVariable) -> str:
        """Its name on the server: a data set's is its own."""
        return self._names.get(variable, variable)

    def drop(self, variable: TableVariable | Numbered) -> None:
        """The program has forgotten a variable, or several."""
        self._dropped.append(variable)

    def translate(self, action: Action) -> tuple[Action, dict[TableVariable, str]]:
        """The action in the server's names, and the names that it binds."""
        while self._dropped:
            gone = self._dropped.popleft()
            for variable in [gone] if isinstance(gone, str) else gone:
                if (name := self._names.pop(variable, None)) is not None:
                    self._free.append(name)
        match action:
            case Assign(target=target, arguments=arguments):
                fresh = {target: self._fresh(target)}
                named = replace(
                    action, target=fresh[target], arguments=tuple(self.of(variable) for variable in arguments)
                )
                return named, fresh
            case Partition(targets=targets, table=table):
                fresh = {target: self._fresh(target) for target in targets}
                names = tuple(fresh[target] for target in targets)
                return replace(action, targets=names, table=self.of(table)), fresh
            case actions.Query() | AskScale() | AskPrice():
                return replace(action, table=self.of(action.table)), {}
        return action, {}

    def bind(self, fresh: Mapping[TableVariable, str]) -> None:
        """The server has bound them."""
        self._names.update(fresh)

    def _fresh(self, variable: TableVariable) -> str:
        if not variable or variable in self._names:
            return self.of(variable)
        return self._free.pop() if self._free else f"${next(self._numbers)}"
