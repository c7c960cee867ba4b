"""A corpus of statements: the plan of those that are accepted, the error of those that are not.

After a change that is meant: FPINQ_GOLDEN=write .venv/bin/python -m pytest tests/sql/test_corpus.py
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import fpinq as fp
from fpinq.client.choices import Mode, Quantile
from fpinq.client.extremes import Minimum
from fpinq.sql.combining import Both
from fpinq.sql.explaining import Explanation
from sql.small_town import CERTAIN, differences, in_duckdb, protected, same, without_noise
from sql.small_town import plain as plain_row

HERE = Path(__file__).parent
GOLDEN = HERE / "corpus.golden"
# One number of many that are as good: an outer quantile, a middle of an even number of records, a tie.
NEARLY = (Quantile, Minimum, Mode)


def corpus() -> list[tuple[str, str]]:
    """The statements, each with the family that it is of."""
    found, family = [], ""
    for line in (HERE / "corpus.sql").read_text(encoding="utf-8").splitlines():
        if line.startswith("-- "):
            family = line[3:]
        elif line:
            found.append((family, line))
    return found


@pytest.fixture(scope="module")
def town() -> dict[str, Any]:
    return protected(engine="reference")


@pytest.fixture(scope="module")
def plain() -> Iterator[duckdb.DuckDBPyConnection]:
    with in_duckdb() as connection:
        yield connection


def explained(statement: str, town: dict[str, Any]) -> str:
    """The plan of a statement, or its error: nothing that depends on data or on what was asked before."""
    try:
        said = str(fp.sql(f"EXPLAIN {statement}", **town))
    except fp.ProgramError as error:
        return f"{type(error).__name__}: {error}"
    return re.sub(r"\bt\$\d+\b", "t", said)


def written(town: dict[str, Any]) -> str:
    entries = []
    for family, statement in corpus():
        said = "\n".join(f"    {line}".rstrip() for line in explained(statement, town).splitlines())
        entries.append(f"[{family}] {statement}\n{said}\n")
    return "\n".join(entries)


def test_every_statement_has_the_plan_or_the_error_that_is_written_down(town: dict[str, Any]) -> None:
    found = written(town)
    if os.environ.get("FPINQ_GOLDEN") == "write":
        GOLDEN.write_text(found, encoding="utf-8")
    assert found == GOLDEN.read_text(encoding="utf-8")


def test_the_corpus_is_large_and_of_both_kinds(town: dict[str, Any]) -> None:
    said = [explained(statement, town) for _, statement in corpus()]
    refused = [each for each in said if each.startswith(("BadSQL: ", "BadEpsilon: ")) or "missing: " in each]
    assert len(said) >= 200
    assert len({statement for _, statement in corpus()}) == len(said)
    assert 80 <= len(refused) <= len(said) - 120


def test_every_error_says_where(town: dict[str, Any]) -> None:
    wrong: list[str] = []
    for _, statement in corpus():
        try:
            fp.sql(statement, epsilon=1, **town)
        except fp.BadSQL as error:
            places = error.line, 1 <= error.column <= len(statement) + 1, str(error).splitlines()[-1].strip()
            wrong += [statement] if places != (1, True, "^") else []
    assert wrong == []


def test_what_is_refused_costs_nothing() -> None:
    town = protected(budget=1000, engine="reference")
    refused = 0
    for _, statement in corpus():
        before = town["people"].remaining
        try:
            fp.sql(statement, epsilon=1, **town)
        except fp.ProgramError:
            refused += 1
            assert town["people"].remaining == before
        else:
            explanation: Any = fp.sql(f"EXPLAIN {statement}", epsilon=1, **town)
            spent = before - town["people"].remaining
            # Where no keys are found, nothing is asked of them.
            assert spent == explanation.price or (explanation.program.finders and spent < explanation.price)
    assert refused > 80


def accepted() -> list[str]:
    entries = GOLDEN.read_text(encoding="utf-8").split("\n\n")
    kept = [entry for entry in entries if "    BadSQL: " not in entry and "missing: " not in entry]
    return [entry.splitlines()[0].partition("] ")[2] for entry in kept]


def test_without_noise_every_accepted_statement_is_duckdbs(
    town: dict[str, Any], plain: duckdb.DuckDBPyConnection
) -> None:
    wrong, compared = [], 0
    for statement in accepted():
        theirs = in_full(plain, statement)
        explanation: Any = fp.sql(f"EXPLAIN {statement}", epsilon=1, **town)
        assert isinstance(explanation, Explanation)
        plan = explanation.plan
        with without_noise():
            ours = fp.sql(statement, epsilon=CERTAIN, **town)
        if theirs is not None and isinstance(explanation.program.whole, Both):
            wrong += [f"{statement}: {each}" for each in unlike(ours, theirs)]
            compared += 1
            continue
        if theirs is None or (plan.by and not any(output.of_keys for output in plan.outputs)):
            continue  # without a key in it, there is no telling which row is which
        keys = [output.name for output in plan.outputs if output.of_keys]
        nearly = [each.name for each in plan.outputs if _is_nearly(plan, each.aggregate)]
        renamed = [dict(zip((each.name for each in plan.outputs), row, strict=True)) for row in theirs]
        rows = [{name: value for name, value in row.items() if name not in nearly} for row in renamed]
        sums = [each.name for each in plan.outputs if each.aggregate is not None]
        wrong += [f"{statement}: {each}" for each in differences(ours, rows, keys, sums)]
        compared += 1
    assert not wrong, "\n".join(wrong)
    assert compared > 150


def test_a_row_more_or_another_order_of_a_union_is_seen(town: dict[str, Any]) -> None:
    """Teeth of the comparison."""
    both = "SELECT COUNT(*) AS n FROM people UNION ALL SELECT COUNT(*) FROM visits ORDER BY n"
    with without_noise():
        ours = fp.sql(both, epsilon=CERTAIN, **town)
    assert not unlike(ours, [(60,), (104,)])
    assert unlike(ours, [(104,), (60,)])
    assert unlike(ours, [(60,)])


def unlike(ours: Any, theirs: list[tuple[Any, ...]]) -> list[str]:
    """How rows that are put together differ."""
    found = [tuple(plain_row(line).values()) for line in ours.values()]
    ordered = [len(found) == len(theirs)]
    ordered += [all(map(same, a, b)) for a, b in zip(found, theirs, strict=False)]
    return [] if all(ordered) else [f"{found}, and DuckDB {theirs}"]


def _is_nearly(plan: Any, aggregate: str | None) -> bool:
    return aggregate is not None and isinstance(plan.aggregates[aggregate].query, NEARLY)


# What DuckDB computes otherwise.
OTHERWISE = {
    "VARIANCE": "VAR_POP",  # divided by n here
    "VAR_SAMP": "VAR_POP",
    "STDDEV(": "STDDEV_POP(",
    "COVAR_SAMP": "COVAR_POP",
}


# Where DuckDB raises, or has an infinity, a row has null here.
NO_VALUE = re.compile(r"/ 0|% 0|9223372036854775807")


def in_full(plain: duckdb.DuckDBPyConnection, statement: str) -> list[tuple[Any, ...]] | None:
    """What DuckDB says of a statement; None where it has no value."""
    for ours, theirs in OTHERWISE.items():
        statement = statement.replace(ours, theirs)
    return None if NO_VALUE.search(statement) else plain.execute(statement).fetchall()
