"""Transformations, plans and queries as proof/ writes them, on rows of nullable integers (proof/Rows.v).

What a program supplies, the functions, is written out too; where a record is
made of the key alone it is written with the key alone, so that a constant that
relies on that is compared only where it holds.
"""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import assert_never

from fpinq.model.clamps import Clamp
from fpinq.model.expressions import Apply, Column, Expression, Literal, Schema, Value
from fpinq.model.operators import evaluate
from fpinq.model.plans import (
    Flatten,
    Persons,
    PersonTable,
    Plan,
    RootTable,
    Term,
    Transformation,
    rows_at_most,
    shape_of,
)
from fpinq.model.queries import (
    Balance,
    Brackets,
    Choice,
    Count,
    CrossMoments,
    Depth,
    Frequencies,
    Lagrange,
    Moments,
    Offset,
    PrimitiveQuery,
    Rank,
    Ranks,
    Sum,
    Summary,
    Tally,
    Tree,
)
from fpinq.model.transformations import (
    Aggregate,
    Aggregates,
    Concat,
    ConcatAll,
    Distinct,
    Except,
    Explode,
    First,
    GroupBy,
    GroupJoin,
    Identity,
    Intersect,
    Join,
    LimitPerKey,
    LiteralTable,
    PartOf,
    Select,
    SelectMany,
    SemiJoin,
    Take,
    Truncation,
    Union,
    UniqueBy,
    Where,
    every_column,
)

Cells = Mapping[Expression, str]

# Texts have numbers in Coq, in their order.
TEXTS = ("a", "a b", "a b a b", "b", "b a b")


class NotWritten(Exception):
    """It cannot be written in Coq, or not with these cells."""


# ── tables ───────────────────────────────────────────────────────────────────────────


def cell(value: Value) -> str:
    """A value as Coq reads it."""
    if value is None:
        return "None"
    return f"Some ({TEXTS.index(value) if isinstance(value, str) else _integer(value)})%Z"


def shown(value: Value) -> str:
    """A value as Coq prints it."""
    if value is None:
        return "_"
    return str(TEXTS.index(value) if isinstance(value, str) else _integer(value))


def _integer(value: Value) -> int:
    if not isinstance(value, int):
        raise NotWritten(value)
    return int(value)


def row(record: Iterable[Value]) -> str:
    return _list(map(cell, record))


def table(records: Iterable[Iterable[Value]]) -> str:
    return _list(map(row, records))


def _list(terms: Iterable[str]) -> str:
    return "[" + "; ".join(terms) + "]"


# ── expressions ──────────────────────────────────────────────────────────────────────


def written(value: Expression, cells: Cells) -> str:
    """An expression, made of expressions whose cells are known; NotWritten if that is not enough."""
    if value in cells:
        return cells[value]
    match value:
        case Literal(value=constant):
            return f"({cell(constant)})"
        case Apply(operator=("equal" | "add" | "multiply" | "floor_divide") as operator, arguments=arguments):
            return f"({operator} {' '.join(written(argument, cells) for argument in arguments)})"
        case _:
            raise NotWritten(value)


def _cells(schema: Schema, variable: str, side: str = "") -> dict[Expression, str]:
    return {Column(side + name): f"(column {i} {variable})" for i, name in enumerate(schema.names())}


def _key_cells(keys: Sequence[Expression], variable: str, side: str = "") -> dict[Expression, str]:
    return {_beside(side, key): f"(column {i} {variable})" for i, key in enumerate(keys)}


def _beside(side: str, value: Expression) -> Expression:
    match value:
        case Column(name=name):
            return Column(side + name)
        case Apply(operator=operator, arguments=arguments):
            return Apply(operator, tuple(_beside(side, argument) for argument in arguments))
        case _:
            return value


def _record(values: Iterable[Expression], cells: Cells) -> str:
    return _list(written(value, cells) for value in values)


def _key(keys: Sequence[Expression], schema: Schema) -> str:
    return f"(fun r => {_record(keys, _cells(schema, 'r'))})"


