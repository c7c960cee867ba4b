"""A server under load for a while: does its memory end flat?

    python bench/soak.py [--minutes 20] [--analysts 32] [--workers 1] [--ledger postgresql://…]

Analysts come back to sessions, open new ones, make tables, ask their budget, ask
counts and averages that are answered, refused, sent again with the same id, or no
JSON at all; one who watches reads the trace and the metrics. The resident memory of the
server's processes is written down every few seconds. It is flat if the last fifth of
the time needs no more than the fifth before the middle, but for a twentieth and 8 MB:
then this ends with 0, and otherwise with 1. Everything stops by itself.
"""

import argparse
import asyncio
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

from fpinq.server.tokens import Tokens
from server import ADULTS, open_session, serving, stats

ROOM, SHARE = 8.0, 1.05
EPSILON = "1/10000"
COUNT = {"op": "query", "table": "people", "epsilon": EPSILON, "queries": [{"op": "count"}]}
OLDER = {"op": "apply", "operator": "greater", "arguments": [{"op": "column", "name": "age"}]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--analysts", type=int, default=32)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--ledger", default="people.ledger", help="a file, or postgresql://…")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return soak(Path(folder), arguments)


def soak(folder: Path, arguments: argparse.Namespace) -> int:
    """Serve, load, watch; 0 if it ends flat."""
    configure(folder, arguments.ledger)
    tokens = Tokens(folder / "fpinq.tokens")
    shown = [tokens.create(f"a{n}", "analyst") for n in range(arguments.analysts)]
    auditor = tokens.create("auditor", "auditor")
    with serving(folder, arguments.workers) as (port, leader):
        ends = time.monotonic() + arguments.minutes * 60
        seen, told = asyncio.run(everybody(port, leader, shown, auditor, ends))
    fifth = max(1, len(seen) // 5)
    before, after = median(seen[2 * fifth - fifth // 2 :][:fifth]), median(seen[-fifth:])
    print(f"{told.total():,} replies: {dict(told.most_common())}")
    flat = after <= before * SHARE + ROOM
    print(f"{before:.0f} MB before the middle, {after:.0f} MB in the end: {'flat' if flat else 'IT GROWS'}")
    return 0 if flat else 1


def configure(folder: Path, ledger: str) -> None:
    """A server that keeps little: what it holds is full soon, and must not grow from then on."""
    (folder / "people.csv").write_text("age,gender\n" + "".join(f"{i % 90},{i % 2}\n" for i in range(1000)))
    (folder / "fpinq.toml").write_text(
        f'ledger = {json.dumps(ledger)}\nsessions_memory = "4MiB"\n'
        "[limits]\nrequests_per_second = 1000000\n"
        '[datasets.people]\npath = "people.csv"\nrows_at_most = 1000000\nbudget = 1000000\n'
        'schema = { age = "int64", gender = "int64" }\n'
    )


async def everybody(
    port: int, leader: int, tokens: list[str], auditor: str, ends: float
) -> tuple[list[float], Counter[str]]:
    """All of them, until the time is over: the megabytes, and what was told how often."""
    told: Counter[str] = Counter()
    clients = [analyst(port, token, ends, told) for token in tokens]
    seen, *_ = await asyncio.gather(watching(leader, ends), auditing(port, auditor, ends), *clients)
    return seen, told


async def watching(leader: int, ends: float) -> list[float]:
    """The memory of the server, every few seconds."""
    every, seen = max(0.5, (ends - time.monotonic()) / 200), list[float]()
    while time.monotonic() < ends:
        seen.append(resident(leader))
        if len(seen) % 10 == 1:
            print(f"{max(0, ends - time.monotonic()):>8.0f} s left {seen[-1]:>8.0f} MB", flush=True)
        await asyncio.sleep(every)
    return seen


def resident(leader: int) -> float:
    """The megabytes of a server and its workers."""
    return sum(int(stat[21]) for stat in stats(leader)) * os.sysconf("SC_PAGE_SIZE") / 1e6


async def analyst(port: int, token: str, ends: float, told: Counter[str]) -> None:
    """One analyst, on one connection, with ever new sessions and some old ones."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    sessions, sent = [await asyncio.to_thread(open_session, port, token)], 0
    while time.monotonic() < ends:
        sent += 1
        if random.random() < 0.02:
            sessions = [*sessions[-20:], await asyncio.to_thread(open_session, port, token)]
        number = sent - 1 if random.random() < 0.05 else sent  # now and then one that was sent before
        body = json.dumps({"request_id": str(number), "action": action(sent)})
        body = body if random.random() < 0.98 else body[:-3]
        path = f"/sessions/{random.choice(sessions)}/actions"
        told[await send(reader, writer, "POST", path, token, body)] += 1
    writer.close()


def action(number: int) -> dict[str, Any]:
    """What is asked: mostly cheap, never quite the same."""
    kind, age = random.random(), {"op": "literal", "value": random.randrange(10**6), "type": "int64"}
    if kind < 0.4:
        older = {**OLDER, "arguments": [*OLDER["arguments"], age]}
        where = {**ADULTS, "predicate": older}
        return {"op": "assign", "target": f"t{number % 50}", "arguments": ["people"], "transformation": where}
    if kind < 0.5:
        return {"op": "ask_budget"}
    if kind < 0.6:
        return {**COUNT, "table": f"t{random.randrange(60)}"}  # some are not there
    return COUNT


async def auditing(port: int, token: str, ends: float) -> None:
    """Someone who reads what all can see, and the trace."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while time.monotonic() < ends:
        for path in ("/metrics", "/trace?limit=100", "/datasets", "/nowhere"):
            await send(reader, writer, "GET", path, token, "")
        await asyncio.sleep(1)
    writer.close()


async def send(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, method: str, path: str, token: str, body: str
) -> str:
    """One request; "ok", or the code of its refusal."""
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
    writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
    headers = await reader.readuntil(b"\r\n\r\n")
    length = int(headers.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    told = await reader.readexactly(length)
    return "ok" if headers.startswith(b"HTTP/1.1 200") else str(json.loads(told)["error"]["code"])


if __name__ == "__main__":
    sys.exit(main())
