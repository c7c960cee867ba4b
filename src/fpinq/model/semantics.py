"""The transition system: configurations, and one function per rule.

A configuration ⟨P, E, C⟩ is a client program, a table environment and the
accounts. The program is outside: it is whatever sends the next action. A table
in the environment is (T, v), with T a plan, not data; a rule that answers from
data says what to measure and charges for it, and an engine and a mechanism do
the rest. Every rule either raises a ProgramError before anything changes or
returns the one transition there is.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from fractions import Fraction
from functools import partial

from fpinq.model import accounts, books
from fpinq.model.accounts import Accounts, Part, Root, Sensitivity
from fpinq.model.actions import (
    Action,
    AskBudget,
    AskPrice,
    AskScale,
    Assign,
    Partition,
    Query,
    Silent,
)
from fpinq.model.closed import check_closed, each_once
from fpinq.model.environments import Names, Numbered, TableVariable, bind, bind_all, check_number
from fpinq.model.epsilon import delta as exact_delta
from fpinq.model.errors import BadPartition, BadQuery, BadTransformation, UnknownTable
from fpinq.model.expressions import Schema, is_text
from fpinq.model.frozen import dataclass
from fpinq.model.maps import Each
from fpinq.model.notions import ZERO, Amount, Rho, Total, amount_of, asked_at
from fpinq.model.notions import total as exact_total
from fpinq.model.plans import Flatten, Plan, RootTable, Shape, Term, apply, bounded_stability
from fpinq.model.queries import (
    FINDING,
    MAX_BITS_AT_RHO,
    Discovery,
    PrimitiveQuery,
    Sparse,
    Stable,
    simple,
)
from fpinq.model.transformations import Partitioning, PartOf, check_partitioning, checked_schema, parts_of


@dataclass(frozen=True)
class Table:
    """(T, v): a plan, its public shape and its sensitivity."""

    plan: Plan
    shape: Shape
    sensitivity: Sensitivity


@dataclass(frozen=True)
class Configuration:
    """⟨E, C⟩: what the protected system knows, none of it data."""

    environment: Mapping[TableVariable, Table]
    accounts: Accounts

    def table(self, variable: TableVariable) -> Table:
        """E(t); UnknownTable if the program never bound it."""
        found = self.environment.get(variable)
        if found is None:
            raise UnknownTable(variable, self.environment)
        return found


def initial(roots: Mapping[TableVariable, tuple[Shape, Total]]) -> Configuration:
    """Init: every root is its own table with sensitivity {root: 1}; nothing has been charged."""
    c = Configuration({}, Accounts({}))
    for name, (shape, total) in roots.items():
        c = with_root(c, name, shape, total)
    return c


def with_root(c: Configuration, name: TableVariable, shape: Shape, total: Total) -> Configuration:
    """One more root with a budget of its own, as if it had been there from the start."""
    check_closed(shape, Shape)
    check_target(c, name)
    for schema in [shape] if isinstance(shape, Schema) else [schema for _, schema in shape.tables]:
        checked_schema(schema.columns)
    root = Root(name)
    environment = bind(c.environment, {name: Table(RootTable(name), shape, {root: 1})})
    promised = exact_total(total)
    budgets = {**c.accounts.budgets, root: amount_of(promised)}
    opened = books.opened(c.accounts.books, {root: promised})
    return Configuration(environment, replace(c.accounts, budgets=budgets, books=opened))


# ── what an observer sees ────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Tau:
    """τ: nothing."""

    op = "tau"


@dataclass(frozen=True)
class Bottom:
    """⊥: the budget does not allow it."""

    op = "bottom"


@dataclass(frozen=True)
class Told:
    """A public fact."""

    fact: int | Mapping[str, Fraction]

    op = "told"


@dataclass(frozen=True)
class Measure:
    """One answer per part, drawn at ε or ρ from the table or its parts: for the engine and the mechanism.

    There is a query for each part, or one that is the same for all of them. delta is
    charged beside, for keys that nobody knew.
    """

    plan: Plan
    schema: Schema
    by: Partitioning | None
    queries: tuple[PrimitiveQuery, ...]
    epsilon: Amount
    delta: Fraction = ZERO

    @property
    def parts(self) -> int:
        """How many parts are asked, and answer."""
        return parts_of(self.by)

    @property
    def parts_each(self) -> int:
        """Of how many parts each query is asked: of one; or the one that there is, of all."""
        return self.parts // len(self.queries)


TAU, BOTTOM = Tau(), Bottom()
Label = Tau | Bottom | Told | Measure


class Rule(StrEnum):
    """The rules. Their names are written down, so they stay what they are."""

    SILENT = "Silent"
    ASSIGN = "Assign"
    PARTITION = "Partition"
    QUERY = "Query"
    QUERY_BOTTOM = "Query⊥"
    ASK_SCALE = "AskScale"
    ASK_BUDGET = "AskBudget"
    ASK_PRICE = "AskPrice"


@dataclass(frozen=True)
class Transition:
    """c ── label ──▸ configuration, by a rule."""

    rule: Rule
    label: Label
    configuration: Configuration


# ── the rules ────────────────────────────────────────────────────────────────────────


def step(c: Configuration, action: Action) -> Transition:
    """The one rule that applies to action in c."""
    check_closed(action, Action)
    return step_closed(c, action)


def step_closed(c: Configuration, action: Action) -> Transition:
    """The same, of an action that `check_closed` has let pass: replaying asks once for each action."""
    match action:
        case Silent():
            return silent(c)
        case Assign():
            return assign(c, action)
        case Partition():
            return partition(c, action)
        case Query():
            table = c.table(action.table)
            measured = measure(table, action)
            if measured.delta:
                check_distance(c.accounts, table.sensitivity, measured.queries)
            charged = books.charge(c.accounts, table.sensitivity, measured.epsilon, measured.delta)
            if books.fits(c.accounts, charged):
                return query(c, measured, charged)
            return query_bottom(c, charged)
        case AskScale():
            return ask_scale(c, action)
        case AskBudget():
            return ask_budget(c)
        case AskPrice():  # pragma: no branch - exhaustive
            return ask_price(c, action)


def silent(c: Configuration) -> Transition:
    """Silent: the program computes.

    ⟨P, E, C⟩ ── τ ──▸ ⟨P′, E, C⟩
    """
    return Transition(Rule.SILENT, TAU, c)


def assign(c: Configuration, action: Assign) -> Transition:
    """Assign: a table made of tables; sensitivities combine by F's stability.

    F has stability (c₁…cₙ)    E(tᵢ) = (Tᵢ, vᵢ)
    ─────────────────────────────────────────────────────
    ⟨P, E, C⟩ ── τ ──▸ ⟨P′, E[t ↦ (F(T₁…Tₙ), Σ cᵢvᵢ)], C⟩
    """
    check_target(c, action.target)
    arguments = [c.table(variable) for variable in action.arguments]
    shapes = [table.shape for table in arguments]
    shape = apply(action.transformation, shapes)
    private = [bool(table.sensitivity) for table in arguments]
    stability = bounded_stability(action.transformation, private, shapes)
    sensitivity = accounts.combine(stability, [table.sensitivity for table in arguments])
    plan = Term(action.transformation, tuple([table.plan for table in arguments]))
    environment = bind(c.environment, {action.target: Table(plan, shape, sensitivity)})
    return Transition(Rule.ASSIGN, TAU, Configuration(environment, c.accounts))


def partition(c: Configuration, action: Partition) -> Transition:
    """Partition: parts that may be used in any order; each is a fresh source.

    E(t) = (T, v)    π fresh, c_π = v, M_π = 0    Tᵢ = {r ∈ T : f(r) = i}
    ─────────────────────────────────────────────────────────────────────
    ⟨P, E, C⟩ ── τ ──▸ ⟨P′, E[tᵢ ↦ (Tᵢ, {πᵢ: 1})], C + π⟩
    """
    table = c.table(action.table)
    check_partitioning(action.by, rows(table, "partition"))
    check_targets(c, action.targets, len(action.by.keys))
    opened, parts = accounts.partition(c.accounts, table.sensitivity, len(action.targets))
    plan = Term(PartOf(action.by, 0), (table.plan,))
    tables = Each(len(parts), partial(part, plan, action.by, table.shape, parts))
    environment = bind_all(c.environment, action.targets, tables)
    return Transition(Rule.PARTITION, TAU, Configuration(environment, opened))


def part(first: Term, by: Partitioning, shape: Shape, parts: Sequence[Part], number: int) -> Table:
    """(Tᵢ, {πᵢ: 1}), beside the first of them."""
    return Table(first.beside(by, number), shape, {parts[number]: 1})


def query(c: Configuration, measured: Measure, charged: Accounts) -> Transition:
    """Query: answer, and charge every source the table depends on.

        E(t) = (T, v)    C′ = charge(C, v, ε)    C′ ≤ B
        ────────────────────────────────────────────────
        ⟨P, E, C⟩ ── Q⃗(ε, T|f) ──▸ ⟨P′, E, C′⟩

    With a partitioning it is a fresh partition whose parts are asked once each:
    their counters reach ε together, the maximum grows by ε, v·ε is forwarded. Where
    the root has a notion of its own, so it is in its book, at κ for ε (`books`).
    What finds keys that nobody knew is charged δ in the root's book for that, too.
    """
    return Transition(Rule.QUERY, measured, Configuration(c.environment, charged))


def query_bottom(c: Configuration, charged: Accounts) -> Transition:
    """Query⊥: it would cost more than is left; nothing changes.

    E(t) = (T, v)    C′ = charge(C, v, ε)    C′ ≰ B
    ────────────────────────────────────────────────
    ⟨P, E, C⟩ ── ⊥ ──▸ ⟨P′, E, C⟩

    `charged` is a seam: the rule does not look at it, a mutant does.
    """
    return Transition(Rule.QUERY_BOTTOM, BOTTOM, c)


def ask_scale(c: Configuration, action: AskScale) -> Transition:
    """Ask scale: how many records of t one record of the input may change.

    ⟨P, E, C⟩ ── s ──▸ ⟨P′, E, C⟩
    """
    factor = accounts.scaling_factor(c.accounts, c.table(action.table).sensitivity)
    return Transition(Rule.ASK_SCALE, Told(factor), c)


def ask_budget(c: Configuration) -> Transition:
    """Ask budget: what is left at every root, and of every δ for keys.

    ⟨P, E, C⟩ ── B − C ──▸ ⟨P′, E, C⟩
    """
    left = {root.name: amount for root, amount in accounts.remaining(c.accounts).items()}
    return Transition(Rule.ASK_BUDGET, Told(left | books.left_for_keys(c.accounts)), c)


def ask_price(c: Configuration, action: AskPrice) -> Transition:
    """Ask price: what a query of t at ε or ρ, and a δ, would add to every root now, and to every δ for keys.

    ⟨P, E, C⟩ ── charge(C, v, ε, δ) − C ──▸ ⟨P′, E, C⟩
    """
    v, at = c.table(action.table).sensitivity, asked_at(action.epsilon)
    added = {root.name: amount for root, amount in books.price(c.accounts, v, at).items()}
    if action.delta is not None:
        added |= books.price_for_keys(c.accounts, v, at, exact_delta(action.delta))
    return Transition(Rule.ASK_PRICE, Told(added), c)


# ── side conditions ──────────────────────────────────────────────────────────────────


def measure(table: Table, action: Query) -> Measure:
    """What a query measures; a ProgramError if it makes no sense on this table."""
    exact = asked_at(action.epsilon)
    if not FINDING.isdisjoint(map(type, action.queries)):
        return find(table, action, exact)
    schema = rows(table, "query")
    if action.by is not None:
        check_partitioning(action.by, schema)
    if len(action.queries) != 1 and len(action.queries) != action.parts:
        raise BadQuery(
            f"one query for each part, or one for all: {action.parts} part(s), {len(action.queries)} queries"
        )
    for primitive in each_once(action.queries):
        primitive.check(schema)
        if isinstance(exact, Rho):
            check_at_rho(primitive)
    return Measure(table.plan, schema, action.by, action.queries, exact)


def find(table: Table, action: Query, exact: Amount) -> Measure:
    """What a query that finds keys measures: of a table of rows, or of persons, of whom it says which rows.

    A person is one record here, however many rows: the plan has the keys that the person counts in.
    """
    query, *others = action.queries
    if others or not isinstance(query, Discovery):
        raise BadQuery("keys are found by one query, which is the same for all parts")
    if isinstance(exact, Rho):
        check_at_rho(query)
    if query.spread is None:
        schema = rows(table, "query")
        if action.by is not None:
            check_partitioning(action.by, schema)
        query.check(schema)
        return Measure(table.plan, schema, action.by, action.queries, exact, query.delta)
    if action.by is not None:
        raise BadQuery("persons are in no parts: partition their rows, or find their keys, not both")
    query.check(apply(Flatten(query.spread.body), [table.shape]))
    flatten = Flatten(query.body)
    return Measure(
        Term(flatten, (table.plan,)), apply(flatten, [table.shape]), None, action.queries, exact, query.delta
    )


def check_distance(charged: Accounts, sensitivity: Sensitivity, queries: Sequence[PrimitiveQuery]) -> None:
    """BadQuery unless the threshold of keys nobody knew is right for what one record can change.

    tail(τ − 1) ≤ δ alone is right where that is 1: one record of a root may be S records here.
    """
    scale = accounts.scaling_factor(charged, sensitivity)
    for query in queries:
        if isinstance(query, Stable) and query.distance < scale:
            raise BadQuery(
                f"one record may change {scale} records of this table: the keys that are found must be "
                f"safe at that distance, not at {query.distance} (fp.discover does so by itself)"
            )


def check_at_rho(query: PrimitiveQuery) -> None:
    """BadQuery if a query has no mechanism at ρ."""
    if any(each.mechanism == "quotient" for each in simple(query)):
        raise BadQuery("a balance is asked at an ε: at ρ ask for moments")
    if isinstance(query, Sparse) and query.domain.size.bit_length() > MAX_BITS_AT_RHO:
        raise BadQuery(
            f"at ρ a domain has fewer than 2^{MAX_BITS_AT_RHO} keys: shorter texts, or ask at an ε"
        )


def rows(table: Table, what: str) -> Schema:
    """The schema of a table of rows."""
    if isinstance(table.shape, Schema):
        return table.shape
    raise BadTransformation(f"{what} needs a table of rows: flatten the persons first")


def check_target(c: Configuration, target: TableVariable) -> None:
    """A root's own table stays what it is; any other variable may be bound again."""
    if type(target) is not str or not target or not is_text(target):
        raise BadTransformation("a table variable is a name")
    if Root(target) in c.accounts.budgets:
        raise BadTransformation(f"{target!r} is a root: assign to another variable")


def check_targets(c: Configuration, targets: Names, keys: int) -> None:
    """A variable for each key, all of them different, each of which may be bound."""
    if type(targets) is Numbered:
        check_number(targets)
    if len(targets) != keys or (type(targets) is tuple and len(set(targets)) != keys):
        raise BadPartition("partition needs one new table variable for every key")
    for target in to_check(c, targets):
        check_target(c, target)


def to_check(c: Configuration, targets: Names) -> Iterable[TableVariable]:
    """The targets to look at: of many that are numbered, the first, for all have its stem, and the roots."""
    if type(targets) is tuple or len(targets) <= len(c.accounts.budgets):
        return targets
    return [targets[0], *(root.name for root in c.accounts.budgets if root.name in targets)]
