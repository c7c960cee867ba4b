"""What a question computes of everybody's interpreter, it computes in its analyst's turn."""

import threading
import time

from fpinq.runtime.refusals import TooManyRequests
from fpinq.server.questions.systems import Working
from fpinq.server.turns import Turns


def test_of_an_analyst_s_questions_one_computes_at_a_time_and_others_do_not_wait() -> None:
    turns = Turns(TooManyRequests("late"))
    seen: list[str] = []

    def compute(analyst: str) -> None:
        with Working(turns, analyst, 0.0):
            seen.append(analyst)

    with Working(turns, "alice", 0.0) as first:
        waiting = threading.Thread(target=compute, args=("alice",))
        waiting.start()
        compute("bob")
        time.sleep(0.05)
        assert seen == ["bob"], "alice's second waits for her first"
        with first.aside():  # for the ledger, an engine or the quantum
            waiting.join(5)
            assert seen == ["bob", "alice"]
        locked = threading.Thread(target=compute, args=("alice",))
        locked.start()
        time.sleep(0.05)
        assert len(seen) == 2, "it is her first one's turn again"
    locked.join(5)
    assert seen == ["bob", "alice", "alice"]


def test_a_turn_is_given_back_whatever_happens_aside() -> None:
    turns = Turns(TooManyRequests("late"))
    for _ in range(3):
        try:
            with Working(turns, "alice", 0.0) as working, working.aside():
                raise RuntimeError("gone")
        except RuntimeError:
            pass


def test_the_pause_ends_at_a_multiple_of_the_quantum_since_the_question_began() -> None:
    turns = Turns(TooManyRequests("late"))
    began = time.monotonic()
    with Working(turns, "alice", 0.1) as working:
        time.sleep(0.13)
        working.until_quantum()
    assert time.monotonic() - began >= 0.19
