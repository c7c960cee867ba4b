"""Nothing is imported before it is needed: counted in processes of their own."""

import ast
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import duckdb
import pytest

import fpinq as fp

# What is slow to import and has a time of its own: an engine, a database, a protocol, a page, arrays.
HEAVY = frozenset(
    [
        "asyncio",
        "concurrent.futures",
        "ctypes",
        "dataclasses",
        "decimal",
        "difflib",
        "duckdb",
        "email",
        "fractions",
        "gzip",
        "hashlib",
        "hmac",
        "html",
        "http",
        "http.client",
        "inspect",
        "json",
        "logging",
        "numpy",
        "pandas",
        "polars",
        "pyarrow",
        "pydoc",
        "secrets",
        "socket",
        "sqlite3",
        "ssl",
        "statistics",
        "subprocess",
        "tempfile",
        "unittest",
        "urllib.request",
    ]
)
# What an answer needs of these, and what DuckDB imports itself.
NEEDED = frozenset(
    [
        "concurrent.futures",
        "dataclasses",
        "decimal",
        "duckdb",
        "email",
        "fractions",
        "hashlib",
        "html",
        "inspect",
        "json",
        "logging",
        "secrets",
        "tempfile",
        "hmac",
        "socket",
    ]
)


def modules_after(program: str, *arguments: str) -> set[str]:
    """What a fresh Python has imported when it has run a program."""
    report = "\nimport sys; names = sorted(sys.modules); import json; print(json.dumps(names))"
    ran = subprocess.run(
        [sys.executable, "-c", program + report, *arguments], capture_output=True, text=True, check=True
    )
    return set(json.loads(ran.stdout.splitlines()[-1]))


def test_importing_fpinq_imports_nothing_that_is_slow() -> None:
    bare, found = modules_after("pass"), modules_after("import fpinq")
    assert {name for name in found - bare if name.partition(".")[0] == "fpinq"} == {"fpinq"}
    assert (found - bare) & HEAVY == set()


def test_the_first_answer_about_a_file_imports_what_it_needs(tmp_path: Path) -> None:
    path = str(tmp_path / "people.parquet")
    duckdb.sql(f"COPY (SELECT range AS age FROM range(100)) TO '{path}'")
    found = modules_after(
        """
import sys, fpinq as fp
data = fp.protect(sys.argv[1], budget=1)
print(data.where(lambda x: x.age > 17).noisy_average(1, lambda x: x.age, bounds=(0, 110)))""",
        path,
    )
    theirs = modules_after("import duckdb; duckdb.connect()")
    assert (found - theirs) & HEAVY <= NEEDED
    assert {"numpy", "sqlite3", "asyncio", "http.client", "subprocess"}.isdisjoint(found)
    folders = {name.split(".")[1] for name in found if name.startswith("fpinq.")}
    assert folders == {"client", "engines", "ledger", "model", "noise", "runtime"}
    assert not {name for name in found if name.startswith(("fpinq.engines.spark", "fpinq.engines.postgres"))}
    assert {"fpinq.ledger.ledger", "fpinq.ledger.store", "fpinq.ledger.anchor"}.isdisjoint(found)


def stated() -> dict[str, tuple[str, str]]:
    """What type checkers are told: each public name, with its module and what it is called there."""
    tree = ast.parse(Path(fp.__file__).read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return {
        alias.asname or alias.name: (str(node.module), alias.name) for node in imports for alias in node.names
    }


def test_a_name_is_what_type_checkers_are_told() -> None:
    assert set(stated()) == {*fp.__all__, "Postgres", "Spark"}
    assert stated() == fp._PLACE_OF


@pytest.mark.parametrize("name", fp.__all__)
def test_a_public_name_is_found_where_it_is(name: str) -> None:
    module, there = stated()[name]
    assert getattr(fp, name) is getattr(import_module(module), there)
    assert name in dir(fp)


def test_a_name_that_nobody_has_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="module 'fpinq' has no attribute 'maen'"):
        fp.maen  # noqa: B018


def test_a_star_import_gives_all_names() -> None:
    names: dict[str, object] = {}
    exec("from fpinq import *", names)
    assert set(fp.__all__) <= set(names)
