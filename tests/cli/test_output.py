"""What commands print: for programs on every command, drawn in a terminal where rich is there, else plain."""

import ast
import csv
import io
import json
import re
from argparse import ArgumentParser, Namespace, _SubParsersAction
from collections.abc import Iterator
from fractions import Fraction
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

import fpinq as fp
from fpinq.cli import output
from fpinq.cli.main import main, parser

# A server, whose replies are what is read, and a shell's own program.
FOR_PEOPLE = {"serve", "completion"}
ROWS = [["people", Fraction(2), Fraction(1, 2)], ["[bold]x", Fraction(1), Fraction(1, 3)]]
NAMES = ["name", "budget", "left"]


def leaves(
    of: ArgumentParser, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], ArgumentParser]]:
    below = [action for action in of._actions if isinstance(action, _SubParsersAction)]
    if not below:
        yield path, of
    for action in below:
        for name, command in action.choices.items():
            yield from leaves(command, (*path, name))


def test_every_command_that_prints_has_json_and_csv() -> None:
    for path, command in leaves(parser()):
        if path[0] not in FOR_PEOPLE:
            assert {"--json", "--csv"} <= command._option_string_actions.keys(), path


def printed(capsys: pytest.CaptureFixture[str], *, json: bool = False, csv: bool = False) -> str:
    arguments = Namespace(json=json, csv=csv)
    output.print_rows(arguments, NAMES, ROWS, burning=("left", "budget"))
    output.say(arguments, "done", {"name": "people"})
    return capsys.readouterr().out


def test_without_a_terminal_or_without_rich_a_table_is_plain_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = printed(capsys)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setattr(output, "find_spec", lambda _: None)
    assert printed(capsys) == plain
    assert plain.splitlines()[1].split() == ["people", "2", "0.5"]
    assert "█" not in plain


def test_programs_read_amounts_exactly_whatever_is_installed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "is_rich", lambda: True)
    rows, done = map(json.loads, printed(capsys, json=True).splitlines())
    assert ([row["left"] for row in rows], done) == (["1/2", "1/3"], {"name": "people"})
    table = list(csv.reader(io.StringIO(printed(capsys, csv=True))))
    assert table[:3] == [NAMES, ["people", "2", "1/2"], ["[bold]x", "1", "1/3"]]


def test_in_a_terminal_rich_draws_what_is_left_as_a_bar_and_text_stays_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("rich")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setattr(output, "find_spec", lambda name: ModuleSpec(name, None))
    drawn = printed(capsys)
    assert "█" * 5 + "░" * 15 in drawn
    assert "[bold]x" in drawn


# ── names that a terminal would obey ─────────────────────────────────────────────────

HOSTILE = "a\x1b[2J\x9b31m\u202e\x7f"


def test_the_command_line_prints_in_one_place_alone() -> None:
    for path in Path(output.__file__).parent.glob("*.py"):
        calls = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)]
        named = {node.func.id for node in calls if isinstance(node.func, ast.Name)}
        if path.name not in ("output.py", "progress.py"):  # which draws over its own line, of our own words
            assert "print" not in named, path.name


@pytest.mark.parametrize("in_a_terminal", [False, True])
@pytest.mark.parametrize("form", ["plain", "json", "csv"])
def test_no_name_gives_orders_to_a_terminal_in_any_form(
    form: str, in_a_terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: in_a_terminal, raising=False)
    arguments = Namespace(json=form == "json", csv=form == "csv")
    output.print_rows(arguments, ["n", HOSTILE], [[HOSTILE, f"{HOSTILE}\nb"], ["=1+1", 2]])
    output.print_facts(arguments, {HOSTILE: HOSTILE})
    output.say(arguments, HOSTILE, {"name": HOSTILE})
    told = re.sub("\x1b\\[[0-9;]*m", "", capsys.readouterr().out)  # rich's own colours
    orders = {c for c in told if not c.isprintable()} - {"\n"}
    if form == "csv" and not in_a_terminal:  # a program gets the text itself
        assert HOSTILE in told
    else:
        assert not orders, told
    if form == "json":
        assert json.loads(told.splitlines()[0])[0]["n"] == HOSTILE
    if form == "csv":
        assert "'=1+1" in told


def test_an_error_s_name_gives_no_orders_to_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dataset", "show", HOSTILE, "--config", f"/nowhere/{HOSTILE}.toml"]) != 0
    assert HOSTILE not in capsys.readouterr().err


def test_the_tour_is_the_same_for_people_and_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo"]) == 0
    told = capsys.readouterr().out
    assert main(["demo", "--json"]) == 0
    steps = json.loads(capsys.readouterr().out)
    assert {step["program"] for step in steps} == {1, 2}
    for step in steps:
        assert f"{step['action']:<48} {step['rule']}" in told
    assert [step["seen"] for step in steps if step["program"] == 2] == ["τ", "τ", "v", "v", "v", "⊥", "1"]


def test_answers_are_drawn_in_a_terminal_and_none_is_left_out(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("rich")
    table = fp.protect([{"k": 1}], budget=10**6)
    answers = table.query(1000, fp.count(), by="k", keys=list(range(200)))
    forms = Namespace(json=False, csv=False)
    output.print_answers(forms, answers)
    plain = capsys.readouterr().out.splitlines()
    assert len(plain) == 201
    monkeypatch.setattr(output, "is_rich", lambda: True)
    output.print_answers(forms, answers)
    drawn = capsys.readouterr().out
    assert "─" in drawn
    assert [line.split()[0] for line in plain[1:]] == [
        words[0] for line in drawn.splitlines() if (words := line.split()) and words[0].isdigit()
    ]


def test_an_option_s_example_was_shown_with_its_signs_doubled(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["dataset", "add", "--help"])
    told = capsys.readouterr().out
    assert "dates=%d/%m/%Y" in told
    assert "%%" not in told
