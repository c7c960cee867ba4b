"""How many actions a second a server answers over HTTP, on this machine.

    python bench/server.py [--seconds 5] [--clients 2] [--connections 8] [--workers 1 …] [--ledgers sqlite …]
    python bench/server.py --crowd [--turns 3]
    python bench/server.py --before ../before --turns 3 [--ledgers sqlite postgres] --actions "charged count"

The server is `fpinq serve` with its ledger on disk; the clients are processes
of their own on the loopback interface, each with several connections that are
kept open and one request at a time on each. They share the cores with the server,
so they do as little as they can: bytes that were made before, and a look at the
length of what comes back. Every connection is an analyst of its own, with a
session. "server µs" and "client µs" are the processor time of either for an action: unlike
the rate, they hardly depend on what else the machine is doing. From them comes what two
workers can be to one at the most, on the cores that they share with the clients.

--crowd is 64 connections, on one worker and on two, on a ledger in SQLite and in
PostgreSQL. `postgres` among the ledgers starts one for the purpose, in memory and
without fsync; an address is that of an empty database. --before takes the server of
another tree in turns with this one's. The ratios come last, beside their bars: of the
medians of all turns. A row in which nothing was answered measures nothing: it ends
the run, with what was said. Everything stops by itself.
"""

import argparse
import json
import multiprocessing
import os
import select
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
from statistics import median
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

from fpinq.server.tokens import Tokens

HERE = Path(__file__).resolve().parent.parent
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


class Kind(NamedTuple):
    """What is measured again in each turn: a server of a tree, on a ledger, with so many processes."""

    ledger: str
    workers: int
    tree: Path
    action: str


class Row(NamedTuple):
    """What was found of it once: how many a second, the ratio of 99 % to 50 % of the times, and the
    processor time of each, of the server and of the clients.
    """

    rate: float
    evenness: float
    cpu: float
    of_clients: float


class Took(NamedTuple):
    """What came of it: the seconds of each answer, what the others were refused for, and what it took."""

    answered: list[float]
    refused: Counter[str]
    busy: float = 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--clients", type=int, default=2, help="client processes")
    parser.add_argument("--connections", type=int, default=8, help="connections of each")
    parser.add_argument("--workers", type=int, nargs="+", default=[1], help="server processes")
    parser.add_argument("--ledgers", nargs="+", default=["sqlite"], help="sqlite, postgres, postgresql://…")
    parser.add_argument("--actions", nargs="+", choices=ACTIONS, default=list(ACTIONS))
    parser.add_argument("--quantum", default="0", help="the server's, such as 50ms")
    parser.add_argument("--turns", type=int, default=1, help="how often each is measured")
    parser.add_argument("--before", type=Path, help="another tree, whose server is measured in turns")
    parser.add_argument("--crowd", action="store_true", help="64 clients, 1 and 2 workers, both ledgers")
    arguments = parser.parse_args()
    if arguments.crowd:
        arguments.clients, arguments.connections = 2, 32
        arguments.workers, arguments.ledgers = [1, 2], ["sqlite", "postgres"]
    trees = [HERE] if arguments.before is None else [arguments.before.resolve(), HERE]
    rows: dict[Kind, list[Row]] = {}
    for _ in range(arguments.turns):
        for ledger in arguments.ledgers:
            for workers in arguments.workers:
                for tree in trees:
                    with tempfile.TemporaryDirectory() as folder, ledger_at(ledger) as place:
                        for name, row in measure(Path(folder), place, workers, tree, arguments):
                            rows.setdefault(Kind(ledger, workers, tree, name), []).append(row)
    print_ratios(rows, arguments)


def print_ratios(rows: dict[Kind, list[Row]], arguments: argparse.Namespace) -> None:
    """The medians of all turns beside the bars: to the other tree, of two workers to one, of 99 % to 50 %."""
    print("\nratios")
    for kind, found in rows.items():
        what = f"{kind.action}, {kind.ledger.partition(':')[0]}"
        rate = median(row.rate for row in found)
        if kind.tree != HERE or kind.action != "charged count":
            continue
        old = rows.get(kind._replace(tree=arguments.before and arguments.before.resolve()))
        if old is not None:
            ratio = rate / median(row.rate for row in old)
            cpu = median(row.cpu for row in old) / median(row.cpu for row in found)
            said = f"{what}, {kind.workers} worker(s): a second, to before"
            met = "" if ratio >= 2 else "NOT MET"
            print(f"{said:<64}{ratio:>8.2f}  {'≥ 2':<8}{met:<9}(processor time {cpu:.2f})")
        one = rows.get(kind._replace(workers=1))
        if kind.workers == 2 and one is not None:
            ratio = rate / median(row.rate for row in one)
            said = f"{what}: two workers to one"
            print(f"{said:<64}{ratio:>8.2f}  {'≥ 1.5':<8}{'' if ratio >= 1.5 else 'NOT MET'}")
            print(f"{'  at the most, by the processor time of each':<64}{most_of_two(one, found):>8.2f}")
        evenness = median(row.evenness for row in found)
        many = arguments.clients * arguments.connections
        said = f"{what}, {kind.workers} worker(s), {many} clients: 99 % to 50 %"
        print(f"{said:<64}{evenness:>8.1f}  {'≤ 5':<8}{'' if evenness <= 5 else 'NOT MET'}")


def most_of_two(one: list[Row], two: list[Row]) -> float:
    """What two workers can be to what one did: all cores, over what an action takes of server and clients."""
    each = median(row.cpu + row.of_clients for row in two)
    return (os.cpu_count() or 1) / each / median(row.rate for row in one)


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


