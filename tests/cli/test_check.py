"""fpinq check and demo, as a person runs them."""

import re
import subprocess
import sys

import pytest

from fpinq.checker import programs
from fpinq.cli import check as command
from fpinq.cli.main import main


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fpinq", *arguments], capture_output=True, text=True, timeout=300, check=False
    )


def test_the_demo_shows_the_figure_and_the_refusal() -> None:
    done = run("demo")
    assert done.returncode == 0, done.stderr
    assert "A 1, B 2, C 3, D 10, E 3, F 3, E4 12, G 22" in done.stdout
    assert "⊥" in done.stdout


def test_check_prints_what_it_covered(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from dataclasses import replace

    from fpinq.checker import interleavings, scope

    small = (replace(scope.BROAD, queries=1, budgets=((1, 2),)),)
    monkeypatch.setattr(scope, "SCOPES", {"default": small})
    monkeypatch.setattr(scope, "NOISY", small[0])
    meeting = replace(interleavings.FROZEN, moves=2)
    monkeypatch.setattr(interleavings, "MEETINGS", (meeting,))
    monkeypatch.setattr(command, "SHARDS", 2)
    assert main(["check", "--jobs", "1"]) == 0
    printed = capsys.readouterr().out
    for what in ("programs", "checks", "traces", "tightest ratio", "violations         0", meeting.name):
        assert what in printed


def test_check_fails_when_the_theorem_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from dataclasses import replace

    from fpinq.checker import interleavings, scope
    from fpinq.checker.mutants import MUTANTS, applied

    small = replace(scope.BROAD, queries=1, budgets=((1, 2),))
    monkeypatch.setattr(scope, "SCOPES", {"default": (small,)})
    monkeypatch.setattr(scope, "NOISY", small)
    monkeypatch.setattr(interleavings, "MEETINGS", ())
    with applied(next(m for m in MUTANTS if m.name == "take at 1")):
        assert main(["check", "--jobs", "1"]) == 1
    assert "take[1]" in capsys.readouterr().out


def test_check_fails_when_sessions_overspend(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from dataclasses import replace

    from fpinq.checker import interleavings, scope
    from fpinq.checker.mutants import MUTANTS, applied

    monkeypatch.setattr(scope, "SCOPES", {"default": ()})
    monkeypatch.setattr(scope, "NOISY", replace(scope.BROAD, queries=1, constructions=0))
    monkeypatch.setattr(interleavings, "MEETINGS", (replace(interleavings.SHARED, moves=3),))
    with applied(next(m for m in MUTANTS if m.name == "a session that sees budget the others used")):
        assert main(["check", "--jobs", "1"]) == 1
    assert "B′ ≤ B fails" in capsys.readouterr().out


def test_stability_says_how_many_are_tight(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from fpinq.checker import stabilities
    from fpinq.checker.worlds import SCHEMA
    from fpinq.model.transformations import Concat, Take

    some = [(Take(2), (SCHEMA,)), (Concat(), (SCHEMA, SCHEMA))]
    monkeypatch.setattr(stabilities, "instances", lambda: some)
    monkeypatch.setattr(stabilities, "outer_joins", list)
    assert main(["check", "--stability"]) == 0
    assert re.search(r"\d+ tight, 0 loose, 0 unsound", capsys.readouterr().out)
    monkeypatch.setattr(Take, "stability", (1,))
    assert main(["check", "--stability"]) == 1
    monkeypatch.setattr(Take, "stability", (3,))
    assert main(["check", "--stability"]) == 1, "a loose constant is a failure, too"


def test_a_surviving_mutant_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    from fpinq.checker import mutants

    harmless = mutants.Mutant("harmless", programs, "ROOTS", programs.ROOTS)
    monkeypatch.setattr(mutants, "MUTANTS", (harmless,))
    monkeypatch.setattr(mutants, "SCOPES", {"default": ()})
    assert main(["check", "--mutants", "--jobs", "1"]) == 1


def test_an_unknown_command_shows_the_usage() -> None:
    done = run("frobnicate")
    assert done.returncode == 2
    assert "usage: fpinq" in done.stderr
