"""Aggregates of groups: what is computed of each row, of each group, and of what that gave."""

from collections.abc import Sequence
from dataclasses import replace

from fpinq.engines.sql.expressions import Bindings, Code
from fpinq.engines.sql.relations import UNIT, Lowered, as_columns
from fpinq.model.clamps import MAX_GRID, Clamp
from fpinq.model.expressions import Schema, Type
from fpinq.model.frozen import dataclass
from fpinq.model.transformations import Aggregate, Aggregates


@dataclass(frozen=True)
class Aggregated:
    """An aggregate: what the grouping computes, and the column it becomes."""

    computed: tuple[tuple[str, str], ...]
    result: Code


def aggregate_inputs(
    bindings: Bindings, aggregates: Aggregates, prefix: str, members: str | None = None
) -> tuple[list[tuple[str, Code]], list[Aggregated]]:
    """The columns to aggregate, and how. `members` is a column that is null where a row is no member."""
    inputs: list[tuple[str, Code]] = []
    sums: list[Aggregated] = []
    if members is not None:
        inputs.append((members, Code("1", Type.INT64)))
    for number, (_, aggregate) in enumerate(aggregates):
        name = f"{prefix}{number}"
        sums.append(_aggregate(bindings, aggregate, name, members, inputs))
    return inputs, sums


def _aggregate(
    bindings: Bindings, aggregate: Aggregate, name: str, members: str | None, inputs: list[tuple[str, Code]]
) -> Aggregated:
    type_ = aggregate.type_in(bindings.schema)
    match aggregate.function, aggregate.value:
        case "count", _:
            count = Code(f"n{name}", type_, atom=True, low=0)
            return Aggregated(((count.sql, f"count({members or '*'})"),), count)
        case ("min" | "max") as function, value if value is not None and not isinstance(value, Clamp):
            code = bindings.output(value)
            inputs.append((name, code))
            extreme = replace(code, sql=f"m{name}", level=0, weight=1, atom=True)
            return Aggregated(((extreme.sql, bindings.dialect.extreme(function, name, code.type)),), extreme)
        case function, Clamp() as clamp:
            inputs.append((name, bindings.quantise(clamp)))
            aggregates = bindings.dialect.wide_sum(name, clamp.magnitude)
            sums = [(f"s{name}_{i}", sql) for i, sql in enumerate(aggregates)]
            total = f"({bindings.dialect.total([column for column, _ in sums])})"
            if type_ is Type.INT64:
                return Aggregated(tuple(sums), Code(total, type_))
            amount = _on_the_grid(bindings, total, clamp)
            if function != "average":
                return Aggregated(tuple(sums), Code(amount, type_))
            double = bindings.dialect.type_name(Type.FLOAT64)
            members_sql = f"CASE WHEN n{name} > 0 THEN CAST(n{name} AS {double}) END"
            mean = f"({amount} / {members_sql} + {bindings.double(0.0)})"
            return Aggregated((*sums, (f"n{name}", f"count({name})")), Code(mean, type_))
    raise AssertionError("not an aggregate")


def _on_the_grid(bindings: Bindings, total: str, clamp: Clamp) -> str:
    """A sum of grid points as a double; null where it is not exact."""
    exact = f"{total} BETWEEN {bindings.integer(-MAX_GRID)} AND {bindings.integer(MAX_GRID)}"
    points = f"CAST(CASE WHEN {exact} THEN {total} END AS {bindings.dialect.type_name(Type.FLOAT64)})"
    return f"({bindings.dialect.multiply_floats(points, bindings.double(clamp.step))})"


def grouped(
    table: Lowered,
    schema: Schema,
    source: str,
    names: Sequence[str],
    known: Sequence[Code],
    sums: Sequence[Aggregated],
) -> Lowered:
    """One row per key, and per person: the keys, then the aggregates."""
    groups = [*names, *[UNIT] * table.per_person]
    computed = [f"{sql} AS {name}" for aggregate in sums for name, sql in aggregate.computed]
    # A group without keys exists only if it has a member.
    end = f"GROUP BY {', '.join(groups)}" if groups else "HAVING count(*) > 0"
    inner = f"(SELECT {', '.join([*groups, *computed]) or '1'} FROM {source} AS d {end})"
    codes = [*known, *(aggregate.result for aggregate in sums)]
    columns = as_columns(codes)
    outer = [f"{code.sql} AS {column.sql}" for code, column in zip(codes, columns, strict=True)]
    outer += [UNIT] * table.per_person
    source = f"(SELECT {', '.join(outer)} FROM {inner} AS d)"
    return Lowered(source, schema, columns, table.per_person)
