# %% [markdown]
# # ε in five minutes
#
# Cells for a notebook, or a program: `python examples/epsilon.py [folder]`.

# %%
from data import folder, make

import fpinq as fp
from fpinq import _

people = fp.protect(make(folder()) / "people.parquet", budget=2)

# %% [markdown]
# The same question three times. Each answer has noise of its own, and says how far off it may be.

# %%
for epsilon in (0.01, 0.1, 1):
    answer = people.noisy_count(epsilon)
    print(f"ε = {epsilon:<5} {answer!s:>20}   charged {answer.charged}")

# %% [markdown]
# Ten times the ε, a tenth of the noise. What was charged is gone:

# %%
print("left:", people.remaining)

# %% [markdown]
# The noise is the same for a large group and a small one, so it matters for the small one.

# %%
young, oldest = people.where(_.age < 30), people.where(_.age > 95)
print("below 30:", young.noisy_count(0.1), "   above 95:", oldest.noisy_count(0.1))

# %% [markdown]
# What it costs and how far off it is are known before it is asked, for nothing.

# %%
print("± at 95 %:", people.expected_error(fp.count(), 0.1))
print("the ε for ± 10:", people.epsilon_for(fp.count(), error=10, confidence=0.95))

# %% [markdown]
# A question that does not fit is refused, and nothing is charged.

# %%
try:
    people.noisy_count(2)
except fp.BudgetExceeded as refusal:
    print("⊥ ", refusal)
print("left, as before:", people.remaining)
