"""Aggregates of a group's members."""

from typing import Literal as Tag

from fpinq.model.clamps import Clamp, check_clamp
from fpinq.model.errors import BadTransformation
from fpinq.model.expressions import Expression, Schema, Type
from fpinq.model.frozen import dataclass
from fpinq.model.operators import type_of
from fpinq.model.told import Told


@dataclass(frozen=True)
class Aggregate:
    """count, sum, average, min or max of a group's members; nulls are left out.

    sum and average take a Clamp, so that what is added are exact integers. A
    total that its type cannot hold exactly (64 bits, or 2^53 steps for a float
    or an average) is null. The sum of nothing is 0; the average, min and max of
    nothing are null.
    """

    function: Tag["count", "sum", "average", "min", "max"]
    value: Expression | Clamp | None = None

    op = "aggregate"

    def type_in(self, schema: Schema) -> Type:
        """The type of the aggregate of members of this schema."""
        match self.function, self.value:
            case "count", None:
                return Type.INT64
            case (("sum" | "average"), Clamp() as clamp):
                check_clamp(clamp, schema)
                integral = self.function == "sum" and type_of(clamp.value, schema) is Type.INT64
                return Type.INT64 if integral else Type.FLOAT64
            case (("min" | "max"), value) if value is not None and not isinstance(value, Clamp):
                return type_of(value, schema)
            case _:
                raise BadTransformation(
                    "count takes nothing, sum and average a clamp, min and max an expression"
                )

    def is_told(self, by: Told) -> bool:
        """Whether equal keys have equal aggregates: the smallest and the largest of equal values are."""
        value = self.value
        return self.function in ("min", "max") and not isinstance(value, Clamp | None) and by.tell(value)


Aggregates = tuple[tuple[str, Aggregate], ...]


def aggregate_columns(aggregates: Aggregates, table: Schema) -> tuple[tuple[str, Type], ...]:
    return tuple((name, aggregate.type_in(table)) for name, aggregate in aggregates)
