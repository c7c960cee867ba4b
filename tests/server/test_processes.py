"""Several server processes on one ledger act as one."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from urllib.request import urlopen

import pytest

import fpinq as fp
from fpinq.ledger import open_ledger
from fpinq.ledger.errors import Frozen
from ledger.places import place, postgres  # noqa: F401

FPINQ = [sys.executable, "-m", "fpinq"]


@contextmanager
def running(folder: Path, number: int, *options: str) -> Iterator[list[str]]:
    """That many `fpinq serve` processes on one configuration; their addresses."""
    servers, urls = [], []
    for _ in range(number):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        command = [*FPINQ, "serve", "--config", str(folder / "fpinq.toml"), "--port", str(port), *options]
        servers.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))
        urls.append(f"http://127.0.0.1:{port}")
    try:
        for url, server in zip(urls, servers, strict=True):
            _wait_for(url, server)
        yield urls
    finally:
        for server in servers:
            server.send_signal(signal.SIGTERM)
        for server in servers:
            server.wait(30)


def _wait_for(url: str, server: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        assert server.poll() is None, "the server did not start"
        try:
            with urlopen(f"{url}/healthz", timeout=1):
                return
        except OSError:
            time.sleep(0.1)
    raise AssertionError("the server does not answer")


@pytest.fixture
def folder(tmp_path: Path, place: str) -> Path:  # noqa: F811
    rows = "".join(f"{i % 90},{i % 2}\n" for i in range(100))
    (tmp_path / "people.csv").write_text(f"age,gender\n{rows}")
    (tmp_path / "fpinq.toml").write_text(
        f"ledger = {json.dumps(place)}\n[datasets.people]\npath = 'people.csv'\n"
        "rows_at_most = 1000\nbudget = 1\n"
        "schema = { age = 'int64', gender = 'int64' }\n"
    )
    return tmp_path


def command(folder: Path, *arguments: str) -> str:
    found = subprocess.run(
        [*FPINQ, *arguments, "--config", str(folder / "fpinq.toml")],
        check=True,
        capture_output=True,
        text=True,
    )
    return found.stdout.strip()


def test_racing_clients_of_two_processes_overspend_exactly_nothing(folder: Path, place: str) -> None:  # noqa: F811
    token = command(folder, "token", "create", "alice")
    clients = 16
    with running(folder, 2) as urls:

        def race(number: int) -> list[Fraction]:
            table = fp.connect(urls[number % 2], token)["people"]
            parts = table.partition(lambda x: x.gender, keys=[0, 1])
            asked = [parts[0], parts[1], table]
            charged: list[Fraction] = []
            for turn in range(12):
                try:
                    charged.append(asked[(number + turn) % 3].noisy_count("3/100").charged)  # type: ignore[arg-type]
                except fp.BudgetExceeded:
                    continue
            return charged

        with ThreadPoolExecutor(clients) as pool:
            spent = sum(
                (sum(charged, Fraction(0)) for charged in pool.map(race, range(clients))), Fraction(0)
            )
        left = [fp.connect(url, token)["people"].remaining for url in urls]
    assert spent <= 1
    assert spent > Fraction(9, 10)
    assert left == [1 - spent] * 2
    ledger = open_ledger(place, create=False)
    try:
        assert ledger.roots()["people"].spent == spent
    finally:
        ledger.close()


def test_workers_of_one_server_act_as_one_and_go_when_it_goes(folder: Path) -> None:
    token = command(folder, "token", "create", "alice")
    with running(folder, 1, "--workers", "2") as (url,):
        workers = _workers_of(os.getpid())

        def ask(number: int) -> Fraction:
            table = fp.connect(url, token)["people"]
            part = table.where(lambda x: x.age > number)
            try:
                return part.noisy_count("1/10").charged  # type: ignore[no-any-return]
            except fp.BudgetExceeded:
                return Fraction(0)

        with ThreadPoolExecutor(16) as pool:
            spent = sum(pool.map(ask, range(40)), Fraction(0))
        assert spent == 1
        assert fp.connect(url, token)["people"].remaining == 0
    assert len(workers) == 2
    for _ in range(100):
        left = [worker for worker in workers if Path(f"/proc/{worker}").exists()]
        if not left:
            break
        time.sleep(0.1)
    assert not left


def test_workers_go_when_their_supervisor_is_killed(folder: Path) -> None:
    """They went on answering, where nobody would stop them, and kept the address to themselves."""
    with running(folder, 1, "--workers", "2") as (url,):
        workers = _workers_of(os.getpid())
        (server,) = {_parent_of(Path(f"/proc/{worker}")) for worker in workers}
        os.kill(server, signal.SIGKILL)
        for _ in range(300):
            if not any(Path(f"/proc/{worker}").exists() for worker in workers):
                break
            time.sleep(0.1)
        assert len(workers) == 2
        assert not any(Path(f"/proc/{worker}").exists() for worker in workers)
        with pytest.raises(OSError, match="refused"):
            urlopen(f"{url}/healthz", timeout=5)


def _workers_of(parent: int) -> list[int]:
    """The workers of a process's servers, without multiprocessing's own children."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                server = _parent_of(entry)
                serving = b"serve" in (Path("/proc") / str(server) / "cmdline").read_bytes()
                is_worker = b"spawn_main" in (entry / "cmdline").read_bytes()
                if serving and is_worker and _parent_of(Path("/proc") / str(server)) == parent:
                    found.append(int(entry.name))
    return found