def _join_key(keys: Sequence[Expression], schema: Schema) -> str:
    return f"(fun r => present {_record(keys, _cells(schema, 'r'))})"


# ── aggregates ───────────────────────────────────────────────────────────────────────


def _aggregate(aggregate: Aggregate, schema: Schema, members: str) -> str:
    match aggregate.function, aggregate.value:
        case "count", None:
            return f"(counted {members})"
        case "sum", Clamp(value=value, lower=lower, upper=upper):
            return f"(summed ({lower}) ({upper}) (fun r => {written(value, _cells(schema, 'r'))}) {members})"
        case ("min" | "max") as function, (Column() | Apply() | Literal()) as value:
            return f"(best Z.{function} (fun r => {written(value, _cells(schema, 'r'))}) {members})"
        case _:
            raise NotWritten(aggregate)


def _aggregates(aggregates: Aggregates, schema: Schema, members: str) -> str:
    return _list(_aggregate(aggregate, schema, members) for _, aggregate in aggregates)


def _of_keys(aggregates: Aggregates, keys: Sequence[Expression]) -> str | None:
    """The aggregates, if the key is all that they need: extremes of equal values."""
    values = [a.value for _, a in aggregates if a.function in ("min", "max")]
    try:
        if len(values) == len(aggregates):
            return _record([v for v in values if isinstance(v, Expression)], _key_cells(keys, "k"))
    except NotWritten:
        pass
    return None


# ── transformations ──────────────────────────────────────────────────────────────────


def shape(transformation: Transformation, schemas: Sequence[Schema]) -> str:
    """The transformation as proof/Plans.v names it."""
    match transformation:
        case LiteralTable():
            return "Literal"
        case SelectMany(at_most=k) | Explode(at_most=k):
            return f"(SelectMany {k})"
        case Take(at_most=k):
            return f"(Take {k})"
        case GroupBy(keys=keys, aggregates=aggregates):
            told = _of_keys(aggregates, [value for _, value in keys]) is not None
            return f"(GroupBy {'true' if keys else 'false'} {'Key' if told else 'Rows'})"
        case LimitPerKey(at_most=k, keys=keys):
            whole = set(every_column(schemas[0])) <= set(keys)
            return f"(LimitPerKey {k} {'WholeRecord' if whole else 'SomeKey' if keys else 'NoKey'})"
        case ConcatAll(tables=tables):
            return _concat_of(tables)
        case Union(bag=bag) | Intersect(bag=bag) | Except(bag=bag):
            return f"({type(transformation).__name__} {'OfBags' if bag else 'OfSets'})"
        case SemiJoin(keep=keep):
            return f"(SemiJoin {str(keep).lower()})"
        case GroupJoin(left_aggregates=left, right_aggregates=right):
            return f"(GroupJoin {'Rows' if left else 'Key'} {'Rows' if right else 'Key'})"
        case Join(left=left, right=right):
            sights = _sights(transformation, schemas)
            name = "OuterJoin" if transformation.outer else "Join"
            return f"({name} {_mode(left)} {sights[0]} {_mode(right)} {sights[1]})"
        case PartOf():
            return "Where"
        case Flatten(body=body):
            return f"(Flatten {rows_at_most(body)})"
        case _:
            return type(transformation).__name__


def _mode(truncation: Truncation) -> str:
    return f"(First {truncation.at_most})" if isinstance(truncation, First) else type(truncation).__name__


def _sights(join: Join, schemas: Sequence[Schema]) -> tuple[str, str]:
    """Of each side, whether the record can be written with its key alone."""
    lefts = _is_written(join, {**_key_cells(join.left_keys, "x", "l."), **_cells(schemas[1], "y", "r.")})
    rights = _is_written(join, {**_cells(schemas[0], "x", "l."), **_key_cells(join.right_keys, "y", "r.")})
    return "Key" if lefts else "Rows", "Key" if rights else "Rows"


def _is_written(join: Join, cells: Cells) -> bool:
    try:
        _record([value for _, value in join.record], cells)
    except NotWritten:
        return False
    return True