def measure(
    folder: Path, ledger: str, workers: int, tree: Path, arguments: argparse.Namespace
) -> Iterator[tuple[str, Row]]:
    """Start a server, load it with each kind of action, stop it; what was found of each."""
    (folder / "people.csv").write_text("age,gender\n" + "".join(f"{i % 90},{i % 2}\n" for i in range(1000)))
    (folder / "fpinq.toml").write_text(
        f"ledger = {json.dumps(ledger)}\nquantum = {json.dumps(arguments.quantum)}\n"
        "[limits]\nrequests_per_second = 1000000\nconcurrent_requests = 1000\n"
        '[datasets.people]\npath = "people.csv"\nrows_at_most = 1000000\nbudget = 1000000\n'
        'schema = { age = "int64", gender = "int64" }\n'
    )
    tokens = Tokens(folder / "fpinq.tokens")
    shown = [tokens.create(f"a{n}", "analyst") for n in range(arguments.clients * arguments.connections)]
    with serving(folder, workers, tree) as (port, leader):
        kind = "PostgreSQL" if "://" in ledger else "SQLite"
        print(
            f"\n{tree.name}: {workers} server process(es) on {kind}, {arguments.clients} client processes of "
            f"{arguments.connections} connections, {os.cpu_count()} cores, "
            f"load {os.getloadavg()[0]:.1f} at the start"
        )
        heads = ("action", "actions/s", "p50 ms", "p99 ms", "p99/p50", "refused", "server µs", "client µs")
        print("".join(f"{head:<16}" if head == "action" else f"{head:>12}" for head in heads))
        for name in arguments.actions:
            before = cpu_seconds(leader)
            took = load(Load(port, shown, ACTIONS[name], arguments.seconds), arguments.clients)
            shown_row, found = row(name, took, arguments.seconds, cpu_seconds(leader) - before)
            print(shown_row, flush=True)
            yield name, found


def row(name: str, took: Took, seconds: float, busy: float) -> tuple[str, Row]:
    """A line of the table, and what it says; SystemExit if nothing was answered."""
    if not took.answered:
        raise SystemExit(f"{name}: nothing was answered: {dict(took.refused)}")
    times = sorted(took.answered)
    p50, p99 = times[len(times) // 2] * 1000, times[len(times) * 99 // 100] * 1000
    figures = f"{len(times) / seconds:>12,.0f}{p50:>12.1f}{p99:>12.1f}{p99 / p50:>12.1f}"
    found = Row(len(times) / seconds, p99 / p50, busy / len(times), took.busy / len(times))
    took_each = f"{found.cpu * 1e6:>12.0f}{found.of_clients * 1e6:>12.0f}"
    line = f"{name:<16}{figures}{took.refused.total():>12}{took_each}"
    return line, found


@contextmanager
def serving(folder: Path, workers: int, tree: Path) -> Iterator[tuple[int, int]]:
    """The server of a tree; its port and the process that leads it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-P", "-m", "fpinq", "serve", "--config", str(folder / "fpinq.toml")]
    command += ["--port", str(port), "--workers", str(workers)]
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    server = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL, env=environment)
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
    return Took(
        [t for each in took for t in each.answered],
        sum((each.refused for each in took), Counter()),
        sum(each.busy for each in took),
    )


def client(what: Load) -> Took:
    """One client process: as many requests as it can, one at a time on each connection."""
    callers = [Caller(what, token) for token in what.tokens]
    time.sleep(0.5)  # until all are here
    ends, began = time.perf_counter() + what.seconds, time.process_time()
    waiting = select.epoll()
    for caller in callers:
        waiting.register(caller.socket, select.EPOLLIN)
        caller.ask()
    by_number = {caller.socket.fileno(): caller for caller in callers}
    asking = len(callers)
    while asking:
        for number, _ in waiting.poll(60):
            if by_number[number].answered():
                if time.perf_counter() < ends:
                    by_number[number].ask()
                else:
                    asking -= 1
    busy = time.process_time() - began
    for caller in callers:
        caller.socket.close()
    return together([caller.took for caller in callers])._replace(busy=busy)


class Caller:
    """A connection, and what came of what was asked on it."""

    def __init__(self, what: Load, token: str) -> None:
        session = open_session(what.port, token)
        self.socket = socket.create_connection(("127.0.0.1", what.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.took = Took([], Counter())
        # A number of one length is all that is not the same each time.
        body = f'{{"request_id":"%016d","action":{json.dumps(what.action)}}}'
        self._text = (
            f"POST /sessions/{session}/actions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body % 0)}\r\n\r\n{body}"
        )
        self._asked, self._there = 0, b""

    def ask(self) -> None:
        """The next request."""
        self._asked += 1
        self._began = time.perf_counter()
        self.socket.sendall((self._text % (int(time.time()) * 10**6 + self._asked)).encode())

    def answered(self) -> bool:
        """Take what is there; whether that is all of the reply."""
        arrived = self.socket.recv(2**16)
        if not arrived:
            raise SystemExit("the server closed a connection")
        self._there += arrived
        head, found, body = self._there.partition(b"\r\n\r\n")
        if not found or len(body) < int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]):
            return False
        if head.startswith(b"HTTP/1.1 200"):
            self.took.answered.append(time.perf_counter() - self._began)
        else:
            self.took.refused[json.loads(body)["error"]["code"]] += 1
        self._there = b""
        return True


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
