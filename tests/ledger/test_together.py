"""Steps of several threads are written together: all of a transaction or none, and nobody is told before."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpinq.ledger import Ledger, memory, open_ledger, open_store
from fpinq.ledger import together as together_module
from fpinq.ledger.entries import Head, action_text, body_of, line
from fpinq.ledger.errors import BadWire, LedgerCorrupt
from fpinq.ledger.store import Pages
from fpinq.ledger.together import AT_MOST, Step
from fpinq.ledger.verify import verify
from fpinq.ledger.wire import canonical, to_json
from fpinq.ledger.writing import Writing
from fpinq.model.actions import Action, AskBudget, Assign, Query
from fpinq.model.clamps import Clamp
from fpinq.model.errors import BadTransformation, KernelViolation, LedgerError, UnknownTable
from fpinq.model.events import Recorded, Took
from fpinq.model.expressions import Apply, Column, Literal, Schema, Type
from fpinq.model.queries import Choice, Count, Several
from fpinq.model.semantics import Rule
from fpinq.model.transformations import Partitioning, Select, Where
from ledger.random_actions import of

SHAPE = Schema((("age", Type.INT64), ("name", Type.STRING)))
ADULTS = Where(Apply("greater", (Column("age"), Literal.of(17))))
COST = Fraction(1, 100)


def count(table: str = "people") -> Query:
    return Query(table, COST, (Count(),))


class Held:
    """A store whose first transaction, from when it is asked to, does not commit before it is let go."""

    def __init__(self, store: Any) -> None:
        self._store, self.address, self.close = store, store.address, store.close
        self.reading, self.rows = store.reading, store.rows
        self.commits = 0
        self.holding = False
        self.failing = False
        self.is_in, self.go = threading.Event(), threading.Event()

    @contextmanager
    def writing(self, *, durable: bool) -> Iterator[Any]:
        with self._store.writing(durable=durable) as statements:
            yield statements
            if self.holding:
                self.holding = False
                self.is_in.set()
                assert self.go.wait(30)
            elif self.failing:
                self.failing = False
                raise LedgerError("the disk is full")
            self.commits += 1


@pytest.fixture
def held(place: str) -> Iterator[tuple[Ledger, Held]]:
    with closing(open_store(place)) as store:
        wrapped = Held(store)
        ledger = Ledger(wrapped)  # type: ignore[arg-type]
        ledger.register("people", SHAPE, 1, contents=["people"], caps={"capped": COST * 2})
        wrapped.commits = 0
        yield ledger, wrapped


def while_one_commits(
    ledger: Ledger, store: Held, steps: list[Callable[[], Any]], then: Callable[[], None] = lambda: None
) -> list[Future[Any]]:
    """Steps of as many threads, all of which wait while a first one is about to be committed."""
    store.holding = True
    store.is_in.clear(), store.go.clear()
    with ThreadPoolExecutor(len(steps) + 1) as pool:
        first = pool.submit(ledger.act, "first", count())
        assert store.is_in.wait(30)
        futures = []
        for number, step in enumerate(steps, 1):
            futures.append(pool.submit(step))
            while unclaimed(ledger) < number:  # in this order
                assert not futures[-1].done()
        then()
        assert not first.done()
        store.go.set()
    first.result()
    return futures


def unclaimed(ledger: Ledger) -> int:
    return sum(not step.is_claimed for step in tuple(ledger._together._waiting))


def spent(ledger: Ledger) -> Fraction:
    return ledger.roots()["people"].spent


@pytest.mark.parametrize("cut", ["before it leads", "before it commits"])
def test_one_that_was_cut_short_while_it_led_keeps_nobody_waiting(
    held: Any, cut: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it had taken along was lost, or it never gave back the lead: the others waited for ever."""
    ledger, _ = held
    together = ledger._together
    monkeypatch.setattr(together_module, "LOOK_SECONDS", 0.05)
    if cut == "before it leads":
        assert together._leading.acquire(blocking=False)  # and the signal came
        ledger.act("s", count())
    else:

        def interrupted(steps: Any) -> None:
            monkeypatch.undo()
            raise KeyboardInterrupt

        monkeypatch.setattr(together, "_commit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ledger.act("s", count())
        ledger.act("s", count())
    with ThreadPoolExecutor(1) as pool:
        pool.submit(ledger.act, "t", count()).result(30)
    assert spent(ledger) == 2 * COST


def test_n_charges_at_the_same_time_are_fewer_than_n_commits(held: Any) -> None:
    ledger, store = held
    asked = [lambda i=i: ledger.act(f"s{i}", count(), "r") for i in range(20)]
    acted = [future.result() for future in while_one_commits(ledger, store, asked)]
    assert store.commits == 2  # the first, and all others
    assert [each.seq for each in acted] == list(range(acted[0].seq, acted[0].seq + 20))
    assert spent(ledger) == 21 * COST
    answered = [lambda a=a: ledger.answer(a.seq, ((a.seq,),)) for a in acted]
    told = [future.result() for future in while_one_commits(ledger, store, answered)]
    assert told == [((a.seq,),) for a in acted]
    assert store.commits == 4
    assert verify(store._store).unanswered == 2  # those that the others waited for


def test_whoever_comes_takes_along_those_who_wait_and_is_behind_them(held: Any) -> None:
    """A step that finds nobody leading is written alone only where nobody waits."""
    ledger, store = held
    order: list[str] = []
    waiting: Step[None] = Step("first", lambda writing, found: order.append("first"))
    ledger._together._waiting.append(waiting)
    before = store.commits
    ledger._take(Step("second", lambda writing, found: order.append("second")))
    assert order == ["first", "second"]
    assert waiting.is_over
    assert store.commits == before + 1


def test_a_transaction_has_a_largest_size(held: Any) -> None:
    ledger, store = held
    asked = [lambda i=i: ledger.act(f"s{i}", Assign("t", ADULTS, ("people",))) for i in range(AT_MOST + 3)]
    while_one_commits(ledger, store, asked)
    assert store.commits == 3


def test_nobody_is_told_before_the_commit(held: Any) -> None:
    """Those who follow are told by whoever leads, and that is after its commit."""
    ledger, store = held
    asked = [lambda i=i: ledger.act(f"s{i}", count()) for i in range(5)]
    early: list[bool] = []
    futures: list[Future[Any]] = []
    commit = ledger._commit

    def watched(steps: Any) -> None:
        commit(steps)
        early.extend(step.is_over for step in steps)

    ledger._together._commit = watched
    futures += while_one_commits(ledger, store, asked)
    assert [future.result().rule for future in futures] == [Rule.QUERY] * 5
    assert early == [False] * 6


def test_a_commit_that_fails_fails_all_of_it_and_nothing_is_there(held: Any) -> None:
    ledger, store = held
    asked = [lambda i=i: ledger.act(f"s{i}", count(), "r") for i in range(5)]

    def fail() -> None:
        store.failing = True

    futures = while_one_commits(ledger, store, asked, fail)
    for future in futures:
        with pytest.raises(LedgerError, match="disk is full"):
            future.result()
    assert store.commits == 1
    assert spent(ledger) == COST
    assert verify(store._store).roots["people"][1] == COST
    # And all of them can be asked again.
    again = [each().rule for each in asked]
    assert again == [Rule.QUERY] * 5
    assert spent(ledger) == 6 * COST
    verify(store._store)


def test_an_interruption_of_the_one_that_leads_is_a_ledger_error_for_the_others(held: Any) -> None:
    ledger, store = held

    class Interrupted(BaseException):
        pass

    def interrupt(label: object) -> None:
        raise Interrupted

    asked = [
        lambda: ledger.act("interrupted", count(), check=interrupt),
        *(lambda i=i: ledger.act(f"s{i}", count()) for i in range(3)),
    ]
    interrupted, *others = while_one_commits(ledger, store, asked)
    failed = [each.exception() for each in (interrupted, *others)]
    # Whoever leads is interrupted, whosever step it was; the others are told that nothing was answered.
    assert sum(isinstance(each, Interrupted) for each in failed) == 1
    assert sum(isinstance(each, LedgerError) for each in failed) == 3
    assert spent(ledger) == COST
    assert ledger.act("s1", count()).rule is Rule.QUERY
    verify(store._store)


def test_a_mistake_in_what_one_step_computes_is_its_own(held: Any) -> None:
    """One that could not be written down, a number of 5,000 digits in a refusal, failed everybody's step."""
    ledger, store = held

    def mistaken(label: object) -> None:
        str(10**5_000)

    asked = [
        lambda: ledger.act("a", count()),
        lambda: ledger.act("mistaken", count(), check=mistaken),
        lambda: ledger.act("b", count()),
    ]
    a, mistake, b = while_one_commits(ledger, store, asked)
    assert isinstance(mistake.exception(), KernelViolation)
    assert [each.result().rule for each in (a, b)] == [Rule.QUERY] * 2
    assert (store.commits, spent(ledger)) == (2, 3 * COST)
    verify(store._store)


def test_a_mistake_elsewhere_is_everybody_s_and_nothing_is_written(
    held: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What may have come from the database: the transaction is not to be trusted."""
    ledger, store = held
    clock, times = ledger._clock, iter([True, False, True])

    def stopping() -> Any:
        assert next(times, True), "stopped"
        return clock()

    asked = [lambda session=session: ledger.act(session, count()) for session in "abc"]
    failed = while_one_commits(ledger, store, asked, lambda: monkeypatch.setattr(ledger, "_clock", stopping))
    assert [type(each.exception()) for each in failed] == [LedgerError, AssertionError, LedgerError]
    assert (store.commits, spent(ledger)) == (1, COST)
    verify(store._store)


def test_what_refuses_one_step_does_not_touch_the_others(held: Any) -> None:
    ledger, store = held
    asked = [
        lambda: ledger.act("a", count(), "r"),
        lambda: ledger.act("b", count("nothing"), "r"),
        lambda: ledger.act("c", Query("people", Fraction(2), (Count(),)), "r"),  # ⊥
        lambda: ledger.act("d", count(), "r", "capped"),
        lambda: ledger.freeze("nothing"),
        lambda: ledger.act("e", count(), "r", "capped"),
        lambda: ledger.act("f", count(), "r", "capped"),  # ⊥: the cap, spent in the same transaction
    ]
    a, b, c, d, owner, e, f = while_one_commits(ledger, store, asked)
    for refused in (b, owner):
        with pytest.raises(UnknownTable):
            refused.result()
    rules = [each.result().rule for each in (a, c, d, e, f)]
    assert rules == [Rule.QUERY, Rule.QUERY_BOTTOM, Rule.QUERY, Rule.QUERY, Rule.QUERY_BOTTOM]
    assert store.commits == 2
    assert ledger.spent_by("capped") == {"people": 2 * COST}
    verify(store._store)


def test_a_freeze_holds_for_those_behind_it_in_the_same_transaction(held: Any) -> None:
    ledger, store = held
    asked = [lambda: ledger.freeze("people"), lambda: ledger.act("a", count())]
    frozen, refused = while_one_commits(ledger, store, asked)
    frozen.result()
    assert type(refused.exception()).__name__ == "Frozen"
    assert store.commits == 2


def test_steps_of_one_session_and_the_same_request_are_in_different_transactions(held: Any) -> None:
    ledger, store = held
    ledger.act("s", Assign("t", ADULTS, ("people",)))
    asked = [
        lambda: ledger.act("s", Assign("u", ADULTS, ("t",)), "1"),
        lambda: ledger.act("s", count("u"), "2"),
        lambda: ledger.act("s", count("u"), "2"),
        lambda: ledger.act("other", count(), "2"),
    ]
    store.commits = 0
    assigned, first, second, other = (future.result() for future in while_one_commits(ledger, store, asked))
    assert (assigned.rule, other.rule) == (Rule.ASSIGN, Rule.QUERY)
    assert first.seq == second.seq  # one charge, measured by both: the first answer is the answer
    assert ledger.answer(first.seq, ((5,),)) == ledger.answer(first.seq, ((6,),)) == ((5,),)
    assert spent(ledger) == 3 * COST
    verify(store._store)


def test_many_threads_of_two_ledgers_leave_one_chain(place: str) -> None:
    """The order is whatever it is; taken again one after the other, every step is what it was."""
    ledgers = [open_ledger(place), open_ledger(place)]
    ledgers[0].register("people", SHAPE, 1, contents=["people"])

    def client(number: int) -> Fraction:
        ledger, charged = ledgers[number % 2], Fraction(0)
        for turn in range(6):
            ledger.act(f"s{number}", Assign(f"t{turn}", ADULTS, ("people",)))
            acted = ledger.act(f"s{number}", count(f"t{turn}"), str(turn))
            if acted.rule is Rule.QUERY:
                assert ledger.answer(acted.seq or 0, ((number,),)) == ((number,),)
            charged += sum(acted.charged.values())
        return charged

    with ThreadPoolExecutor(16) as pool:
        charged = sum(pool.map(client, range(20)), Fraction(0))
    assert charged == 1  # 100 of 120
    assert spent(ledgers[0]) == spent(ledgers[1]) == 1
    with closing(open_store(place)) as store:
        report = verify(store)
    assert (report.roots["people"][1], report.unanswered) == (1, 0)
    for ledger in ledgers:
        ledger.close()


def long_session(ledger: Ledger, steps: int, transformation: Any = ADULTS) -> None:
    for number in range(steps):
        ledger.act("long", Assign(f"t{number % 7}", transformation, ("people",)))


# In three entries it is longer than in how many a session is followed while others wait.
LENGTHY = Select(tuple((f"a{i}", Column("age")) for i in range(1_200)))


@pytest.mark.parametrize(("steps", "transformation"), [(3 * memory.FEW, ADULTS), (3, LENGTHY)])
def test_others_act_while_a_long_session_is_replayed(
    steps: int, transformation: Any, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was replayed in the transaction of its step, and everybody waited."""
    first = open_ledger(place)
    first.register("people", SHAPE, 1, contents=["people"])
    long_session(first, steps, transformation)
    first.close()
    ledger = open_ledger(place)
    replaying, go = threading.Event(), threading.Event()
    original = memory.followed

    def slowly(*given: Any) -> Any:
        replaying.set()
        assert go.wait(30)
        return original(*given)

    monkeypatch.setattr(memory, "followed", slowly)
    with ThreadPoolExecutor(3) as pool:
        asked = [
            pool.submit(ledger.act, "long", count("t2"), "r"),
            pool.submit(ledger.act, "long", AskBudget()),
            pool.submit(ledger.configuration, "long"),
        ]
        assert replaying.wait(30)
        assert ledger.act("other", count(), "r").rule is Rule.QUERY
        assert spent(ledger) == COST
        assert not any(step.done() for step in asked)
        go.set()
        assert asked[0].result().rule is Rule.QUERY
    ledger.close()


def test_what_is_asked_of_large_tables_is_looked_at_while_others_act(place: str) -> None:
    """Whether a query is admitted was looked at in its transaction: as long as its tables are large. Then it
    was looked at before, and once more there.
    """
    ledger = open_ledger(place)
    ledger.register("people", SHAPE, 1, contents=["people"])
    long_session(ledger, 3, LENGTHY)
    locked: list[bool] = []

    def looking(label: object) -> None:
        locked.append(ledger._alone.is_here)
        if not ledger._alone.is_here:
            assert ledger.act(f"other {len(locked)}", count()).rule is Rule.QUERY

    asked = ledger.act("long", count("t2"), "r", check=looking)
    assert (asked.rule, locked) == (Rule.QUERY, [False])
    again = ledger.act("long", count("t2"), "r", check=looking)
    assert (again.seq, again.label, locked) == (asked.seq, asked.label, [False] * 2)
    assert spent(ledger) == 3 * COST
    ledger.close()


def test_what_became_something_else_while_it_was_looked_at_is_looked_at_again(place: str) -> None:
    ledger = open_ledger(place)
    ledger.register("people", SHAPE, 1, contents=["people"])
    long_session(ledger, 3, LENGTHY)
    seen: list[Any] = []

    def looking(label: object) -> None:
        seen.append((label, ledger._alone.is_here))
        if len(seen) == 1:
            ledger.act("long", Assign("t2", LENGTHY, ("people",)))
            ledger.act("long", Assign("t2", ADULTS, ("people",)))

    acted = ledger.act("long", count("t2"), check=looking)
    (before, first), (after, second) = seen
    assert (first, second, before != after, acted.label) == (False, True, True, after)
    ledger.close()


def test_a_long_query_is_looked_at_while_others_act(place: str) -> None:
    """How many fractions there are was asked after each was looked at, in everybody's transaction."""
    ledger = open_ledger(place)
    ledger.register("people", SHAPE, 1, contents=["people"])
    long = Query("people", COST, (Choice(tuple(Clamp(Column("age"), 0, i + 1) for i in range(1_500))),))
    locked: list[bool] = []
    ledger.act("a", long, check=lambda label: locked.append(ledger._alone.is_here))
    assert locked == [False]
    ledger.close()


def test_several_queries_are_looked_at_while_others_act(place: str) -> None:
    """A hundred of a table that is not large were a hundred looks at it in everybody's transaction."""
    ledger = open_ledger(place)
    ledger.register("people", SHAPE, 1, contents=["people"])
    locked: list[bool] = []
    for number in (1, 100):
        several = Query("people", COST, (Several((Count(),) * number, (1,) * number),))
        ledger.act("s", Assign("t", Select(tuple((f"a{i}", Column("age")) for i in range(30))), ("people",)))
        ledger.act("s", several, check=lambda label: locked.append(ledger._alone.is_here))
    assert locked == [True, False]
    ledger.close()


@pytest.mark.parametrize("asked", [count(), Query("people", COST, (Count(),) * 9_000)])
def test_what_is_too_deep_for_the_machine_is_refused_and_no_violation(place: str, asked: Query) -> None:
    """Some limits were wide enough for plans that Python cannot go down: then the server stopped for good."""
    ledger = open_ledger(place)
    ledger.register("people", SHAPE, 1, contents=["people"])

    def deep(label: object) -> None:
        deep(label)

    by = Partitioning(Column("age"), range(len(asked.queries))) if len(asked.queries) > 1 else None
    with pytest.raises(BadTransformation, match="too deep"):
        ledger.act("a", replace(asked, by=by), check=deep)
    assert spent(ledger) == 0
    assert ledger.act("a", count()).rule is Rule.QUERY
    ledger.close()


def test_a_refusal_of_what_is_asked_of_large_tables_is_the_same_and_writes_nothing(place: str) -> None:
    ledger = open_ledger(place)
    ledger.register("people", SHAPE, 1, contents=["people"])
    long_session(ledger, 3, LENGTHY)
    head, locked = ledger.head(), []

    def refusing(label: object) -> None:
        locked.append(ledger._alone.is_here)
        raise UnknownTable("nothing", [])

    with pytest.raises(UnknownTable):
        ledger.act("long", count("t2"), "r", check=refusing)
    assert (ledger.head(), locked) == (head, [False])
    ledger.close()


def test_what_another_process_adds_while_a_session_is_replayed_is_not_missed(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = open_ledger(place)
    one.register("people", SHAPE, 1, contents=["people"])
    long_session(one, 2 * memory.FEW)
    two = open_ledger(place)
    original, added = memory.followed, []

    def adding(*given: Any) -> Any:
        if not added:
            added.append(True)
            one.register("later", SHAPE, 1, contents=["later"])
            one.act("long", Assign("late", ADULTS, ("later",)))
        return original(*given)

    monkeypatch.setattr(memory, "followed", adding)
    assert two.act("long", Query("late", COST, (Count(),))).charged == {"later": COST}
    one.close(), two.close()


def test_a_charge_without_an_answer_in_a_long_session_is_measured_while_others_act(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = open_ledger(place)
    ledger.register("people", SHAPE, 1, contents=["people"])
    long_session(ledger, 2 * memory.FEW)
    asked = ledger.act("long", count("t3"), "r")
    ledger.act("long", Assign("t3", Where(Apply("greater", (Column("age"), Literal.of(3)))), ("people",)))
    locked: list[bool] = []
    original = memory.followed

    def watched(*given: Any) -> Any:
        locked.append(ledger._alone.is_here)
        return original(*given)

    monkeypatch.setattr(memory, "followed", watched)
    again = ledger.act("long", count("t3"), "r")
    assert (again.seq, again.label) == (asked.seq, asked.label)
    assert len(locked) == 2 * memory.FEW
    assert not any(locked)
    ledger.close()


def test_a_session_that_only_asks_is_looked_for_once(place: str) -> None:
    ledger = open_ledger(place)
    ledger.register("people", SHAPE, 1, contents=["people"])
    told = ledger.act("fresh", AskBudget()).label
    reading = ledger._store.reading
    ledger._store.reading = lambda: pytest.fail("looked again")  # type: ignore[method-assign]
    assert ledger.act("fresh", AskBudget()).label == told
    ledger._store.reading = reading  # type: ignore[method-assign]
    other = open_ledger(place)
    other.act("fresh", count(), analyst="bob")  # whose it is from now on
    with pytest.raises(Exception, match="session"):
        ledger.act("fresh", AskBudget())
    assert ledger.act("fresh", AskBudget(), analyst="bob").label != told
    ledger.close(), other.close()


@given(action=of(Action))
@settings(max_examples=200, deadline=None)
def test_an_entry_is_the_same_whether_its_action_is_written_before_or_with_it(action: Any) -> None:
    took = Took("s", "é", None, action, Rule.ASSIGN, {"people": Fraction(1, 3)})
    head = Head(7, "0" * 64)
    try:
        expected = line(head, took, "now", "1")
    except BadWire:
        with pytest.raises(BadWire):
            action_text(action)
    else:
        assert line(head, took, "now", "1", action_text(action)) == expected


def with_a_transaction(store: Any, write: Callable[[Any], None]) -> None:
    with store.writing(durable=True) as statements:
        write(statements)


@given(st.lists(st.lists(st.integers(), max_size=4).map(tuple), max_size=4).map(tuple), st.integers(0, 10**9))
@settings(deadline=None)
def test_an_answer_is_written_as_every_other_entry_is(released: Any, answers: int) -> None:
    head, totals = Head(answers + 1, "ab" * 32), "cd" * 32
    made = line(head, Recorded(answers, released), "2026-01-01", totals)
    every = {
        "kind": "answer",
        "seq": head.seq + 1,
        "previous": head.hash,
        "at": "2026-01-01",
        "totals": totals,
    }
    assert made.text == canonical({"answers": answers, "released": to_json(released), **every})
    assert made[3:] == (None, None, answers)
    assert body_of(made) == Recorded(answers, released)


def test_a_head_that_moved_is_noticed(place: str) -> None:
    """Nothing is written after another head than the one that the steps saw."""
    ledger = open_ledger(place)
    ledger.register("people", SHAPE, 1, contents=["people"])
    took = Took("s", None, None, Assign("t", ADULTS, ("people",)), Rule.ASSIGN, {})

    def write(statements: Any) -> None:
        writing = Writing(Pages(statements), Head(1, "another"))
        writing.append(took, "now", "0")
        writing.write()

    with closing(open_store(place)) as store, pytest.raises(LedgerCorrupt, match="another writer"):
        with_a_transaction(store, write)
    assert ledger.head().seq == 1
    ledger.close()