def arguments(transformation: Transformation, schemas: Sequence[Schema]) -> str:
    """What the program supplies: the functions."""
    match transformation:
        case LiteralTable(rows=rows):
            return table(rows)
        case Select(record=record):
            return _key([value for _, value in record], schemas[0])
        case Where(predicate=predicate):
            return f"(fun r => holds {written(predicate, _cells(schemas[0], 'r'))})"
        case PartOf(by=by, index=index):
            return f"(fun r => same {written(by.key, _cells(schemas[0], 'r'))} ({cell(by.keys[index])}))"
        case SelectMany(records=records):
            made = (_record([value for _, value in record], _cells(schemas[0], "r")) for record in records)
            return f"(fun r => {_list(made)})"
        case Explode():
            return _pieces(transformation, schemas[0])
        case GroupBy():
            return _group_by(transformation, schemas[0])
        case LimitPerKey(keys=keys) if not keys:
            return "tt"
        case LimitPerKey(keys=keys) if set(every_column(schemas[0])) <= set(keys):
            return f"(telling {len(keys)} {_key(keys, schemas[0])} (fun r => eq_refl))"
        case LimitPerKey(keys=keys) | UniqueBy(keys=keys):
            return _key(keys, schemas[0])
        case SemiJoin(left_keys=lefts, right_keys=rights):
            return f"({_join_key(lefts, schemas[0])}, {_join_key(rights, schemas[1])})"
        case GroupJoin(left_keys=lefts, right_keys=rights):
            left = _aggregates(transformation.left_aggregates, schemas[0], "M")
            right = _aggregates(transformation.right_aggregates, schemas[1], "N")
            keys = f"{_join_key(lefts, schemas[0])}, {_join_key(rights, schemas[1])}"
            return f"({keys}, fun k M N => Some (k ++ {left} ++ {right})%list)"
        case Join(left_keys=lefts, right_keys=rights, record=record):
            cells = _seen(transformation, schemas)
            made = f"fun x y => {_record([value for _, value in record], cells)}"
            if transformation.outer:
                nothing = row([None] * len(schemas[1].columns))
                return f"({_key(lefts, schemas[0])}, {_key(rights, schemas[1])}, has_null, {nothing}, {made})"
            return f"({_join_key(lefts, schemas[0])}, {_join_key(rights, schemas[1])}, {made})"
        case Flatten():
            raise NotWritten("a person's plan is written as a whole")
        case Identity() | Distinct() | Take() | Concat() | Union() | Intersect() | Except() | ConcatAll():
            return "tt"
        case _:
            assert_never(transformation)


def _concat_of(tables: int) -> str:
    if tables != 2:
        raise NotWritten("one concat after the other")
    return "Concat"


def _pieces(explode: Explode, schema: Schema) -> str:
    (name,) = schema.names()
    known = [None, *TEXTS]
    made = {text: evaluate(explode.value, {name: text}) or [] for text in known}
    return "(lookup " + _list(f"({row([t])}, {table([p] for p in ps)})" for t, ps in made.items()) + ")"


def _group_by(group: GroupBy, schema: Schema) -> str:
    keys = [value for _, value in group.keys]
    told = _of_keys(group.aggregates, keys)
    made = _aggregates(group.aggregates, schema, "M") if told is None else told
    if not keys:
        return f"(fun M => {made})"
    return f"({_key(keys, schema)}, fun k M => (k ++ {made})%list)"


def _seen(join: Join, schemas: Sequence[Schema]) -> Cells:
    left, right = _sights(join, schemas)
    lefts = _key_cells(join.left_keys, "x", "l.") if left == "Key" else _cells(schemas[0], "x", "l.")
    rights = _key_cells(join.right_keys, "y", "r.") if right == "Key" else _cells(schemas[1], "y", "r.")
    return {**lefts, **rights}


# ── plans over one person's rows ─────────────────────────────────────────────────────


