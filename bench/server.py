"""How many actions a second a server answers over HTTP, on this machine.

    python bench/server.py [--seconds 5] [--clients 2] [--connections 8] [--workers 1 …] [--ledgers sqlite …]
    python bench/server.py --crowd

The server is `fpinq serve` with its ledger on disk; the clients are processes
of their own on the loopback interface, each with several connections that are
kept open and one request at a time on each. Every connection is an analyst of
its own, with a session. "server µs" is the processor time of the server for an
action: unlike the rate, it hardly depends on what else the machine is doing.

--crowd is 64 connections, on one worker and on two, on a ledger in SQLite and in
PostgreSQL. `postgres` among the ledgers starts one for the purpose, in memory and
without fsync; an address is that of an empty database. A row in which nothing was
answered measures nothing: it ends the run, with what was said. Everything stops by itself.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

from fpinq.server.tokens import Tokens

COLUMN = {"op": "column", "name": "age"}
ADULTS = {
    "op": "where",
    "predicate": {
        "op": "apply",
        "operator": "greater",
        "arguments": [COLUMN, {"op": "literal", "value": 17, "type": "int64"}],
    },
}
ACTIONS = {
    "ask budget": {"op": "ask_budget"},
    "ask price": {"op": "ask_price", "table": "people", "epsilon": "1/10"},
    "assign": {"op": "assign", "target": "adults", "arguments": ["people"], "transformation": ADULTS},
    "charged count": {"op": "query", "table": "people", "epsilon": "1/10000", "queries": [{"op": "count"}]},
}


class Load(NamedTuple):
    """What is sent: by how many client processes, on how many connections of each, for how long."""

    port: int
    tokens: list[str]
    action: dict[str, Any]
    seconds: float


class Took(NamedTuple):
    """What came of it: the seconds of each answer, and what the others were refused for."""

    answered: list[float]
    refused: Counter[str]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--clients", type=int, default=2, help="client processes")
    parser.add_argument("--connections", type=int, default=8, help="connections of each")
    parser.add_argument("--workers", type=int, nargs="+", default=[1], help="server processes")
    parser.add_argument("--ledgers", nargs="+", default=["sqlite"], help="sqlite, postgres, postgresql://…")
    parser.add_argument("--actions", nargs="+", choices=ACTIONS, default=list(ACTIONS))
    parser.add_argument("--quantum", default="0", help="the server's, such as 50ms")
    parser.add_argument("--crowd", action="store_true", help="64 clients, 1 and 2 workers, both ledgers")
    arguments = parser.parse_args()
    if arguments.crowd:
        arguments.clients, arguments.connections = 2, 32
        arguments.workers, arguments.ledgers = [1, 2], ["sqlite", "postgres"]
    for ledger in arguments.ledgers:
        for workers in arguments.workers:
            with tempfile.TemporaryDirectory() as folder, ledger_at(ledger) as place:
                measure(Path(folder), place, workers, arguments)


@contextmanager
def ledger_at(kind: str) -> Iterator[str]:
    """Where a ledger of a kind is."""
    if kind == "sqlite":
        yield "people.ledger"
    elif kind != "postgres":
        yield kind
    else:
        sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "ledger"))
        from throwaway_postgres import throwaway_postgres

        with throwaway_postgres() as started:
            yield started.fresh()


def measure(folder: Path, ledger: str, workers: int, arguments: argparse.Namespace) -> None:
    """Start a server, load it with each kind of action, stop it."""
    (folder / "people.csv").write_text("age,gender\n" + "".join(f"{i % 90},{i % 2}\n" for i in range(1000)))
    (folder / "fpinq.toml").write_text(
        f"ledger = {json.dumps(ledger)}\nquantum = {json.dumps(arguments.quantum)}\n"
        "[limits]\nrequests_per_second = 1000000\nconcurrent_requests = 1000\n"
        '[datasets.people]\npath = "people.csv"\nrows_at_most = 1000000\nbudget = 1000000\n'
        'schema = { age = "int64", gender = "int64" }\n'
    )
    tokens = Tokens(folder / "fpinq.tokens")
    shown = [tokens.create(f"a{n}", "analyst") for n in range(arguments.clients * arguments.connections)]
    with serving(folder, workers) as (port, leader):
        kind = "PostgreSQL" if "://" in ledger else "SQLite"
        print(
            f"\n{workers} server process(es) on {kind}, {arguments.clients} client processes of "
            f"{arguments.connections} connections, {os.cpu_count()} cores, "
            f"load {os.getloadavg()[0]:.1f} at the start"
        )
        heads = ("action", "actions/s", "p50 ms", "p99 ms", "p99/p50", "refused", "server µs")
        print("".join(f"{head:<16}" if head == "action" else f"{head:>12}" for head in heads))
        for name in arguments.actions:
            before = cpu_seconds(leader)
            took = load(Load(port, shown, ACTIONS[name], arguments.seconds), arguments.clients)
            print(row(name, took, arguments.seconds, cpu_seconds(leader) - before), flush=True)


def row(name: str, took: Took, seconds: float, busy: float) -> str:
    """A line of the table; SystemExit if nothing was answered."""
    if not took.answered:
        raise SystemExit(f"{name}: nothing was answered: {dict(took.refused)}")
    times = sorted(took.answered)
    p50, p99 = times[len(times) // 2] * 1000, times[len(times) * 99 // 100] * 1000
    figures = f"{len(times) / seconds:>12,.0f}{p50:>12.1f}{p99:>12.1f}{p99 / p50:>12.1f}"
    return f"{name:<16}{figures}{took.refused.total():>12}{busy / len(times) * 1e6:>12.0f}"


@contextmanager
def serving(folder: Path, workers: int) -> Iterator[tuple[int, int]]:
    """A server; its port and the process that leads it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "fpinq", "serve", "--config", str(folder / "fpinq.toml")]
    command += ["--port", str(port), "--workers", str(workers)]
    server = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)
    try:
        wait_for(port)
        yield port, server.pid
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(30)


