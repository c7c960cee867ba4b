"""Events: all that is ever written down, in the order in which it happened. Closed data.

    ledger    the first: which ledger this is
    root      a data set: name, shape, budget, content hashes, unit, caps
    action    one step of a program: the action, the rule that applied, what it charged
    answer    what was released for a query
    freeze    a data set may not be asked until it is unfrozen
    unfreeze
    upgrade   what was spent in a ledger of an older format, of which this one goes on

`kind` is what stands in the entry: it stays, whatever the classes are called.
"""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import ClassVar

from fpinq.model.actions import Action
from fpinq.model.epsilon import budget as exact_budget
from fpinq.model.errors import BadEpsilon
from fpinq.model.frozen import dataclass
from fpinq.model.notions import Rho, Total, amount_of, is_concentrated, keys_delta_of, total
from fpinq.model.plans import Shape
from fpinq.model.semantics import Rule
from fpinq.model.traces import Released

# The form in which events are written.
FORMAT = 2


@dataclass(frozen=True)
class Began:
    """The first event. The id is random: no two ledgers have the same hashes."""

    id: str
    format: int = FORMAT

    kind: ClassVar[str] = "ledger"


@dataclass(frozen=True)
class Registered:
    """A root: a data set with a budget of its own.

    `contents` are hashes of its data. The budget says its notion too. An analyst
    may spend at most `caps[analyst]` of it, in its own unit, or `cap` if not
    listed; None is no limit but the budget. `keys_caps` and `keys_cap` say the
    same of its δ for keys. A block is a root that was appended to another, `block_of`.
    `read_off` says that the types of its columns were not stated but read off
    the data.
    """

    name: str
    shape: Shape
    budget: Total
    contents: tuple[str, ...] = ()
    unit: str | None = None
    caps: Mapping[str, Fraction] | None = None
    cap: Fraction | None = None
    block_of: str | None = None
    read_off: bool = False
    # Of tables in memory, a seal of each column (`ledger.alike`).
    columns: tuple[tuple[str, ...], ...] = ()
    # As caps and cap, of the δ for keys.
    keys_caps: Mapping[str, Fraction] | None = None
    keys_cap: Fraction | None = None

    kind: ClassVar[str] = "root"

    @staticmethod
    def of(
        name: str,
        shape: Shape,
        budget: object,
        *,
        contents: Iterable[str] = (),
        unit: str | None = None,
        caps: Mapping[str, object] | None = None,
        cap: object = None,
        block_of: str | None = None,
        read_off: bool = False,
        columns: tuple[tuple[str, ...], ...] = (),
        keys_caps: Mapping[str, object] | None = None,
        keys_cap: object = None,
    ) -> "Registered":
        """A root, from whatever numbers the owner wrote; BadEpsilon if they are none."""
        promised = total(budget)
        return Registered(
            name,
            shape,
            promised,
            tuple(sorted(set(contents))),
            unit,
            {who: _cap(limit, promised) for who, limit in sorted(caps.items())} if caps else None,
            None if cap is None else _cap(cap, promised),
            block_of,
            read_off,
            columns,
            {who: _keys_cap(cap, promised) for who, cap in sorted(keys_caps.items())} if keys_caps else None,
            None if keys_cap is None else _keys_cap(keys_cap, promised),
        )

    @property
    def amount(self) -> Fraction:
        """How much the budget is, in the unit of its notion."""
        return amount_of(self.budget)

    @property
    def keys_delta(self) -> Fraction:
        """Which δ is set aside for keys that nobody knew."""
        return keys_delta_of(self.budget)

    def cap_of(self, analyst: str | None) -> Fraction | None:
        """How much of the budget an analyst may spend; None if there is no limit of their own."""
        if analyst is None:
            return None
        return (self.caps or {}).get(analyst, self.cap)

    def keys_cap_of(self, analyst: str | None) -> Fraction | None:
        """How much of the δ for keys an analyst may spend; None if there is no limit of their own."""
        if analyst is None:
            return None
        return (self.keys_caps or {}).get(analyst, self.keys_cap)


def _cap(limit: object, promised: Total) -> Fraction:
    """A cap, in the unit of the budget that it is of."""
    if is_concentrated(promised) != (type(limit) is Rho):
        raise BadEpsilon("a root has one notion: a cap is an ε where the budget is one, and else a ρ")
    return limit.amount if isinstance(limit := total(limit), Rho) else exact_budget(limit)


def _keys_cap(limit: object, promised: Total) -> Fraction:
    """A cap of the δ for keys, which may be 0."""
    if not keys_delta_of(promised):
        raise BadEpsilon(
            "a cap of δ is of a budget that has a δ for keys: budget=fp.approximate(…, keys_delta=…)"
        )
    exact = exact_budget(limit)
    if exact >= 1:
        raise BadEpsilon("a cap of δ must be less than 1")
    return exact


@dataclass(frozen=True)
class Took:
    """A program took a step: its action, the rule that applied and what it charged at each root."""

    session: str
    analyst: str | None
    request: str | None
    action: Action
    rule: Rule
    charged: Mapping[str, Fraction]

    kind: ClassVar[str] = "action"


@dataclass(frozen=True)
class Recorded:
    """What was released for the query that was event number `answers`."""

    answers: int
    released: tuple[Released, ...]

    kind: ClassVar[str] = "answer"


@dataclass(frozen=True)
class Froze:
    """The owner froze a data set: no query of it is answered."""

    name: str

    kind: ClassVar[str] = "freeze"


@dataclass(frozen=True)
class Unfroze:
    """The owner unfroze a data set."""

    name: str

    kind: ClassVar[str] = "unfreeze"


@dataclass(frozen=True)
class Upgraded:
    """What was spent in a ledger of an older format, of which this one goes on.

    It had so many `entries`, the last of them with the hash `head`. spent: root
    ↦ analyst with a cap, or "" for all together ↦ what was spent, in whole units.
    """

    format: int
    entries: int
    head: str
    spent: Mapping[str, Mapping[str, Fraction]]

    kind: ClassVar[str] = "upgrade"


Event = Began | Registered | Took | Recorded | Froze | Unfroze | Upgraded
KINDS: Mapping[str, type[Event]] = {
    event.kind: event for event in (Began, Registered, Took, Recorded, Froze, Unfroze, Upgraded)
}
