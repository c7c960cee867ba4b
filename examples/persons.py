# %% [markdown]
# # Persons as the unit
#
# A promise about a row is none to somebody with a hundred rows. Say whose rows they are, and how many
# each may have.
#
# Cells for a notebook, or a program: `python examples/persons.py [folder]`.

# %%
from data import folder, make

import fpinq as fp
from fpinq import _

files = make(folder())
town = fp.protect(
    {"people": files / "people.parquet", "visits": files / "visits.parquet"},
    unit="person_id",
    rows_per_unit={"people": 1, "visits": 5},
    budget=3,
)
people, visits = town["people"], town["visits"]

# %% [markdown]
# Both tables are about the same people and share one budget. A visit more changes a count by one, a
# person more by up to five: that is the scaling factor.

# %%
print("factors:", people.scaling_factor, visits.scaling_factor)
print("a count of people at 0.1 costs", people.price(0.1), "and one of visits", visits.price(0.1))
print("visits:", visits.noisy_count(0.1), "  left:", people.remaining)

# %% [markdown]
# What stays inside one person stays cheap: visits per person is one record each.

# %%
each = visits.group_by(_.person_id).select(lambda g: {"person_id": g.key, "n": g.count()})
print(each.explain())
print("people with 3 visits or more:", each.where(_.n >= 3).noisy_count(0.2))

# %% [markdown]
# So does a join on the person: who goes, by age.

# %%
visitors = people.join(each, on="person_id")
print(
    "average age of those with 3 or more:",
    visitors.where(_.n >= 3).noisy_average(0.5, "age", bounds=(0, 110)),
)

# %% [markdown]
# What looks across persons does not: a record of a month is made of the visits of many.

# %%
by_month = visits.group_by(_.month).select(lambda g: {"month": g.key, "n": g.count()})
print("factor of visits by month, as a table:", by_month.scaling_factor)
counts = visits.query(0.2, fp.count(), by="month", keys=range(1, 13))
print("as a question of parts it is", visits.scaling_factor, "again:")
print(counts)
print("left:", people.remaining)
