# %% [markdown]
# # A remote analysis
#
# The data stays with its owner; a program elsewhere asks over HTTP, with a token. Everything else is as
# embedded.
#
# Cells for a notebook, or a program: `python examples/remote.py [folder]`. It starts the owner's server
# itself, on this machine, and needs `pip install ".[server]"` in a clone.

# %%
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from data import folder, make

import fpinq as fp
from fpinq import _

fpinq = [sys.executable, "-m", "fpinq"]

# %% [markdown]
# ## The owner
#
# Puts a table under a budget, says what is public about it, and gives a token to somebody.


# %%
def owner(where: Path, files: Path) -> str:
    """Set up a server's folder; the analyst's token."""
    add = [*fpinq, "dataset", "add", "people", str(files / "people.parquet"), "--budget", "1"]
    public = ["--rows-at-most", "1000000", "--bounds", "age=0:110", "--keys", "gender=0,1"]
    subprocess.run([*add, *public, "--cap", "ada=0.5"], cwd=where, check=True)
    token = subprocess.run([*fpinq, "token", "create", "ada"], cwd=where, check=True, stdout=subprocess.PIPE)
    return token.stdout.decode().strip()


# %% [markdown]
# ## The analyst
#
# Has an address and a token, and no data.


# %%
def analyst(url: str, token: str) -> None:
    """Ask until the share is spent."""
    people = fp.connect(url, token)["people"]
    print(people)
    adults = people.where(_.age > 17)
    print("\nadults:", adults.noisy_count(0.1))
    print(adults.query(0.2, fp.several(n=fp.count(), age=fp.average("age")), by="gender"))
    print("left of ada's share of the budget:", people.remaining)
    try:
        people.noisy_count(0.5)
    except fp.BudgetExceeded as refusal:
        print("⊥ ", refusal)


# %%
with TemporaryDirectory() as temporary:
    token = owner(Path(temporary), make(folder()).resolve())
    server = subprocess.Popen(
        [*fpinq, "serve", "--port", "0"], cwd=temporary, stderr=subprocess.PIPE, encoding="utf-8"
    )
    try:
        assert server.stderr is not None
        said = next(line for line in server.stderr if " at http://" in line)
        analyst(said.split(" at ")[1].split()[0], token)
    finally:
        server.terminate()
        server.wait()
    subprocess.run([*fpinq, "ledger", "spending", "fpinq.ledger"], cwd=temporary, check=True)
