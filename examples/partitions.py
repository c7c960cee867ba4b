# %% [markdown]
# # Partitions, in any order
#
# Parts of a table share its records, one part each. So all parts together cost what the most asked of
# them does, however they are asked: adaptively, later again, nested or merged.
#
# Cells for a notebook, or a program: `python examples/partitions.py [folder]`.

# %%
from data import CITIES, folder, make

import fpinq as fp
from fpinq import _

people = fp.protect(make(folder()) / "people.parquet", budget=1)
by_city = people.partition(_.city, keys=CITIES)

# %% [markdown]
# A first look at every city: four counts for the price of one.

# %%
counts = {city: part.noisy_count(0.1) for city, part in by_city.items()}
for city, count in counts.items():
    print(f"{city:<10}{count!s:>16}   charged {count.charged}")
print("left:", people.remaining)

# %% [markdown]
# Now look closer, but only where there are many people. Which cities these are depends on what was told:
# the account holds for any such program.

# %%
large = [city for city, count in counts.items() if count.value > 8_000]
for city in large:
    median = by_city[city].noisy_median(0.2, _.age, bounds=(0, 110))
    print(f"{city:<10} median age {median}   charged {median.charged}")
print("left:", people.remaining)

# %% [markdown]
# Parts of parts, and two parts together: what is free is what the others have paid for already.

# %%
first, second = (by_city[city] for city in CITIES[:2])
women = first.partition(_.gender, keys=[0, 1])[1]
print("price of 0.1 of the women of", CITIES[0], "=", women.price(0.1))
print("price of 0.1 of both cities together =", first.concat(second).price(0.1))
print(first.concat(second).explain())

# %% [markdown]
# A small city was asked less, so it has something left that costs the whole table nothing.

# %%
small = next(city for city in CITIES if city not in large)
print(f"{small}: 0.2 more costs", by_city[small].price(0.2))
print(by_city[small].noisy_average(0.2, _.age, bounds=(0, 110)), "   left:", people.remaining)