def plan(body: Plan, persons: Persons) -> str:
    """The plan as proof/Persons.v writes it; tables have numbers."""
    match body:
        case PersonTable(table=name, at_most=at_most):
            return f"(Own {[table for table, _ in persons.tables].index(name)} {at_most})"
        case Term(transformation=transformation, arguments=given):
            schemas = [shape_of(argument, persons) for argument in given]
            inner = _list(plan(argument, persons) for argument in given)
            return f"(Term {shape(transformation, schemas)} {arguments(transformation, schemas)} {inner})"
        case RootTable():
            raise NotWritten(body)


# ── queries ──────────────────────────────────────────────────────────────────────────


def query(primitive: PrimitiveQuery, schema: Schema) -> str:
    """The query as proof/Queries.v names it."""
    match primitive:
        case Count():
            return "Count"
        case Moments(of=of, degree=degree):
            return f"({'Average' if degree == 1 else 'Variance'} {clamp(of, schema)})"
        case Summary(of=of, degree=degree):
            return f"(Summary {clamp(of, schema)} {'true' if degree == 2 else 'false'})"
        case CrossMoments(of=clamps, degrees=degrees, weight=weight, squares=squares):
            factors = zip(clamps, degrees, squares, strict=True)
            listed = _list(
                f"(Build_Factor {clamp(of, schema)} {'true' if degree == 2 else 'false'} {square}%N)"
                for of, degree, square in factors
            )
            return f"(CrossMoments {listed} {weight}%N)"
        case Tally(value=value, values=values):
            listed = _list(f"({shown(each.value)})%Z" for each in values)
            different = f"(Build_Values {listed} ltac:(repeat constructor; simpl; Lia.lia))"
            return f"(Tally (fun r : row => {written(value, _cells(schema, 'r'))}) {different})"
        case Sum(of=of) | Lagrange(of=of) | Offset(of=of) | Frequencies(of=of):
            return f"({type(primitive).__name__} {clamp(of, schema)})"
        case Tree(of=of, branching=branching, height=height):
            return f"(Tree {clamp(of, schema)} {branching} {height})"
        case Rank(of=of, fraction=fraction):
            return f"(Rank {clamp(of, schema)} {_fraction(fraction.numerator, fraction.denominator)})"
        case Ranks(of=of, fractions=fractions):
            listed = _list(_fraction(f.numerator, f.denominator) for f in fractions)
            return f"(Ranks {clamp(of, schema)} {listed})"
        case Depth(of=of, records=records):
            return f"(Depth {clamp(of, schema)} {records}%Z)"
        case Brackets(of=of, fractions=fractions, below=below, above=above):
            each = (
                f"({_fraction(f.numerator, f.denominator)}, ({low}%Z, {high}%Z))"
                for f, low, high in zip(fractions, below, above, strict=True)
            )
            return f"(Brackets {clamp(of, schema)} {_list(each)})"
        case Balance(of=of, fineness=fineness, least_above=above, least_below=below, about=about):
            centre = "None"
            if about is not None:
                centre = f"(Some (({about.numerator})%Z, {about.denominator}%positive))"
            return f"(Balance {clamp(of, schema)} {centre} {fineness}%positive {above}%Z {below}%Z)"
        case Choice(of=(candidate, *others)):
            return f"(Choice {clamp(candidate, schema)} {_list(clamp(c, schema) for c in others)})"
        case _:
            raise NotWritten(primitive)


def clamp(of: Clamp, schema: Schema) -> str:
    """A clamp; that its bounds are in order is decided by computing."""
    value = f"(fun r : row => {written(of.value, _cells(schema, 'r'))})"
    return f"(Build_Clamp {value} ({of.lower})%Z ({of.upper})%Z ltac:(discriminate))"


def fraction(of: Fraction) -> str:
    """A fraction of the records."""
    return _fraction(of.numerator, of.denominator)


def _fraction(a: int, b: int) -> str:
    return f"(Build_Fraction {a}%Z {b}%Z ltac:(split; discriminate) ltac:(reflexivity))"
