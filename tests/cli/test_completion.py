"""fpinq completion: a shell knows every command and option."""

import shutil
import subprocess

import pytest

from fpinq.cli.completion import words_after
from fpinq.cli.main import main, parser


def test_every_command_is_found_with_its_options() -> None:
    words = dict(words_after(parser(), ()))
    assert {"query", "ledger", "dataset"} <= set(words[()])
    assert "--dry-run" in words[("query",)]
    assert "spending" in words[("ledger",)]
    assert "--each" in words[("ledger", "spending")]


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        (["le"], "ledger"),
        (["ledger", "spen"], "spending"),
        (["ledger", "spending", "people.ledger", "--ea"], "--each"),
        (["query", "people", "med"], "median"),
        (["query", "people", "--dry"], "--dry-run"),
        (["token", "create", "--role", "x", "--exp"], "--expires"),
    ],
)
def test_bash_completes_what_was_begun(
    typed: list[str], completed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", "bash"]) == 0
    words = " ".join(["fpinq", *typed])
    asked = f'COMP_WORDS=({words}); COMP_CWORD={len(typed)}; _fpinq; echo "${{COMPREPLY[*]}}"'
    script = f"{capsys.readouterr().out}\n{asked}"
    found = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, cwd="/")
    assert found.stdout.strip() == completed


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_every_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert "spending" in capsys.readouterr().out
