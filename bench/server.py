"""How many actions a second a server answers over HTTP, on this machine.

    python bench/server.py [--seconds 5] [--clients 2] [--connections 8] [--workers 1] [--ledger URL]

The server is `fpinq serve` with its ledger on disk; the clients are processes
of their own on the loopback interface, each with several connections that are
kept open and one request at a time on each. "server µs" is the processor time
of the server for an action: unlike the rate, it hardly depends on what else
the machine is doing. Everything stops by itself.
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
from pathlib import Path
from urllib.request import Request, urlopen

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
    "charged count": {"op": "query", "table": "people", "epsilon": "1/1000000", "queries": [{"op": "count"}]},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--clients", type=int, default=2, help="client processes")
    parser.add_argument("--connections", type=int, default=8, help="connections of each")
    parser.add_argument("--workers", type=int, default=1, help="server processes")
    parser.add_argument("--ledger", help="postgresql://…; by default an SQLite file")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), arguments)


def measure(folder: Path, arguments: argparse.Namespace) -> None:
    """Start a server, load it with each kind of action, stop it."""
    (folder / "people.csv").write_text("age,gender\n" + "".join(f"{i % 90},{i % 2}\n" for i in range(1000)))
    (folder / "fpinq.toml").write_text(
        f"ledger = {json.dumps(arguments.ledger or 'people.ledger')}\n"
        "[limits]\nrequests_per_second = 1000000\nconcurrent_requests = 1000\n"
        '[datasets.people]\npath = "people.csv"\nrows_at_most = 1000000\nbudget = 1000000\n'
        'schema = { age = "int64", gender = "int64" }\n'
    )
    config = ["--config", str(folder / "fpinq.toml")]
    fpinq = [sys.executable, "-m", "fpinq"]
    token = subprocess.run(
        [*fpinq, "token", "create", "bench", *config], check=True, capture_output=True, text=True
    ).stdout.strip()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    serving = [*fpinq, "serve", *config, "--port", str(port), "--workers", str(arguments.workers)]
    server = subprocess.Popen(serving, start_new_session=True)
    try:
        wait_for(port)
        print(
            f"{arguments.workers} server process(es), {arguments.clients} client processes of "
            f"{arguments.connections} connections, {os.cpu_count()} cores, "
            f"load {os.getloadavg()[0]:.1f} at the start"
        )
        print(f"{'action':<16}{'actions/s':>12}{'p50 ms':>10}{'p99 ms':>10}{'refused':>10}{'server µs':>12}")
        for name, action in ACTIONS.items():
            before = cpu_seconds(server.pid)
            done, refused, took = load(port, token, action, arguments)
            busy = (cpu_seconds(server.pid) - before) / max(done, 1) * 1e6
            took.sort()
            rate = done / arguments.seconds
            p50, p99 = took[len(took) // 2] * 1000, took[len(took) * 99 // 100] * 1000
            print(f"{name:<16}{rate:>12,.0f}{p50:>10.1f}{p99:>10.1f}{refused:>10}{busy:>12.0f}")
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(30)


def cpu_seconds(leader: int) -> float:
    """The processor time of a server and its workers so far."""
    total = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == leader:  # the session
            total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def load(
    port: int, token: str, action: object, arguments: argparse.Namespace
) -> tuple[int, int, list[float]]:
    """What all client processes got done in the given time."""
    work = (port, token, action, arguments.seconds, arguments.connections)
    with multiprocessing.get_context("spawn").Pool(arguments.clients) as pool:
        results = pool.starmap(client, [work] * arguments.clients)
    return sum(r[0] for r in results), sum(r[1] for r in results), [t for r in results for t in r[2]]


def client(
    port: int, token: str, action: object, seconds: float, connections: int
) -> tuple[int, int, list[float]]:
    """One client process: as many requests as it can, one at a time on each connection."""

    async def everything() -> list[tuple[int, int, list[float]]]:
        return await asyncio.gather(*(connection() for _ in range(connections)))

    async def connection() -> tuple[int, int, list[float]]:
        session = open_session(port, token)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = (
            f"POST /sessions/{session}/actions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
            "Content-Type: application/json\r\nContent-Length: "
        )
        shown = json.dumps(action)
        done = refused = 0
        took: list[float] = []
        ends = time.perf_counter() + seconds
        while (began := time.perf_counter()) < ends:
            body = f'{{"request_id":"{done + refused}","action":{shown}}}'
            writer.write(f"{head}{len(body)}\r\n\r\n{body}".encode())
            headers = await reader.readuntil(b"\r\n\r\n")
            length = int(headers.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            if headers.startswith(b"HTTP/1.1 200"):
                done += 1
            else:
                refused += 1
            took.append(time.perf_counter() - began)
        writer.close()
        return done, refused, took

    results = asyncio.run(everything())
    return sum(r[0] for r in results), sum(r[1] for r in results), [t for r in results for t in r[2]]


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
