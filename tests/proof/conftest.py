"""Coq, run on terms: every term of a test in one file, its value as a string."""

import fcntl
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

PROOF = Path(__file__).parents[2] / "proof"
MODULES = ("Bags", "Plans", "Persons", "Mechanisms", "Queries", "Compute", "Rows")
QUALIFIED = ("Closeness", "AtRho", "ComputeBooks")  # whose names are the same as others'
HEADER = f"""
From Coq Require Import QArith List String.
From Fpinq Require Import {" ".join(MODULES)}.
From Fpinq Require {" ".join(QUALIFIED)}.
Import ListNotations.
Set Printing Width 1000000.
"""

Coq = Callable[[Sequence[str]], list[str]]


@pytest.fixture(scope="session")
def coq(tmp_path_factory: pytest.TempPathFactory) -> Coq:
    """What Coq computes for each of several terms; skipped where there is no Coq."""
    if shutil.which("coqc") is None:
        pytest.skip("coqc is not installed: proof and code are not compared here")
    with (PROOF / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = subprocess.run(
            ["make", "-C", str(PROOF), *(f"{module}.vo" for module in (*MODULES, *QUALIFIED))],
            capture_output=True,
            text=True,
            check=False,
        )
    assert made.returncode == 0, made.stderr[-2000:]

    def computed(terms: Sequence[str]) -> list[str]:
        file = tmp_path_factory.mktemp("coq") / "Ask.v"
        file.write_text(HEADER + "".join(f"Compute {term}.\n" for term in terms), encoding="utf-8")
        done = subprocess.run(
            ["coqc", "-Q", str(PROOF), "Fpinq", str(file)],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        found = re.findall(r'= "(.*?)"', done.stdout, flags=re.DOTALL)
        assert len(found) == len(terms)
        return found

    return computed
