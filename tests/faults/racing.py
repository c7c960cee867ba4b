"""Many clients of one process, racing for a budget. Run twice at a time by test_races."""

import os
import sys
import time
from collections import Counter
from fractions import Fraction
from threading import Thread

from faults.program import ROWS, noise
from fpinq.ledger import open_ledger
from fpinq.model.actions import Query
from fpinq.model.expressions import Schema, Type
from fpinq.model.queries import Count
from fpinq.runtime import Answered, ProtectedSystem, ReferenceEngine

CLIENTS = 32
COST = Fraction(1, 60)


def main() -> None:
    where, table, start = sys.argv[1:]
    engine = ReferenceEngine()
    system = ProtectedSystem(engine, record=open_ledger(where), mechanism=noise)
    engine.add_root("data", ROWS)
    system.protect("data", Schema((("a", Type.INT64),)), Fraction(1), contents=["data"])
    seen: Counter[str] = Counter()

    def client(number: int) -> None:
        # Parts are a session's own, so those who race for parts are one program in two processes.
        session = "parts" if table != "data" else f"{os.getpid()}-{number}"
        while not os.path.exists(start):
            time.sleep(0.001)
        refused = False
        while not refused:
            told = system.act(Query(table, COST, (Count(),)), session=session)
            seen["answered" if isinstance(told, Answered) else "refused"] += 1
            refused = not isinstance(told, Answered)

    threads = [Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    print("ready", flush=True)
    for thread in threads:
        thread.join()
    print(seen["answered"], seen["refused"], flush=True)
    system.record.close()  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
