"""Facts: what is known of a table, all of it public, as one frozen record.

A table is bound: it is a variable of a protected system. Only a table made of
public tables alone is in no system yet: it is bound in one when it meets a
table that is, or when it is asked.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import ClassVar
from weakref import WeakKeyDictionary, finalize

from fpinq.client.amounts import Amount
from fpinq.client.bounds import Known
from fpinq.client.budgets import Budget
from fpinq.client.subjects import Subject
from fpinq.client.systems import System, fresh_variable
from fpinq.client.tracing import refuse_inside_a_lambda
from fpinq.model.accounts import Root
from fpinq.model.actions import Action, AskBudget, AskPrice, AskScale, Assign
from fpinq.model.books import FOR_KEYS
from fpinq.model.environments import Numbered, TableVariable
from fpinq.model.errors import KernelViolation
from fpinq.model.expressions import Column, Expression, Schema
from fpinq.model.frozen import dataclass
from fpinq.model.notions import Amount as Asked
from fpinq.model.plans import Plan, Term, Transformation
from fpinq.model.semantics import Told
from fpinq.runtime import Observation

ZERO = Fraction(0)


@dataclass(frozen=True)
class Within:
    """A table made person by person: the plan over one person's rows, and the columns that hold the unit.

    As long as operations stay inside a person, the scaling factor is the number
    of rows that the plan can give for one person, not what the general laws say.
    """

    root: TableVariable
    body: Plan
    units: frozenset[str]

    def then(self, transformation: Transformation, *others: "Within", units: Iterable[str]) -> "Within":
        """One more step inside each person."""
        bodies = (self.body, *(other.body for other in others))
        return Within(self.root, Term(transformation, bodies), frozenset(units))

    def is_unit(self, expression: Expression) -> bool:
        """Whether an expression is the unit itself."""
        return isinstance(expression, Column) and expression.name in self.units


@dataclass(frozen=True, eq=False)
class Bound:
    """A variable of a system; one of several, perhaps, that are dropped together."""

    system: System
    variable: TableVariable
    among: "Together | None" = None

    def variable_in(self, system: System) -> TableVariable:
        """The variable in a system, which is its own."""
        if self.system is not system:
            raise KernelViolation("a protected table is in one system only")
        return self.variable


def held(system: System, variable: TableVariable) -> Bound:
    """A variable that is dropped with the last table that is bound to it."""
    bound = Bound(system, variable)
    finalize(bound, system.drop, variable).atexit = False
    return bound


class Together:
    """Variables that are dropped with the last table that is bound to one of them."""

    def __init__(self, system: System, variables: Numbered) -> None:
        self._system, self._variables = system, variables
        finalize(self, system.drop, variables).atexit = False

    def __getitem__(self, number: int) -> Bound:
        return Bound(self._system, self._variables[number], self)


@dataclass(frozen=True, eq=False)
class Unbound:
    """How a public table is made, in whichever system needs it; and its variables there, so far."""

    transformation: Transformation
    arguments: "tuple[Bound | Unbound, ...]" = ()
    variables: WeakKeyDictionary[System, TableVariable] = field(default_factory=WeakKeyDictionary)
    system: ClassVar[None] = None

    def variable_in(self, system: System) -> TableVariable:
        """The variable in a system, where it is bound if it is not yet."""
        if system not in self.variables:
            arguments = tuple(argument.variable_in(system) for argument in self.arguments)
            variable = fresh_variable()
            system.act(Assign(variable, self.transformation, arguments))
            self.variables[system] = variable
        return self.variables[system]


@dataclass(frozen=True)
class Made:
    """How a table was made: in words, of which tables, and with which stability in each.

    A table made inside each person has no stabilities but a bound on its rows per person.
    """

    label: str
    parents: tuple["Facts", ...] = ()
    stability: tuple[int, ...] = ()
    rows_per_unit: int | None = None
    read_off: bool = False  # a root whose columns' types nobody stated
    whole: bool = False  # a root's own table, or such put together


@dataclass(frozen=True, eq=False)
class Facts:
    """What is known of a table. Its parents stay alive with it, and so do their variables."""

    schema: Schema
    made: Made
    binding: Bound | Unbound
    roots: Mapping[str, str] = field(default_factory=dict)  # its name in the system ↦ the owner's for it
    columns: Mapping[str, Known] = field(default_factory=dict)
    budgets: frozenset[Budget] = frozenset()
    within: Within | None = None

    @property
    def system(self) -> System | None:
        """The system that the table is in; None for a public one that is in none yet."""
        return self.binding.system

    @cached_property
    def subject(self) -> Subject:
        """What a query needs to know of the table."""
        return Subject(self.schema, self.columns)

    def act(self, action: Action) -> Observation:
        """What the table's system tells of an action."""
        refuse_inside_a_lambda()
        if self.system is None:
            raise KernelViolation("a table without a system cannot act")
        return self.system.act(action)

    # ── what the system knows ────────────────────────────────────────────────────────

    def scaling_factor(self) -> int:
        """How many records of this table one record of a root may change."""
        if isinstance(self.binding, Unbound):
            return 0
        factor = self._told(AskScale(self.binding.variable))
        assert isinstance(factor, int)
        return factor

    def sensitivity(self) -> dict[str, int]:
        """How many records of this table one record of each source may change, by the names to show."""
        if isinstance(self.binding, Unbound):
            return {}
        labels = self.root_labels()
        vector = self.binding.system.describe(self.binding.variable).sensitivity
        return {
            labels[source.name]
            if isinstance(source, Root)
            else f"part {source.number} of partition {source.partition}": s
            for source, s in vector.items()
        }

    def prices(self, epsilon: Asked) -> dict[str, Fraction]:
        """What a query would add to each of the table's roots now."""
        if isinstance(self.binding, Unbound):
            return {}
        added = self._told(AskPrice(self.binding.variable, epsilon))
        assert isinstance(added, Mapping)
        return {root: added[root] for root in self.roots}

    def delta_prices(self, epsilon: Asked, delta: Fraction) -> dict[str, Fraction]:
        """What a query that costs so much δ would add now to the δ for keys of each of the table's roots."""
        if isinstance(self.binding, Unbound):
            return {}
        added = self._told(AskPrice(self.binding.variable, epsilon, delta))
        assert isinstance(added, Mapping)
        return {root: added.get(root + FOR_KEYS, ZERO) for root in self.roots}

    def left(self) -> dict[str, Fraction]:
        """What may still be charged to each of the table's roots: by its budget, and by those handed on."""
        if self.system is None:
            return {}
        left = self._told(AskBudget())
        assert isinstance(left, Mapping)
        return {root: min([left[root], *(b.left_at(root) for b in self.budgets)]) for root in self.roots}

    def left_for_keys(self) -> dict[str, Fraction]:
        """What is left of the δ for keys of each of the table's roots that has one."""
        if self.system is None:
            return {}
        left = self._told(AskBudget())
        assert isinstance(left, Mapping)
        return {root: left[root + FOR_KEYS] for root in self.roots if root + FOR_KEYS in left}

    def _told(self, action: Action) -> int | Mapping[str, Fraction]:
        observation = self.act(action)
        if not isinstance(observation, Told):
            raise KernelViolation("a question about public facts was not answered")
        return observation.fact

    # ── as a program sees it ─────────────────────────────────────────────────────────

    def by_root(self, amounts: Mapping[str, Fraction]) -> Fraction | Mapping[str, Fraction]:
        """One amount for a table over one root, or amounts by the names to show."""
        if len(self.roots) <= 1:
            amount = ZERO
            for root in self.roots:
                amount = amounts.get(root, ZERO)
            return Amount(*amount.as_integer_ratio())
        labels = self.root_labels()
        return MappingProxyType({labels[root]: Amount(amounts.get(root, ZERO)) for root in self.roots})

    def root_labels(self) -> dict[str, str]:
        """The names to show for the roots: the owner's, unless two owners chose the same."""
        owners = Counter(self.roots.values())
        return {root: label if owners[label] == 1 else root for root, label in self.roots.items()}
