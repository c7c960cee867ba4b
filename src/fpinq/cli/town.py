"""A made-up town, for demonstrations: people, and their visits to a clinic. Nobody in it lives."""

from collections.abc import Mapping
from fractions import Fraction
from random import Random
from typing import TYPE_CHECKING

from fpinq.model.expressions import Type

if TYPE_CHECKING:
    from fpinq.server.config import DataSet

CITIES = ("Altdorf", "Bergen", "Calau", "Dornum")
PEOPLE = 20_000


def made_up(people: int = PEOPLE, caps: Mapping[str, Fraction] | None = None) -> "dict[str, DataSet]":
    """The town's data sets; caps are those of the clinic's."""
    from fpinq.server.config import DataSet, TableConfig

    chance, other = Random(2024), Random(1505)
    ages = [max(0, min(100, round(chance.gauss(39, 19)))) for _ in range(people)]
    rows = [
        {
            "person_id": number,
            "age": age,
            "gender": other.randrange(2),
            "city": chance.choices(CITIES, (5, 4, 3, 1))[0],
            "income": 0.0 if age < 16 else round(chance.lognormvariate(10.2, 0.5), 2),
            "owns_home": chance.random() < age / 150,
        }
        for number, age in enumerate(ages)
    ]
    visits = [
        {
            "person_id": chance.randrange(people),
            "month": chance.randrange(1, 13),
            "cost": round(chance.expovariate(1 / 80), 2),
        }
        for _ in range(3 * people)
    ]
    everybody = TableConfig(
        rows,
        schema={
            "person_id": Type.INT64,
            "age": Type.INT64,
            "gender": Type.INT64,
            "city": Type.STRING,
            "income": Type.FLOAT64,
            "owns_home": Type.BOOL,
        },
        columns={
            "age": {"bounds": [0, 110], "description": "in years"},
            "gender": {"keys": [0, 1]},
            "city": {"keys": list(CITIES), "max_length": 20},
            "income": {"bounds": [0, 200_000], "description": "a year, in euro"},
        },
    )
    clinic = TableConfig(
        visits,
        schema={"person_id": Type.INT64, "month": Type.INT64, "cost": Type.FLOAT64},
        rows_per_unit=5,
        columns={
            "month": {"keys": list(range(1, 13))},
            "cost": {"bounds": [0, 500], "description": "in euro"},
        },
        rows_at_most=1_000_000,
        description="One row for each visit of a year",
    )
    return {
        "people": DataSet("people", Fraction(5), {"people": everybody}, description="Everybody in town"),
        "clinic": DataSet(
            "clinic",
            Fraction(3, 2),
            {"visits": clinic},
            unit="person_id",
            caps=caps or {},
            description="Visits to the clinic",
        ),
    }
