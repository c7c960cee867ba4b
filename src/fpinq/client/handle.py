"""Handles: what a table knows of itself, all of it public, and how it acts on its system.

A handle holds the name of a table variable and public facts, never data. A
table made of public tables only has no system yet: it is bound in one when it
meets a table that has, or when it is asked.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from types import MappingProxyType
from typing import Any, NoReturn, Self
from weakref import WeakKeyDictionary, finalize

from fpinq.client.bounds import Column
from fpinq.client.budgets import Budget
from fpinq.client.derivation import Derivation, Made
from fpinq.client.spelling import show_down, show_up
from fpinq.client.systems import System, fresh_variable, system_for
from fpinq.client.tracing import refuse_inside_a_lambda
from fpinq.model import epsilon as exact
from fpinq.model import expressions
from fpinq.model.accounts import Root
from fpinq.model.actions import Action, AskBudget, AskPrice, AskScale, Assign, TableVariable
from fpinq.model.errors import BadTransformation, KernelViolation, ProgramError
from fpinq.model.expressions import Expression, Schema
from fpinq.model.plans import Flatten, Plan, Term, Transformation, apply, bounded_stability, rows_at_most
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
        return isinstance(expression, expressions.Column) and expression.name in self.units


class Handle:
    """A table of a protected system, or a public one that is in none yet."""

    def __init__(
        self,
        schema: Schema,
        made: Made,
        *,
        system: System | None = None,
        variable: TableVariable = "",
        transformation: Transformation | None = None,
        roots: Mapping[str, str] | None = None,
        columns: Mapping[str, Column] | None = None,
        budgets: frozenset[Budget] = frozenset(),
        within: Within | None = None,
    ) -> None:
        self._schema = schema
        self._made = made
        self._system = system
        self._variable = variable
        self._transformation = transformation
        self._roots = dict(roots or {})  # a root's name in the system ↦ the name its owner gave it
        self._columns = {name: known for name, known in (columns or {}).items() if name in schema.names()}
        self._budgets = budgets
        self._within = within
        self._bound: WeakKeyDictionary[Any, TableVariable] = WeakKeyDictionary()

    # ── public facts ─────────────────────────────────────────────────────────────────

    @property
    def schema(self) -> Mapping[str, str]:
        """The columns and their types."""
        return MappingProxyType({name: type_.value for name, type_ in self._schema.columns})

    @property
    def scaling_factor(self) -> int:
        """How many records of this table one record of a root may change: what ε = 1 costs at first."""
        if self._system is None:
            return 0
        factor = self._told(AskScale(self._variable))
        assert isinstance(factor, int)
        return factor

    @property
    def sensitivity(self) -> Mapping[str, int]:
        """How many records of this table one record of each source may change: of a root, or of a part."""
        if self._system is None:
            return MappingProxyType({})
        vector = self._system.describe(self._variable).sensitivity
        shown = {
            self._root_labels()[source.name]
            if isinstance(source, Root)
            else f"part {source.number} of partition {source.partition}": s
            for source, s in vector.items()
        }
        return MappingProxyType(shown)

    @property
    def remaining(self) -> Fraction | Mapping[str, Fraction]:
        """What is left of the budget; for a table over several roots, of each."""
        return self._shaped(self._left()) if self._roots else MappingProxyType({})

    def price(self, epsilon: object) -> Fraction | Mapping[str, Fraction]:
        """What a query at ε would cost now; for a table over several roots, of each. Asking is free."""
        return self._shaped(self._price(exact.epsilon(epsilon)))

    def explain(self) -> Derivation:
        """How the table was made, with every stability and scaling factor: to print, or for a notebook."""
        return Derivation(self)

    def with_budget(self, budget: Budget) -> Self:
        """The same table, of which queries are also charged to this budget and may not exceed it."""
        if not isinstance(budget, Budget):
            raise ProgramError("with_budget needs an fp.Budget, such as fp.Budget(1).split(2)[0]")
        kept = {other for other in self._budgets if not budget.descends_from(other)}
        return self._with(budgets=frozenset({*kept, budget}))

    def __str__(self) -> str:
        return "\n".join(f"{name:<15} {value}" for name, value in self._facts())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th>"
            f"<td style='text-align:left'>{escape(value)}</td></tr>"
            for name, value in self._facts()
        )
        return f"<table>{rows}</table><details><summary>derivation</summary>{self.explain().svg()}</details>"

    def _facts(self) -> list[tuple[str, str]]:
        columns = ", ".join(f"{name} {type_}" for name, type_ in self.schema.items())
        columns += " (read off the data)" if self._made.read_off else ""
        left = ", ".join(
            f"{show_down(amount)} of {self._root_labels()[root]}" for root, amount in self._left().items()
        )
        price = " + ".join(show_up(p) for p in self._price(Fraction(1)).values()) or "0"
        return [
            ("table", self._plan_text()),
            ("columns", columns),
            ("scaling factor", str(self.scaling_factor)),
            ("left", left or "public: costs nothing"),
            ("ε = 1 costs", price),
        ]

    def _plan_text(self) -> str:
        made = self._made
        steps = " and ".join(parent._plan_text() for parent in made.parents)
        return f"{steps} → {made.label}" if steps else made.label

    def __len__(self) -> NoReturn:
        raise ProgramError("how many records there are is private: ask table.noisy_count(ε)")

    def __iter__(self) -> NoReturn:
        raise ProgramError("records are private: ask for a statistic, such as table.noisy_average(ε, f)")

    def __bool__(self) -> bool:
        return True

    # ── acting ───────────────────────────────────────────────────────────────────────

    def _act(self, action: Action) -> Observation:
        refuse_inside_a_lambda()
        if self._system is None:
            raise KernelViolation("a table without a system cannot act")
        return self._system.act(action)

    def _told(self, action: Action) -> int | Mapping[str, Fraction]:
        observation = self._act(action)
        if not isinstance(observation, Told):
            raise KernelViolation("a question about public facts was not answered")
        return observation.fact

    def _price(self, epsilon: Fraction) -> dict[str, Fraction]:
        """What a query would add to each of the table's roots now."""
        if self._system is None:
            return {}
        added = self._told(AskPrice(self._variable, epsilon))
        assert isinstance(added, Mapping)
        return {root: added[root] for root in self._roots}

    def _left(self) -> dict[str, Fraction]:
        """What may still be charged to each of the table's roots: by its budget, and by those handed on."""
        if self._system is None:
            return {}
        left = self._told(AskBudget())
        assert isinstance(left, Mapping)
        return {root: min([left[root], *(b.left_at(root) for b in self._budgets)]) for root in self._roots}

    def _shaped(self, amounts: Mapping[str, Fraction]) -> Fraction | Mapping[str, Fraction]:
        """One amount for a table over one root, or amounts by the roots' names."""
        if len(self._roots) <= 1:
            return next((amounts.get(root, ZERO) for root in self._roots), ZERO)
        labels = self._root_labels()
        return MappingProxyType({labels[root]: amounts.get(root, ZERO) for root in self._roots})

    def _root_labels(self) -> dict[str, str]:
        """The names to show for the roots: the owner's, unless two owners chose the same."""
        owners = list(self._roots.values())
        return {root: label if owners.count(label) == 1 else root for root, label in self._roots.items()}

    # ── deriving ─────────────────────────────────────────────────────────────────────

    def _with(self, **changed: Any) -> Self:
        """This handle with other facts: the same variable of the same system."""
        facts: dict[str, Any] = {
            "system": self._system,
            "variable": self._variable,
            "transformation": self._transformation,
            "roots": self._roots,
            "columns": self._columns,
            "budgets": self._budgets,
            "within": self._within,
        }
        copy = type(self)(self._schema, self._made, **{**facts, **changed})
        copy._keeps = self  # the variable lives as long as one of its handles
        return copy

    def _derive(
        self,
        transformation: Transformation,
        *others: "Handle",
        label: str,
        columns: Mapping[str, Column] | None = None,
        within: Within | None = None,
    ) -> Self:
        """F(this, others…) under a fresh variable; inside each person, if that is how it is made."""
        refuse_inside_a_lambda()
        parents: tuple[Handle, ...] = (self, *others)
        schemas = [parent._schema for parent in parents]
        schema = apply(transformation, schemas)
        system = common_system(parents)
        facts: dict[str, Any] = {
            "roots": {root: name for parent in parents for root, name in parent._roots.items()},
            "columns": columns,
            "budgets": frozenset(budget for parent in parents for budget in parent._budgets),
        }
        if within is not None:
            made = Made(label, parents, rows_per_unit=rows_at_most(within.body))
            assign = Assign(fresh_variable(), Flatten(within.body), (within.root,))
        else:
            private = [bool(parent._roots) for parent in parents]
            stability = bounded_stability(transformation, private, schemas)
            made = Made(label, parents, stability)
            if system is None:
                return type(self)(schema, made, transformation=transformation, **facts)
            arguments = tuple(parent._variable_in(system) for parent in parents)
            assign = Assign(fresh_variable(), transformation, arguments)
        assert system is not None
        system.act(assign)
        return self._handle(schema, made, system=system, variable=assign.target, within=within, **facts)

    def _handle(self, schema: Schema, made: Made, *, system: System, variable: str, **facts: Any) -> Self:
        """A handle on a variable, which is dropped with the handle."""
        handle = type(self)(schema, made, system=system, variable=variable, **facts)
        finalize(handle, system.drop, variable).atexit = False
        return handle

    def _variable_in(self, system: System) -> TableVariable:
        """The variable of this table in a system; a public table is bound there if it is not yet."""
        if self._system is system:
            return self._variable
        if self._system is not None:
            raise KernelViolation("a protected table is in one system only")
        if system not in self._bound:
            assert self._transformation is not None
            arguments = tuple(parent._variable_in(system) for parent in self._made.parents)
            variable = fresh_variable()
            system.act(Assign(variable, self._transformation, arguments))
            self._bound[system] = variable
        return self._bound[system]

    def _bound_somewhere(self) -> Self:
        """This table, in a system: a public one that is in none goes to the reference engine's."""
        if self._system is not None:
            return self
        system = system_for("reference")
        return self._with(system=system, variable=self._variable_in(system))

    _keeps: "Handle | None" = None


def common_system(handles: tuple[Handle, ...]) -> System | None:
    """The one system of several tables; None if all of them are public."""
    systems = {id(handle._system): handle._system for handle in handles if handle._system is not None}
    if len(systems) > 1:
        raise BadTransformation(
            "these tables are in different systems: protect them with the same engine (and ledger) "
            "to use them together"
        )
    return next(iter(systems.values()), None)
