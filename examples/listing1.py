"""The paper's Listing 1: average ages of adults by gender, within a budget of 1.

python examples/listing1.py [folder]
"""

import textwrap

from data import folder, make

import fpinq as fp

data = fp.protect(str(make(folder()) / "people.parquet"), budget=1)
print(f"{data}\n")

adults = data.where(lambda x: x.age > 17)
parts = adults.partition(lambda x: x.gender, keys=[0, 1])
for gender, part in parts.items():
    answer = part.noisy_average(0.5, lambda x: x.age, bounds=(0, 110))
    print(f"gender {gender}, average age of adults  {answer}")
print(f"left: {data.remaining}, for the parts together cost what one of them does\n")

print("everybody's average age         ", data.noisy_average(0.5, lambda x: x.age, bounds=(0, 110)))
print(f"left: {data.remaining}\n")

try:
    data.noisy_count(0.1)
except fp.BudgetExceeded as refusal:
    print(textwrap.fill(f"⊥  {refusal}", 100, subsequent_indent="   "), end="\n\n")

print(parts[0].explain())