def cpu_seconds(leader: int) -> float:
    """The processor time of a server and its workers so far."""
    return sum(int(stat[11]) + int(stat[12]) for stat in stats(leader)) / os.sysconf("SC_CLK_TCK")


def stats(leader: int) -> Iterator[list[str]]:
    """What the system says of each process of a server: the fields of /proc/…/stat after the name."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[3]) == leader:  # the session
                yield fields


def load(what: Load, clients: int) -> Took:
    """What all client processes got done in the given time."""
    shares = [(what._replace(tokens=what.tokens[n::clients]),) for n in range(clients)]
    with multiprocessing.get_context("spawn").Pool(clients) as pool:
        return together(pool.starmap(client, shares))


def together(took: list[Took]) -> Took:
    return Took([t for each in took for t in each.answered], sum((each.refused for each in took), Counter()))


def client(what: Load) -> Took:
    """One client process: as many requests as it can, one at a time on each connection."""

    async def everything() -> list[Took]:
        return await asyncio.gather(*(connection(token) for token in what.tokens))

    async def connection(token: str) -> Took:
        session = await asyncio.to_thread(open_session, what.port, token)
        reader, writer = await asyncio.open_connection("127.0.0.1", what.port)
        head = (
            f"POST /sessions/{session}/actions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
            "Content-Type: application/json\r\nContent-Length: "
        )
        shown = json.dumps(what.action)
        took = Took([], Counter())
        await asyncio.sleep(0.5)  # until all are here
        ends = time.perf_counter() + what.seconds
        while (began := time.perf_counter()) < ends:
            body = f'{{"request_id":"{began}","action":{shown}}}'
            writer.write(f"{head}{len(body)}\r\n\r\n{body}".encode())
            headers = await reader.readuntil(b"\r\n\r\n")
            length = int(headers.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            told = await reader.readexactly(length)
            if headers.startswith(b"HTTP/1.1 200"):
                took.answered.append(time.perf_counter() - began)
            else:
                took.refused[json.loads(told)["error"]["code"]] += 1
        writer.close()
        return took

    return together(asyncio.run(everything()))


def open_session(port: int, token: str) -> str:
    request = Request(
        f"http://127.0.0.1:{port}/sessions", method="POST", headers={"Authorization": f"Bearer {token}"}
    )
    with urlopen(request, timeout=10) as reply:
        session: str = json.load(reply)["session"]
        return session


def wait_for(port: int) -> None:
    """Wait until the server answers, for half a minute at the most."""
    for _ in range(300):
        try:
            with urlopen(f"http://127.0.0.1:{port}/healthz", timeout=1):
                return
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the server did not start")


if __name__ == "__main__":
    main()
