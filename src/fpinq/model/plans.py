"""Plans: terms F(t₁…tₙ) over the transformations.

What F computes (⟦F⟧) is left to an engine; `engines.reference` says it in plain
Python. A plan is a closed term, so the same plan runs on every engine.
"""

from collections.abc import Sequence
from dataclasses import field
from typing import ClassVar
from typing import Literal as Tag

from fpinq.model.accounts import Stability, Unbounded
from fpinq.model.errors import BadTransformation, UnboundedStability, WrongArity
from fpinq.model.expressions import Schema
from fpinq.model.frozen import dataclass
from fpinq.model.nesting import deepest
from fpinq.model.transformations import (
    Concat,
    ConcatAll,
    Distinct,
    Except,
    Explode,
    GroupBy,
    GroupJoin,
    Identity,
    Intersect,
    Join,
    LimitPerKey,
    LiteralTable,
    Partitioning,
    PartOf,
    Select,
    SelectMany,
    SemiJoin,
    Take,
    Union,
    UniqueBy,
    Where,
    check_count,
)

# A plan is a tree: a shared table counts as often as it is used.
MAX_DEPTH = 250
MAX_NODES = 50_000

# An engine nests what it is told: a step of a plan this often, an operator of its expressions this often.
# Beyond so many levels it could fail, and that would be after the charge.
STEP_LEVELS = 9
OPERATOR_LEVELS = 3
MAX_LEVELS = 3_600


@dataclass(frozen=True)
class Persons:
    """The shape of a root whose records are persons: each holds rows of several tables."""

    unit: str
    tables: tuple[tuple[str, Schema], ...]

    op = "persons"

    def table(self, name: str) -> Schema:
        """The schema of one of the tables."""
        for table, schema in self.tables:
            if table == name:
                return schema
        raise BadTransformation(f"no table {name!r} about these persons")


Shape = Schema | Persons
_ROWS = {Schema}


@dataclass(frozen=True)
class Flatten:
    """What a plan over one person's rows gives, for every person.

    Its stability is the most rows the plan can give for one person, whatever
    happens among that person's rows.
    """

    body: "Plan"
    op: Tag["flatten"] = field(default="flatten", repr=False)

    @property
    def stability(self) -> tuple[Stability, ...]:
        return (rows_at_most(self.body),)

    def shape(self, persons: Shape) -> Schema:
        if not isinstance(persons, Persons):
            raise BadTransformation("flatten needs a root whose records are persons")
        return shape_of(self.body, persons)

    def rows_at_most(self, table: int) -> int:
        return rows_at_most(self.body) * table


Transformation = (
    LiteralTable
    | Identity
    | Select
    | Where
    | Distinct
    | SelectMany
    | Explode
    | Take
    | GroupBy
    | LimitPerKey
    | UniqueBy
    | Concat
    | ConcatAll
    | Union
    | Intersect
    | Except
    | SemiJoin
    | GroupJoin
    | Join
    | PartOf
    | Flatten
)


# ── terms ────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class RootTable:
    """A root data set's own table."""

    root: str
    op: Tag["root"] = field(default="root", repr=False)


@dataclass(frozen=True)
class PersonTable:
    """One person's rows of a table: the first at_most, in the canonical order."""

    table: str
    at_most: int
    op: Tag["person_table"] = field(default="person_table", repr=False)


