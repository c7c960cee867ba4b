"""Every statement, with noise switched off and bounds wide enough, is what DuckDB says of it itself."""

from typing import Any

import pytest

import fpinq as fp
from sql.small_town import CERTAIN, differences, in_duckdb, protected, same, without_noise
from sql.small_town import plain as plain_row
from sql.statements import Generator

EACH = 225
# Most over the engine that is cheap to ask; it is the oracle of the others.
RUNS = [(seed, "reference") for seed in range(8)] + [(8, "duckdb")]


def test_there_are_enough_of_them() -> None:
    assert EACH * len(RUNS) >= 2000
    generators = [Generator(seed) for seed, _ in RUNS]
    texts = [each.statement().text for each in generators for _ in range(EACH)]
    put_together = [text for text in texts if "ORDER BY 1, b, n" in text]
    values = [text for text in texts if "(SELECT COUNT(*)" in text or "(SELECT MAX(size)" in text]
    assert len(put_together) >= 100
    assert len(values) >= 300


@pytest.mark.parametrize(("seed", "engine"), RUNS)
def test_a_statement_without_noise_is_duckdbs_own(seed: int, engine: str) -> None:
    town, plain = protected(engine=engine), in_duckdb()
    generator = Generator(seed)
    wrong: list[Any] = []
    with without_noise(), plain:
        for _ in range(EACH):
            statement = generator.statement()
            found = plain.execute(statement.text)
            names = [column[0] for column in found.description or ()]
            theirs = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
            ours = fp.sql(statement.text, epsilon=CERTAIN, **town)
            if statement.ordered:
                found_here = [tuple(plain_row(line).values()) for line in ours.values()]
                alike = len(found_here) == len(theirs) and all(
                    all(map(same, a, b.values())) for a, b in zip(found_here, theirs, strict=True)
                )
                wrong += [] if alike else [(statement.text, found_here, theirs)]
                continue
            wrong += [
                (statement.text, each) for each in differences(ours, theirs, statement.keys, statement.empty)
            ]
    assert wrong == []


def test_the_comparison_would_see_a_difference() -> None:
    """Teeth: with noise, or with a bound that is too narrow, rows are not DuckDB's."""
    town, plain = protected(engine="reference"), in_duckdb()
    theirs = [{"s": plain.execute("SELECT SUM(age) FROM people").fetchone()[0]}]  # type: ignore[index]
    assert differences(fp.sql("SELECT SUM(age) AS s FROM people", epsilon="1/100", **town), theirs, ())
    with without_noise():
        narrow = fp.sql("SELECT SUM(CLAMP(age, 0, 50)) AS s FROM people", epsilon=CERTAIN, **town)
        assert differences(narrow, theirs, ())
        assert (
            differences(fp.sql("SELECT SUM(age) AS s FROM people", epsilon=CERTAIN, **town), theirs, ()) == []
        )
