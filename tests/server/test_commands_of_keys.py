"""Keys that nobody listed, from the shell: what is left of a δ, what finding costs, and the keys."""

import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import fpinq as fp
from fpinq.cli.main import main
from fpinq.server import DataSet, TableConfig
from fpinq.server.config import parse
from server.live import Live, serve

ROWS = [{"city": "Oslo" if i % 3 else "Łódź", "sex": i % 2, "age": 20 + i % 50} for i in range(900)]
KEYS = Fraction(1, 10**6)


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    table = TableConfig(ROWS, columns={"age": {"bounds": [0, 110]}})
    with serve(
        tmp_path, {"people": DataSet("people", fp.approximate(10, KEYS, KEYS), {"people": table})}
    ) as it:
        yield it


def ask(live: Live, *arguments: str) -> int:
    return main(["query", "people", *arguments, "--url", live.url, "--token", live.token()])


def left(live: Live) -> tuple[Any, Any]:
    table = fp.connect(live.url, live.token()).table("people")
    return table.remaining, table.remaining_delta


def test_keys_are_found_from_the_shell(live: Live, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(live, "count", "--by", "x.city", "--delta", "1e-9", "--epsilon", "1") == 0
    said = capsys.readouterr().out
    assert "Oslo\t" in said
    assert "Łódź\t" in said
    assert left(live) == (9, KEYS - Fraction(1, 10**9))
    assert ask(live, "count", "--by", "x.city", "--by", "x.sex", "--domain", "strings:16", "--domain",
               "integers:0:9", "--epsilon", "1") == 0  # fmt: skip
    assert "Oslo\t0\t" in capsys.readouterr().out
    assert ask(live, "average", "x.age", "--by", "x.city", "--delta", "1e-9", "--keys-epsilon", "1") == 0
    assert "Oslo\t" in capsys.readouterr().out
    assert ask(live, "budget") == 0
    assert capsys.readouterr().out == "6.9\nδ 9.98e-07\n"
    assert ask(live, "budget", "--json") == 0
    assert '"left δ"' in capsys.readouterr().out


def test_a_dry_run_says_the_delta_and_the_threshold_and_asks_nothing(
    live: Live, capsys: pytest.CaptureFixture[str]
) -> None:
    for of in (["count"], ["average", "x.age", "--keys-epsilon", "1"]):
        assert ask(live, *of, "--by", "x.city", "--delta", "1e-9", "--epsilon", "1", "--dry-run") == 0
        said = capsys.readouterr().out
        assert "δ price" in said
        assert "22 (noisy)" in said
    assert "then left" in said
    assert left(live) == (10, KEYS)


@pytest.mark.parametrize(
    "arguments",
    [
        ["count", "--delta", "1e-9"],
        ["count", "--by", "x.city", "--keys", "Oslo", "--delta", "1e-9"],
        ["count", "--by", "x.city", "--keys-epsilon", "1"],
        ["count", "--by", "x.city", "--per-person", "2"],
        ["count", "--by", "x.city", "--delta", "0"],
        ["count", "--by", "x.city", "--delta", "1"],
        ["count", "--by", "x.city", "--delta", "many"],
        ["count", "--by", "x.city", "--domain", "strings"],
        ["count", "--by", "x.city", "--domain", "strings:all"],
        ["count", "--by", "x.city", "--domain", "integers:9:0"],
        ["count", "--by", "x.city", "--domain", "integers:0:9"],
        ["count", "--by", "x.city", "--domain", "strings:8", "--domain", "strings:8"],
        ["average", "x.age", "--by", "x.city", "--delta", "1e-9"],
        ["average", "x.age", "--by", "x.city", "--delta", "1e-9", "--keys-epsilon", "1", "--keys-rho", "1"],
        ["average", "x.city", "--by", "x.city", "--delta", "1e-9", "--keys-epsilon", "1"],
    ],
    ids=" ".join,
)
def test_a_mistake_on_the_command_line_costs_nothing(live: Live, arguments: list[str]) -> None:
    assert ask(live, *arguments) == 2
    assert left(live) == (10, KEYS)


def test_what_is_beyond_the_delta_has_the_exit_code_of_bottom(live: Live) -> None:
    assert ask(live, "count", "--by", "x.city", "--delta", "1e-5") == 3
    assert left(live) == (10, KEYS)


def test_a_statement_finds_keys_at_a_delta(live: Live, capsys: pytest.CaptureFixture[str]) -> None:
    select = "SELECT city, COUNT(*) AS n FROM people GROUP BY city"
    where = ["--url", live.url, "--token", live.token()]
    assert main(["sql", select, "--epsilon", "1", "--delta", "1e-9", *where]) == 0
    assert "Oslo" in capsys.readouterr().out
    assert main(["sql", select, "--epsilon", "1", *where]) == 2
    assert "find them" in capsys.readouterr().err
    assert left(live) == (9, KEYS - Fraction(1, 10**9))


def test_an_owner_writes_caps_of_a_delta_and_sees_what_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = str(tmp_path / "fpinq.toml")
    (tmp_path / "a.csv").write_text("age\n1\n", encoding="utf-8")
    add = ["dataset", "add", "people", "a.csv", "--rows-at-most", "10", "--schema", "age=int64", "--config"]
    budget = "epsilon 1 delta 1e-9 keys_delta 1e-9"
    assert main([*add, config, "--budget", budget, "--keys-cap", "alice=1e-10", "--keys-cap", "*=0"]) == 0
    assert main(["dataset", "show", "people", "--config", config]) == 0
    said = capsys.readouterr().out
    assert "δ cap of alice" in said
    assert re.search(r"left of δ for keys +1e-09\n", said)
    assert re.search(r"δ cap of alice +1e-10\n", said)
    assert re.search(r"δ cap of everybody else +0\n", said)
    assert main(["dataset", "list", "--config", config]) == 0
    said = capsys.readouterr().out
    assert "left of δ" in said
    assert "epsilon 1 delta 1e-09 keys_delta 1e-09 " in said
    assert said.endswith(" 1e-09\n")


@pytest.mark.parametrize(
    ("budget", "cap"),
    [("1", ["--keys-cap", "alice=1e-10"]), ("rho 1/50", ["--cap", "alice=1/100"])],
)
def test_a_cap_that_is_not_of_the_budget_is_refused_where_it_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], budget: str, cap: list[str]
) -> None:
    config = tmp_path / "fpinq.toml"
    (tmp_path / "a.csv").write_text("age\n1\n", encoding="utf-8")
    add = ["dataset", "add", "people", "a.csv", "--rows-at-most", "10", "--schema", "age=int64"]
    assert main([*add, "--config", str(config), "--budget", budget, *cap]) == 2
    assert "datasets.people: " in capsys.readouterr().err
    assert not config.exists()


def test_caps_of_a_delta_are_a_block_s_too_where_it_has_one(tmp_path: Path) -> None:
    one = {"path": "a.csv", "rows_at_most": 9, "budget": "epsilon 1 delta 1e-9 keys_delta 1e-9"}
    sets = parse(
        {
            "datasets": {
                "people": {**one, "keys_caps": {"bob": "1e-10"}},
                "tuesday": {**one, "block_of": "people"},
                "wednesday": {**one, "block_of": "people", "budget": 1},
                "thursday": {**one, "block_of": "people", "keys_caps": {"bob": 0}},
            }
        },
        tmp_path,
    ).data_sets
    caps = {name: dict(found.keys_caps) for name, found in sets.items()}
    small = Fraction(1, 10**10)
    assert caps == {
        "people": {"bob": small}, "tuesday": {"bob": small}, "wednesday": {}, "thursday": {"bob": 0},
    }  # fmt: skip
    with pytest.raises(fp.BadEpsilon, match=r"people\.keys_caps\.bob"):
        parse({"datasets": {"people": {**one, "keys_caps": {"bob": "many"}}}}, tmp_path)