def _parent_of(process: Path) -> int:
    return int((process / "stat").read_text().rpartition(")")[2].split()[1])


def test_a_session_goes_on_in_another_process_and_a_retry_is_told_the_same(folder: Path) -> None:
    token = command(folder, "token", "create", "alice")
    action = {"op": "query", "table": "t", "epsilon": "1/10", "queries": [{"op": "count"}]}
    with running(folder, 2) as urls:
        from fpinq.client.remote import Http

        first, second = (Http(url, token, 30, 0) for url in urls)
        session = first.send("POST", "/sessions")["session"]
        path = f"/sessions/{session}/actions"
        assign = {
            "op": "assign",
            "target": "t",
            "arguments": ["people"],
            "transformation": {"op": "distinct"},
        }
        first.send("POST", path, {"request_id": "1", "action": assign})
        told = second.send("POST", path, {"request_id": "2", "action": action})
        assert first.send("POST", path, {"request_id": "2", "action": action}) == told
        assert first.send("GET", "/datasets/people")["remaining"] == "9/10"


def test_freezing_by_command_holds_in_all_processes_at_once(folder: Path) -> None:
    token = command(folder, "token", "create", "alice")
    with running(folder, 2) as urls:
        tables = [fp.connect(url, token)["people"] for url in urls]
        for table in tables:
            table.noisy_count("1/100")
        command(folder, "dataset", "freeze", "people")
        for table in tables:
            with pytest.raises(Frozen):
                table.noisy_count("1/100")
        assert "frozen" in command(folder, "dataset", "list")
        command(folder, "dataset", "unfreeze", "people")
        assert tables[0].noisy_count("1/100").charged == Fraction(1, 100)


def test_a_server_killed_in_the_middle_loses_no_charge(folder: Path, place: str) -> None:  # noqa: F811
    token = command(folder, "token", "create", "alice")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command_line = [*FPINQ, "serve", "--config", str(folder / "fpinq.toml"), "--port", str(port)]
    server = subprocess.Popen(command_line, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    answered = Fraction(0)
    try:
        _wait_for(url, server)
        table = fp.connect(url, token, retries=0)["people"]
        with ThreadPoolExecutor(1) as pool:
            pool.submit(lambda: (time.sleep(0.3), os.kill(server.pid, signal.SIGKILL)))
            try:
                for _ in range(900):
                    table.noisy_count("1/1000")
                    answered += Fraction(1, 1000)
            except fp.Unavailable:
                pass
    finally:
        server.kill()
        server.wait(30)
    ledger = open_ledger(place, create=False)
    try:
        spent = ledger.roots()["people"].spent
    finally:
        ledger.close()
    assert answered <= spent <= answered + Fraction(1, 1000)
