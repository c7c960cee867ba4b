"""fpinq serve: what cannot be served is said in one line, before anything is announced."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from fpinq.cli.main import main

FPINQ = [sys.executable, "-m", "fpinq"]
WORKERS = pytest.mark.parametrize("workers", ["1", "2"])


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "people.csv").write_text("age,gender\n" + "".join(f"{i},{i % 2}\n" for i in range(90)))
    file = tmp_path / "fpinq.toml"
    schema = "schema = { age = 'int64', gender = 'int64' }"
    settings = f"path = 'people.csv'\nrows_at_most = 1000000\nbudget = 1\n{schema}\n"
    file.write_text(f"[datasets.people]\n{settings}")
    return file


def refused(config: Path, *options: str) -> str:
    """What `fpinq serve` says when it ends at once with exit code 2."""
    command = [*FPINQ, "serve", "--config", str(config), *options]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2, ended.stderr
    return ended.stderr


@contextmanager
def started(config: Path, *options: str) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """A server that has announced itself, and where it says it is."""
    command = [*FPINQ, "serve", "--config", str(config), *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            announced = server.stderr.readline()
            found = re.search(r"http://\S+", announced)
            assert found is not None, announced
            yield found[0], server
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(30)


@WORKERS
def test_a_missing_file_is_one_line_for_any_number_of_workers(config: Path, workers: str) -> None:
    (config.parent / "people.csv").unlink()
    said = refused(config, "--port", "0", "--workers", workers)
    assert re.fullmatch(r"fpinq: .*no such file: .*people\.csv\n", said), said


@WORKERS
def test_an_address_in_use_is_one_line_and_nothing_is_announced(config: Path, workers: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = refused(config, "--port", str(port), "--workers", workers)
    where = f"127.0.0.1, port {port}"
    assert said == f"fpinq: cannot listen at {where}: Address already in use. Say another --port\n"


@pytest.mark.parametrize(
    "options",
    [["--port", "99999"], ["--port", "-1"], ["--port", "http"], ["--workers", "0"], ["--workers", "-1"]],
)
def test_ports_and_workers_that_cannot_be_are_refused_as_options(
    config: Path, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["serve", "--config", str(config), *options])
    assert ended.value.code == 2
    assert f"{options[1]!r} is not" in capsys.readouterr().err


@WORKERS
def test_what_is_announced_is_where_it_answers(config: Path, workers: str) -> None:
    with started(config, "--port", "0", "--workers", workers) as (url, _):
        assert not url.endswith(":0")
        with urlopen(f"{url}/healthz", timeout=60) as reply:
            assert reply.status == 200


@pytest.mark.skipif(os.name != "posix", reason="signals")
@WORKERS
def test_an_interrupted_server_ends_without_a_traceback(config: Path, workers: str) -> None:
    with started(config, "--port", "0", "--workers", workers) as (url, server):
        with urlopen(f"{url}/healthz", timeout=60):
            pass
        server.send_signal(signal.SIGINT)
        server.wait(30)
        assert server.stderr is not None
        assert "Traceback" not in server.stderr.read()


@WORKERS
def test_a_server_without_an_anchor_says_so_and_one_with_an_anchor_does_not(
    config: Path, workers: str
) -> None:
    with started(config, "--port", "0", "--workers", workers) as (url, server):
        with urlopen(f"{url}/healthz", timeout=60):
            pass
        server.send_signal(signal.SIGTERM)
        server.wait(30)
        assert server.stderr is not None
        said = server.stderr.read()
        assert said.count("no anchor") == 1, said
    config.write_text(f"anchor = 'people.anchor'\n{config.read_text()}")
    with started(config, "--port", "0", "--workers", workers) as (_, server):
        server.send_signal(signal.SIGTERM)
        server.wait(30)
        assert server.stderr is not None
        assert "no anchor" not in server.stderr.read()


@WORKERS
def test_a_lost_ledger_is_one_line_and_a_new_one_is_asked_for(config: Path, workers: str) -> None:
    options = ["--port", "0", "--workers", workers]
    with started(config, *options) as (url, _), urlopen(f"{url}/healthz", timeout=60):
        pass
    (config.parent / "fpinq.ledger").unlink()
    command = [*FPINQ, "serve", "--config", str(config), *options]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 6
    assert re.fullmatch(r"fpinq: there is no ledger at .*: fpinq serve --new-ledger\n", ended.stderr)
    assert not (config.parent / "fpinq.ledger").exists()
    for more in (["--new-ledger"], []):
        with started(config, *options, *more) as (url, _), urlopen(f"{url}/healthz", timeout=60) as reply:
            assert reply.status == 200
