"""A share of a budget is debited whatever is raised, and wherever: at least what the record shows."""

import threading
from collections.abc import Callable
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

import fpinq as fp
from fpinq.client import asking
from fpinq.client.remote import Http
from fpinq.runtime import ProtectedSystem, ReferenceEngine
from traced import Interrupted, at_line, interrupt

ROWS = [{"age": age} for age in (20, 30, 40)]


def interrupted_at(step: int, do: Callable[[], object]) -> bool:
    """Do something, and raise at a step of it: at a line, or where a function begins or ends.

    What is raised where a generator is closed, or a finalizer runs, goes nowhere: the action then ends as if
    nothing had been, which counts as interrupted, so that the steps after it are tried too.
    """
    try:
        # Python shows the line of a with again before it leaves it; a signal is never handled there.
        return at_line(step, do, interrupt, but=("with ",))
    except Interrupted:
        return True


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_whatever_line_an_action_is_interrupted_at_the_share_is_debited_what_was_charged() -> None:
    """A signal handler that raised after the charge left the share as it was."""
    step, charged, interrupted = 0, 0, True
    while interrupted:
        # Steps of the same action, ever further: densely where the charge is, and in between.
        step += 1 + step // 200
        share = fp.Budget(1)
        data = fp.protect(ROWS, budget=1, engine=ReferenceEngine(), schema={"age": "int64"})
        table = data.with_budget(share)
        interrupted = interrupted_at(step, lambda table=table: table.noisy_count("1/4"))  # type: ignore[misc]
        spent = 1 - data.remaining
        assert 1 - share.remaining >= spent, step
        assert 1 - share.remaining in (0, Fraction(1, 4))
        charged += interrupted and spent > 0
    assert charged > 20  # and not only before the charge
    assert share.remaining == data.remaining == Fraction(3, 4)


@pytest.mark.parametrize("kind", [MemoryError, KeyboardInterrupt, SystemExit, RuntimeError, Interrupted])
@pytest.mark.parametrize("where", ["measure", "draw", "answer", "released"])
def test_whatever_is_raised_after_the_charge_the_share_is_debited(
    tmp_path: Path, where: str, kind: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = fp.protect(ROWS, budget=1, ledger=tmp_path / "ledger", name="people", engine="reference")
    system: ProtectedSystem = data.facts.system

    def fail(*given: object, **named: object) -> None:
        raise kind

    holder = {
        "measure": (system.engine, "measure"), "draw": (system, "_mechanism"),
        "answer": (system.record, "answer"), "released": (system, "_measure"),
    }[where]  # fmt: skip
    monkeypatch.setattr(*holder, fail)
    share = fp.Budget(1)
    with pytest.raises((fp.EngineError, kind)):
        data.with_budget(share).noisy_count("1/4")
    monkeypatch.undo()
    assert data.remaining == share.remaining == Fraction(3, 4)


def test_what_was_not_charged_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    data = fp.protect(ROWS, budget="1/8", engine=ReferenceEngine(), schema={"age": "int64"})
    share = fp.Budget(1)
    table = data.with_budget(share)
    with pytest.raises(fp.BudgetExceeded):
        table.noisy_count("1/4")
    monkeypatch.setattr(asking, "refuse_unless_it_fits", lambda table, epsilon: None)
    with pytest.raises(fp.BudgetExceeded):
        table.noisy_count("1/4")  # ⊥ from the kernel itself
    monkeypatch.undo()

    def changed(plan: object) -> None:
        raise fp.DataChanged("people")

    monkeypatch.setattr(data.facts.system.engine, "check_unchanged", changed, raising=False)
    with pytest.raises(fp.DataChanged):
        table.noisy_count("1/8")
    assert share.remaining == 1


def test_a_refusal_after_an_attempt_without_a_reply_is_no_proof_that_nothing_was_charged() -> None:
    """The first attempt was charged, its reply was lost; the second is refused: the data set is frozen."""

    class Flaky(BaseHTTPRequestHandler):
        attempts = 0

        def do_POST(self) -> None:
            type(self).attempts += 1
            self.rfile.read(int(self.headers["Content-Length"]))
            if self.attempts % 2:
                return  # no reply
            self.send_response(423)
            body = b'{"error":{"code":"frozen","message":"frozen","fields":{}}}'
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *given: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Flaky)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        http = Http(f"http://127.0.0.1:{server.server_port}", "fpq_x", 10, 3)
        with pytest.raises(fp.ProgramError, match="frozen") as refused:
            http.send("POST", "/sessions/x/actions", {})
        assert refused.value.may_be_charged  # type: ignore[attr-defined]
        Flaky.attempts = 1
        with pytest.raises(fp.ProgramError, match="frozen") as refused:
            http.send("POST", "/sessions/x/actions", {})
        assert not hasattr(refused.value, "may_be_charged")
    finally:
        server.shutdown()
        server.server_close()
