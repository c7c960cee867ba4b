"""A richer analysis: a person as the unit, groups per person, joins, nested partitions, a refusal.

python examples/analysis.py [folder]
"""

import textwrap
from collections.abc import Mapping
from typing import Any

from data import CITIES, folder, make

import fpinq as fp
from fpinq import _

files = make(folder())


def heading(text: str) -> None:
    print(f"\n── {text} {'─' * max(0, 92 - len(text))}\n")


def show(question: str, answer: fp.Answer) -> None:
    """An answer, its 95 % interval and what it was charged."""
    interval = "by its rank: no interval"
    if answer.standard_error is not None:
        low, high = answer.interval(0.95) or (0, 0)
        places = 0 if isinstance(low, int) else 2
        interval = f"95 %: {low:,.{places}f} to {high:,.{places}f}"
    print(f"   {question:<39} {answer!s:>14}   {interval:<30} charged {amount(answer.charged)}")


def amount(charged: Any) -> str:
    """What was charged, or is left: of one root, or of each."""
    if isinstance(charged, Mapping):
        return ", ".join(f"{amount(part)} of {root}" for root, part in charged.items())
    return f"{float(charged):g}"


def derivation(table: fp.Table) -> None:
    print(textwrap.indent(f"\n{table.explain()}\n", "   "))


# People and their visits are about the same persons: one root, one budget, a person as the unit.
town = fp.protect(
    {"people": str(files / "people.parquet"), "visits": str(files / "visits.parquet")},
    unit="person_id",
    rows_per_unit={"people": 1, "visits": 6},
    budget=3,
    name="town",
    columns={
        "people": {"age": fp.Column(bounds=(0, 110)), "city": fp.Column(keys=CITIES)},
        "visits": {"cost": fp.Column(bounds=(0, 500))},
    },
)
people, visits = town["people"], town["visits"]

heading("filter: adults, and what they earn")
adults = people.where(_.age >= 18)
show("how many adults", adults.noisy_count(0.1))
show("their average income", adults.noisy_average(0.2, _.income, bounds=(0, 150_000)))
show("their median age", adults.noisy_median(0.1, _.age))
derivation(adults)

heading("groups per person: who comes often")
regulars = (
    visits.group_by(_.person_id)
    .where(_.count() >= 4)
    .select(lambda g: {"person_id": g.key, "visits": g.count(), "spent": g.sum(_.cost)})
)
show("persons with four visits or more", regulars.noisy_count(0.1))
show("what they spent, on average", regulars.noisy_average(0.2, _.spent, bounds=(0, 3000)))
derivation(regulars)

heading("a join inside a person: the cost of visits by city, in one parallel query")
joined = people.join(visits, on="person_id", select=lambda p, v: {"city": p.city, "cost": v.cost})
for city, answer in joined.query(0.05, fp.average(_.cost), by=_.city, keys=CITIES).items():
    show(f"average cost in {city}", answer)
derivation(joined)

heading("a bounded join of two roots: adults in households with an electric car")
cars = fp.protect(str(files / "cars.parquet"), budget=1, name="cars")
electric = adults.join(cars.where(_.electric), on="household", left=fp.first(2), right=fp.first(1))
show("pairs of an adult and an electric car", electric.noisy_count(0.1))
derivation(electric)

heading("nested partitions, asked in any order: all for the price of the most asked part")
before = people.remaining
by_gender = people.partition(_.gender, keys=[0, 1])
for gender, part in by_gender.items():
    bands = part.partition(lambda x: x.age // 30, keys=[0, 1, 2])
    for band, members in bands.items():
        show(f"gender {gender}, aged {30 * band} to {30 * band + 29}", members.noisy_count(0.1))
print(f"\n   six answers at ε = 0.1 cost {amount(before - people.remaining)} in all")

heading("a refusal")
print(f"   left: {amount(people.remaining)} of town, {amount(cars.remaining)} of cars")
print(f"   the price of ε = 1 on the visits is {visits.price(1)}\n")
try:
    visits.noisy_count(1)
except fp.BudgetExceeded as refusal:
    print(textwrap.fill(f"⊥  {refusal}", 100, initial_indent="   ", subsequent_indent="      "))
print()
