"""On paper: a program by the same rules, on a copy of what is public. Nothing is written or measured."""

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from fractions import Fraction
from typing import Any

from fpinq.client.facts import Bound, Facts
from fpinq.client.systems import System, system_for
from fpinq.model.actions import Action, AskPrice, Query
from fpinq.model.environments import Numbered, TableVariable
from fpinq.model.errors import KernelViolation
from fpinq.model.notions import Amount
from fpinq.model.queries import Count
from fpinq.model.semantics import Bottom, Configuration, Label, Measure, Table, Told, step
from fpinq.runtime import Observation, ProtectedSystem


class Quoted(BaseException):
    """A query on paper: it goes no further. Not an error, so nobody takes it for one."""


class Paper:
    """A system in which queries are refused as they would be, and never answered."""

    def __init__(self, configuration: Configuration, check: Callable[[Label], None]) -> None:
        self.configuration = configuration
        self._check = check
        self.asked: TableVariable | None = None
        self.refused = False
        self._after = configuration

    def act(self, action: Action) -> Observation:
        """What the kernel says of the action; at a query, Quoted."""
        transition = step(self.configuration, action)
        label = transition.label
        if isinstance(action, Query):
            self.asked = action.table
            self.refused = isinstance(label, Bottom)
            self._after = transition.configuration
            if isinstance(label, Measure):
                self._check(label)
            raise Quoted
        self.configuration = transition.configuration
        if isinstance(label, Measure):
            raise KernelViolation("only queries are measured")
        return label

    def go_on(self) -> None:
        """As if the query had been answered: what comes next is charged after it."""
        self.configuration = self._after

    def spend(self, variable: TableVariable, epsilon: Amount) -> Mapping[str, Fraction] | None:
        """Charge a query of a table, on paper, and say what to which root; None if it does not fit."""
        price = self.told(AskPrice(variable, epsilon))
        transition = step(self.configuration, Query(variable, epsilon, (Count(),), None))
        if isinstance(transition.label, Bottom):
            return None
        self.configuration = transition.configuration
        assert isinstance(price, Mapping)
        return price

    def told(self, action: Action) -> Any:
        """A public fact."""
        label = step(self.configuration, action).label
        assert isinstance(label, Told)
        return label.fact

    def describe(self, variable: TableVariable) -> Table:
        """The public facts of a table."""
        return self.configuration.table(variable)

    def drop(self, variable: TableVariable | Numbered) -> None:
        """It is thrown away as a whole."""


class Papers:
    """Paper for each system that a program acts in."""

    def __init__(self) -> None:
        self._of: dict[int, Paper | None] = {}

    def of(self, system: System | None) -> Paper | None:
        """The paper of a system; None of one that is elsewhere and has to be asked.

        A public table that is in none is asked where `asking` would ask it.
        """
        system = system_for("reference") if system is None else system
        if id(system) not in self._of:
            self._of[id(system)] = _of(system)
        return self._of[id(system)]


def _of(system: System) -> Paper | None:
    if isinstance(system, Paper):
        return copy(system)  # what is spent here is not spent there
    return Paper(system.configuration(), system.check) if isinstance(system, ProtectedSystem) else None


def spent(facts: Facts, at: Amount, papers: Papers) -> Mapping[str, Fraction]:
    """What a query costs after those before it; of a system that is elsewhere, as if it were the first."""
    paper = papers.of(facts.system)
    if paper is None or not facts.roots:
        return facts.prices(at)
    price = on_paper(facts, paper).prices(at)
    paper.spend(on_paper(facts, paper).binding.variable_in(paper), at)
    return price


def on_paper(facts: Facts, paper: Paper) -> Facts:
    """A table on paper, where no budget that was handed on is debited."""
    variable = (
        facts.binding.variable if isinstance(facts.binding, Bound) else facts.binding.variable_in(paper)
    )
    return replace(facts, binding=Bound(paper, variable), budgets=frozenset())
