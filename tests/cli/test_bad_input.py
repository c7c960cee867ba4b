"""A user's mistake is one line that says what to do, and the exit code of its kind; nothing is charged."""

import io
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import fpinq as fp
from fpinq.cli import progress
from fpinq.cli.main import main
from server.live import Live, people, serve

COUNT = ("query", "people", "count")


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    with serve(tmp_path, people(2)) as found:
        yield found


@pytest.fixture
def closed() -> str:
    """An address where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return f"http://127.0.0.1:{found.getsockname()[1]}"


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No token and no address of whoever runs the tests, in an empty folder."""
    monkeypatch.delenv("FPINQ_TOKEN", raising=False)
    monkeypatch.delenv("FPINQ_URL", raising=False)
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")


def refused(capsys: pytest.CaptureFixture[str], code: int, says: str, *arguments: str) -> None:
    assert main(list(arguments)) == code
    told = capsys.readouterr()
    assert told.out == ""
    assert says in told.err
    assert len(told.err.strip().splitlines()) == 1, told.err


@pytest.mark.parametrize("asked", [COUNT, ("sql", "SELECT COUNT(*) FROM people"), ("explain", "people")])
def test_no_token_a_wrong_one_and_one_that_has_ended_are_said(
    live: Live,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    asked: tuple[str, ...],
) -> None:
    if asked[0] == "sql":
        pytest.importorskip("sqlglot")
    at = (*asked, "--url", live.url)
    refused(capsys, 4, "FPINQ_TOKEN", *at)
    refused(capsys, 4, "ask the data's owner for one", *at, "--token", "fpq_none")
    ended = live.house.tokens.create("al", "analyst", 60)
    monkeypatch.setattr(live.house.tokens, "_clock", lambda: time.time() + 61)
    refused(capsys, 4, "ask the data's owner for one", *at, "--token", ended)
    assert live.left() == 2


def test_a_token_of_another_role_is_said(live: Live, capsys: pytest.CaptureFixture[str]) -> None:
    owner = live.token("olga", "owner")
    refused(capsys, 4, "only an analyst's token may ask", *COUNT, "--url", live.url, "--token", owner)


@pytest.mark.parametrize("asked", [COUNT, ("sql", "SELECT COUNT(*) FROM people"), ("explain",)])
def test_a_server_that_is_down_was_said_to_have_charged_perhaps(
    closed: str, capsys: pytest.CaptureFixture[str], asked: tuple[str, ...]
) -> None:
    if asked[0] == "sql":
        pytest.importorskip("sqlglot")
    says = "Nothing was sent, and nothing charged: is the server running, and is this its address?"
    refused(capsys, 6, says, *asked, "--url", closed, "--token", "fpq_x")
    with pytest.raises(fp.FpinqError, match="nothing charged"):
        fp.connect(closed, token="fpq_x")


def test_a_server_of_another_version_is_said(
    live: Live, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fpinq.server.versions._SAID", (b"fpinq-wire", b"99"))
    refused(capsys, 2, "install a newer one", *COUNT, "--url", live.url, "--token", live.token())
    assert live.left() == 2


def test_an_address_of_something_else_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    refused(capsys, 2, "looks like https://", *COUNT, "--url", "people", "--token", "fpq_x")


WRONG: list[tuple[tuple[str, ...], int, str]] = [
    (("serve",), 2, "no configuration at 'fpinq.toml': make one with fpinq dataset add"),
    (("serve", "--config", "broken.toml"), 2, "is not TOML"),
    (("dataset", "add", "people", "nothing.csv", "--budget", "1", "--rows-at-most", "9"), 2, "nothing.csv"),
    (
        ("dataset", "add", "people", "text.parquet", "--budget", "1", "--rows-at-most", "9"),
        2,
        "the data cannot be read",
    ),
    (("dataset", "add", "people", "empty.csv", "--budget", "1", "--rows-at-most", "9"), 2, "empty.csv"),
    (("dataset", "show", "people"), 2, "no configuration"),
    (("token", "create", "alice"), 2, "no configuration"),
    (("ledger", "show", "nothing.ledger"), 6, "no such ledger"),
    (("ledger", "verify", "text.parquet"), 6, "text.parquet"),
    (("ledger", "backup", "nothing.ledger", "to.ledger"), 6, "no such ledger"),
    (("sql", "--file", "nothing.sql"), 2, "nothing.sql cannot be read"),
]


@pytest.mark.parametrize(
    ("arguments", "code", "says"), WRONG, ids=lambda each: each if isinstance(each, str) else ""
)
def test_a_wrong_file_is_one_line(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: int, says: str
) -> None:
    Path("broken.toml").write_text("x = [", encoding="utf-8")
    Path("text.parquet").write_text("age\n1\n", encoding="utf-8")
    Path("empty.csv").touch()
    refused(capsys, code, says, *arguments)
    assert {each.name for each in Path().iterdir()} == {"broken.toml", "text.parquet", "empty.csv"}


class Piped(io.StringIO):
    def isatty(self) -> bool:
        return False


def test_long_work_said_nothing_in_a_pipe_and_now_says_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told, clock = Piped(), iter(range(0, 1000, 3))
    monkeypatch.setattr(sys, "stderr", told)
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(clock)))
    with progress.Progress("checking", 40) as under_way:
        for done in range(40):
            under_way.advance(f"{done} programs")
    lines = told.getvalue().splitlines()
    assert 5 <= len(lines) <= 25
    assert all(line.startswith("checking ") and line.endswith(" s") for line in lines)
    assert "\r" not in told.getvalue()