@dataclass(frozen=True)
class Term:
    """F(t₁…tₙ)."""

    transformation: Transformation
    arguments: tuple["Plan", ...]
    op: Tag["term"] = field(default="term", repr=False)
    depth: int = field(init=False, repr=False, compare=False)
    nodes: int = field(init=False, repr=False, compare=False)
    levels: int = field(init=False, repr=False, compare=False)

    # Set when it is first asked for: most are never.
    _hash: ClassVar[int | None] = None

    def __post_init__(self) -> None:
        inside = (self.transformation.body,) if isinstance(self.transformation, Flatten) else ()
        depth, nodes, below = 1, 1, 0
        for plan in self.arguments + inside:
            if isinstance(plan, Term):
                depth, nodes = max(depth, 1 + plan.depth), nodes + plan.nodes
                below = max(below, plan.levels)
            else:
                nodes += 1
        if depth > MAX_DEPTH or nodes > MAX_NODES:
            raise BadTransformation(
                f"the plan is too large: at most {MAX_DEPTH} transformations on top of each other and "
                f"{MAX_NODES} in all, a table counted as often as it is used"
            )
        levels = below + STEP_LEVELS + OPERATOR_LEVELS * deepest(self.transformation)
        if levels > MAX_LEVELS:
            raise BadTransformation(
                "the plan is too deep: fewer transformations with deep expressions on top of each other"
            )
        object.__setattr__(self, "depth", depth)
        object.__setattr__(self, "nodes", nodes)
        object.__setattr__(self, "levels", levels)

    def __hash__(self) -> int:
        waiting = [self] if self._hash is None else []
        while waiting:  # those below first: a deep plan is hashed wherever that is asked
            term = waiting[-1]
            below = [each for each in term.arguments if isinstance(each, Term) and each._hash is None]
            waiting += below
            if not below:
                object.__setattr__(term, "_hash", hash((term.transformation, term.arguments)))
                waiting.pop()
        return self._hash  # type: ignore[return-value]

    def beside(self, by: Partitioning, index: int) -> "Term":
        """Another part of the partition that this is a part of: as large, and as deep."""
        other = object.__new__(Term)
        facts = {**self.__dict__, "transformation": PartOf(by, index)}
        facts.pop("_hash", None)
        other.__dict__.update(facts)
        return other


Plan = RootTable | PersonTable | Term


def apply(transformation: Transformation, shapes: Sequence[Shape]) -> Schema:
    """The schema of F(t₁…tₙ); a typed error if F cannot be applied to tables of these shapes."""
    name = transformation.op
    # A flatten's stability makes sense only once its body does.
    arity = 1 if isinstance(transformation, Flatten) else len(transformation.stability)
    if len(shapes) != arity:
        raise WrongArity(name, arity, len(shapes))
    if not isinstance(transformation, Flatten) and not {*map(type, shapes)} <= _ROWS:
        raise BadTransformation(f"{name} needs a table of rows: flatten the persons first")
    return transformation.shape(*shapes)  # type: ignore[call-arg,arg-type,unused-ignore]


def stability_on(transformation: Transformation, shapes: Sequence[Shape]) -> tuple[Stability, ...]:
    """F's stability on tables of these shapes."""
    match transformation, shapes:
        case LimitPerKey(), (Schema() as table,):
            return transformation.stability_on(table)
        case _:
            return transformation.stability


def bounded_stability(
    transformation: Transformation, private: Sequence[bool], shapes: Sequence[Shape] = ()
) -> tuple[int, ...]:
    """The stability as integers, ∞·0 = 0; UnboundedStability if a private argument has ∞.

    Without shapes it is the one on tables of any shape.
    """
    bounded: list[int] = []
    stability = stability_on(transformation, shapes)
    for argument, (c, is_private) in enumerate(zip(stability, private, strict=True)):
        if isinstance(c, Unbounded):
            if is_private:
                raise UnboundedStability(transformation.op, argument)
            c = 0
        bounded.append(c)
    return tuple(bounded)


def shape_of(body: Plan, persons: Persons) -> Schema:
    """The schema of a plan over one person's rows."""
    match body:
        case PersonTable(table=name, at_most=at_most):
            check_count(at_most, "rows per person")
            return persons.table(name)
        case Term(transformation=transformation, arguments=arguments):
            return apply(transformation, [shape_of(argument, persons) for argument in arguments])
        case RootTable():  # pragma: no branch - exhaustive
            raise BadTransformation("a plan over one person's rows cannot see a whole root")


def rows_at_most(body: Plan) -> int:
    """How many rows a plan over one person's rows can give at the most."""
    match body:
        case PersonTable(at_most=at_most):
            return at_most
        case Term(transformation=transformation, arguments=arguments):
            bounds = [rows_at_most(argument) for argument in arguments]
            return transformation.rows_at_most(*bounds)  # type: ignore[call-arg,arg-type,unused-ignore]
        case RootTable():  # pragma: no branch - exhaustive
            raise BadTransformation("a plan over one person's rows cannot see a whole root")


def roots_of(plan: Plan) -> set[str]:
    """The roots that a plan reads."""
    while isinstance(plan, Term) and len(plan.arguments) == 1:  # a chain, as most are
        (plan,) = plan.arguments
    if isinstance(plan, RootTable):
        return {plan.root}
    found: set[str] = set()
    seen: set[int] = set()
    waiting: list[Plan] = [plan]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, RootTable):
            found.add(node.root)
        elif isinstance(node, Term):
            waiting += node.arguments
    return found
