"""The proof and the code charge the same for budgets of both notions, with a δ or without: every book."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import pytest

from fpinq.model import books
from fpinq.model.accounts import Part, Root
from fpinq.model.actions import AskBudget, AskPrice, Query
from fpinq.model.epsilon import Epsilon
from fpinq.model.errors import KernelViolation, NoDelta, NotConcentrated
from fpinq.model.notions import Amount, Rho, Total, amount_of, approximate
from fpinq.model.queries import Count
from fpinq.model.semantics import Told, step
from fpinq.model.units import GRAIN
from proof.conftest import Coq
from proof.test_proof import Script, by, listed


def in_coq(amount: Fraction | Rho) -> str:
    number = amount.amount if isinstance(amount, Rho) else amount
    kind = "Rho" if isinstance(amount, Rho) else "Epsilon"
    return f"(ComputeBooks.{kind} ({number.numerator}#{number.denominator}))"


# ── κ ────────────────────────────────────────────────────────────────────────────────


def amounts() -> list[tuple[Amount, int]]:
    random = Random(1)
    scales = [1, 2, 3, 7, 10**3, 10**9]
    numbers = [
        Fraction(random.randint(1, 10**k), random.randint(1, 10**k)) for k in range(1, 7) for _ in range(6)
    ]
    at: list[Amount] = [Epsilon(number) for number in numbers]
    return [(a, s) for number, e in zip(numbers, at, strict=True) for a in (e, Rho(number)) for s in scales]


def test_what_a_unit_of_distance_costs_is_the_same(coq: Coq) -> None:
    known = amounts()
    found = coq(
        [f"ComputeBooks.show_kappa {GRAIN} Closeness.Concentrated {in_coq(at)} ({s}#1)" for at, s in known]
    )
    assert found == [str(books.per_unit(at, s)) for at, s in known]


def test_no_rate_is_a_refusal_in_the_proof(coq: Coq) -> None:
    asked: list[Amount] = [Rho(Fraction(1, 7)), Epsilon(Fraction(1, 7))]
    terms = [f"ComputeBooks.show_kappa {GRAIN} Closeness.Pure {in_coq(at)} (3#1)" for at in asked]
    assert coq(terms) == ["refused", "1/7"]


# ── programs ─────────────────────────────────────────────────────────────────────────


class Mixed(Script):
    """A random program on roots with an ε and roots with a ρ, some with a δ for keys, asked at either."""

    def __init__(self, random: Random) -> None:
        self.concentrated: list[bool] = []
        self.deltas: list[Fraction | None] = []
        self.amounts: list[Fraction] = []
        self.verdicts_with_delta: set[str] = set()
        super().__init__(random)

    def promised(self, total: Fraction) -> Total:
        self.concentrated.append(self.random.random() < 0.7)
        keys = Fraction(self.random.randint(1, 9), 10**6) if self.random.random() < 0.6 else None
        promised: Total = Rho(total) if self.concentrated[-1] else total
        if keys is not None:
            promised = approximate(total, keys + Fraction(self.concentrated[-1], 100), keys)
        self.deltas.append(keys)
        self.amounts.append(amount_of(promised))
        return promised

    def amount(self) -> Fraction | Rho:
        number = self.epsilon() / self.random.choice([1, 10, 100])
        return Rho(number) if self.random.random() < 0.6 else number

    def query(self) -> None:
        if self.random.random() < 0.4:
            self.find()
            return
        table, at, parts = self.table(), self.amount(), self.random.choice([0, 0, 1, 3])
        self.commands.append(f"Query_ {table} {in_coq(at)} 0")
        asked = Query(f"t{table}", at, (Count(),) * max(parts, 1), by(parts) if parts else None)
        try:
            transition = step(self.c, asked)
        except NotConcentrated:
            self.note("refused")
            return
        self.c = transition.configuration
        self.note("measured" if transition.rule == "Query" else "bottom")

    def find(self) -> None:
        """A query that spends a δ for each unit of distance, as the rule for queries charges it."""
        table, at = self.table(), self.amount()
        delta = Fraction(self.random.randint(1, 9), self.random.choice([10**6, 3 * 10**6, 10**7]))
        self.commands.append(f"Query_ {table} {in_coq(at)} ({delta.numerator}#{delta.denominator})")
        amount = at if isinstance(at, Rho) else Epsilon(at)
        before = self.c.accounts
        try:
            after = books.charge(before, self.c.table(f"t{table}").sensitivity, amount, delta)
        except (NotConcentrated, NoDelta):
            self.found("refused")
            return
        fits = books.fits(before, after)
        if fits:
            books.certify(after)
            self.c = replace(self.c, accounts=after)
        self.found("measured" if fits else "bottom")

    def found(self, verdict: str) -> None:
        self.verdicts_with_delta.add(verdict)
        self.note(verdict)

    def price(self) -> None:
        table, at = self.table(), self.amount()
        self.commands.append(f"Price_ {table} {in_coq(at)} 0")
        try:
            told = self.told(AskPrice(f"t{table}", at))
        except NotConcentrated:
            self.note("refused")
            return
        self.note(f"price {told}")

    def budget(self) -> None:
        """What is left of a δ is told, too: what there was, less the counter that is compared."""
        self.commands.append("Budget_")
        told = step(self.c, AskBudget()).label
        assert isinstance(told, Told)
        assert isinstance(told.fact, Mapping)
        accounts, left = self.c.accounts, dict(told.fact)
        for root, delta in zip(self.sources, self.deltas, strict=False):
            assert isinstance(root, Root)
            if delta is not None:
                assert left.pop(root.name + books.FOR_KEYS) == delta - books.paid_for_keys(accounts, root)
        self.note(f"budget {','.join(map(str, left.values()))}")

    def note(self, verdict: str) -> None:
        accounts = self.c.accounts
        number = range(len(accounts.partitions))
        shown = [f"C={listed(accounts.counters, self.sources)} M={listed(accounts.maxima, number)}"]
        known = accounts.books or books.NONE
        for of in (known.losses, known.deltas):
            for root in self.sources[: self.roots]:
                assert isinstance(root, Root)
                book = of.get(root)
                if book is None:
                    shown.append("")
                    continue
                assert {s for s in book.counters if isinstance(s, Root)} <= {root}
                own = {s: c for s, c in book.counters.items() if s == root or isinstance(s, Part)}
                shown.append(f"C={listed(own, self.sources)} M={listed(book.maxima, number)}")
        self.expected.append(" | ".join([verdict, *shown]))

    def term(self) -> str:
        budgets = "; ".join(f"{b.numerator}#{b.denominator}" for b in self.amounts)
        notions = "; ".join(f"Closeness.{'Concentrated' if c else 'Pure'}" for c in self.concentrated)
        deltas = "; ".join(
            "None" if d is None else f"Some ({d.numerator}#{d.denominator})" for d in self.deltas
        )
        commands = "; ".join(f"ComputeBooks.{command}" for command in self.commands)
        return (
            f"ComputeBooks.books_session {GRAIN} {self.roots} [{budgets}] [{notions}] [{deltas}] [{commands}]"
        )


def test_the_books_are_the_same_on_random_programs(coq: Coq) -> None:
    programs = [Mixed(Random(seed)) for seed in range(100)]
    verdicts = [verdict for script in programs for verdict in script.expected]
    for word in ("tau", "measured", "bottom", "refused", "price", "scale", "budget"):
        assert any(v.startswith(word) for v in verdicts), f"no program gave {word}"
    assert any(any(s.concentrated) and not all(s.concentrated) and s.roots > 2 for s in programs)
    assert {v for s in programs for v in s.verdicts_with_delta} == {"measured", "bottom", "refused"}
    for script, answer in zip(programs, coq([script.term() for script in programs]), strict=True):
        assert answer.split("; ") == script.expected


exact = books.per_unit


def without_scale(at: Amount, scale: int) -> Fraction:
    return exact(at, 1)


def scale_squared(at: Amount, scale: int) -> Fraction:
    return exact(at, scale) * (scale if isinstance(at, Rho) else 1)


def linear(at: Amount, scale: int) -> Fraction:
    return exact(at, scale) if isinstance(at, Rho) else Fraction(at)


def rounded_down(at: Amount, scale: int) -> Fraction:
    return exact(at, scale) - (0 if isinstance(at, Rho) else Fraction(1, GRAIN))


@pytest.mark.parametrize("wrong", [without_scale, scale_squared, linear, rounded_down])
def test_wrong_rates_are_noticed(
    coq: Coq, wrong: Callable[[Amount, int], Fraction], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(books, "per_unit", wrong)
    assert any_differs(coq)


def test_a_book_of_the_wrong_root_s_scale_is_noticed(coq: Coq, monkeypatch: pytest.MonkeyPatch) -> None:
    right = books.scales

    def largest(*arguments: object) -> dict[Root, int]:
        found = right(*arguments)  # type: ignore[arg-type]
        return dict.fromkeys(found, max(found.values(), default=0))

    monkeypatch.setattr(books, "scales", largest)
    assert any_differs(coq, range(40, 110))


charged = books.charge


def uncharged(accounts: Any, sensitivity: Any, at: Amount, delta: Fraction = Fraction(0)) -> Any:
    return charged(accounts, sensitivity, at)


def halved(accounts: Any, sensitivity: Any, at: Amount, delta: Fraction = Fraction(0)) -> Any:
    return charged(accounts, sensitivity, at, delta / 2)


@pytest.mark.parametrize("wrong", [uncharged, halved])
def test_a_delta_that_is_not_charged_is_noticed(
    coq: Coq, wrong: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(books, "charge", wrong)
    assert any_differs(coq)


def test_a_delta_that_no_budget_holds_is_noticed(coq: Coq, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(books, "keys_fit", lambda *_: True)
    assert any_differs(coq)


def any_differs(coq: Coq, seeds: range = range(40)) -> bool:
    """Whether some program's numbers are not the proof's, or the kernel's own certificate fails."""
    try:
        programs = [Mixed(Random(seed)) for seed in seeds]
    except KernelViolation:
        return True
    found = coq([script.term() for script in programs])
    return any(a.split("; ") != s.expected for s, a in zip(programs, found, strict=True))
