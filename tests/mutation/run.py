"""Random one-line mutants of the kernel: each must be killed, or be listed as equivalent with the reason.

python tests/mutation/run.py [how many] [seed]    a sample; 0 for all of them
"""

import os
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

from mutations import Mutation, mutations

HERE = Path(__file__).parent
MODEL = HERE.parents[1] / "src" / "fpinq" / "model"
# The rules and the accounting. Expressions, queries and the work bound have suites of their own.
MODULES = (
    "accounts",
    "books",
    "closed",
    "keys",
    "maps",
    "notions",
    "partitions",
    "plans",
    "semantics",
    "sessions",
    "traces",
    "transformations",
    "units",
)
TESTS = (
    "test_transformations",
    "test_semantics",
    "test_accounts",
    "test_closed",
    "test_queries",
    "test_sessions",
    "test_units",
    "test_maps",
    "test_alike",
    "test_keys",
    "test_books",
    "test_notions",
)
SUITE = [
    *(str(HERE.parent / "model" / f"{name}.py") for name in TESTS),
    str(HERE.parent / "traces"),
    str(HERE / "killing.py"),
]
SECONDS = 300


def every_mutation() -> list[tuple[str, Mutation]]:
    """All mutations of the model, each with its module's name."""
    return [
        (path.stem, mutation)
        for path in (MODEL / f"{name}.py" for name in MODULES)
        for mutation in mutations(path.read_text(encoding="utf-8"), path.stem)
    ]


def survives(module: str, mutation: Mutation) -> bool:
    """Whether the suite passes although the module is mutated."""
    with tempfile.NamedTemporaryFile("w", suffix=".py", encoding="utf-8") as file:
        file.write(f"fpinq.model.{module}\n{mutation.source}")
        file.flush()
        plugins = ("-p", "mutation.plugin", "-p", "no:cacheprovider")
        command = [sys.executable, "-m", "pytest", "-x", "-q", *plugins]
        environment = {**os.environ, "MUTANT": file.name, "PYTHONPATH": _path()}
        try:
            done = subprocess.run(
                [*command, *SUITE], env=environment, capture_output=True, timeout=SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return False  # endless is noticed
        return done.returncode == 0


def _path() -> str:
    return os.pathsep.join([str(HERE.parents[1] / "src"), str(HERE.parent), os.environ.get("PYTHONPATH", "")])


def main(count: int = 24, seed: int = 11) -> int:
    """0 if exactly those survive that are listed."""
    equivalent = tomllib.loads((HERE / "equivalent.toml").read_text(encoding="utf-8"))
    every = every_mutation()
    unknown = set(equivalent) - {mutation.name for _, mutation in every}
    # By name: what changes elsewhere in the model leaves the sample as it is.
    every.sort(key=lambda each: sha256(f"{seed} {each[1].name}".encode()).digest())
    sample = every[: count or None]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        verdicts = pool.map(lambda each: survives(*each), sample)
        said = [
            _said(m, survived, m.name in equivalent)
            for (_, m), survived in zip(sample, verdicts, strict=True)
        ]
    for name in sorted(unknown):
        print(f"LISTED, but there is no such mutant: {name}")
    wrong = len(unknown) + said.count("SURVIVED") + said.count("KILLED")
    print(f"{len(sample)} of {len(every)} mutants: {said.count('killed')} killed, {wrong} wrong")
    return 1 if wrong else 0


def _said(mutation: Mutation, survived: bool, listed: bool) -> str:
    """In capitals what is wrong: an unlisted mutant that survived, or a listed one that was killed."""
    word = ("equivalent" if survived else "KILLED") if listed else ("SURVIVED" if survived else "killed")
    print(f"{word:<10}  line {mutation.line:>4}  {mutation.name}", flush=True)
    return word


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:3])))
