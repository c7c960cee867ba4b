"""Tables about the same persons: what they must have in common."""

from collections.abc import Mapping

from fpinq.model.errors import BadData
from fpinq.model.expressions import Schema
from fpinq.model.plans import Persons


def persons_of(unit: str, schemas: Mapping[str, Schema]) -> Persons:
    """The shape of a root of persons; BadData unless every table tells them by the same kind of column."""
    if not schemas:
        raise BadData("persons need one or more tables")
    for table, schema in schemas.items():
        if unit not in schema.names():
            raise BadData(f"table {table!r} has no column {unit!r} to tell the persons by")
    if len({schema.type_of(unit) for schema in schemas.values()}) > 1:
        raise BadData(f"{unit!r} must have the same type in every table")
    return Persons(unit, tuple(schemas.items()))
