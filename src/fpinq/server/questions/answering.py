"""A question to its answer, or to what it would cost: of public facts, and of what is released."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from hashlib import sha256
from math import exp, inf, isfinite
from typing import Any

from fpinq.client import asking
from fpinq.client.answers import Answer, Answers, Charged
from fpinq.client.asking import Overtaken
from fpinq.client.catalog import Catalog
from fpinq.client.derivation import Derivation, Node
from fpinq.client.discovery import Discover, FoundAnswers
from fpinq.client.facts import Facts
from fpinq.client.paper import Quoted
from fpinq.client.planning import ExpectedError
from fpinq.client.spelling import show_delta
from fpinq.client.thresholds import ExpectedKeys, Shown, expect_found
from fpinq.ledger import RootState
from fpinq.model.actions import AskPrice, AskScale
from fpinq.model.books import FOR_KEYS
from fpinq.model.errors import (
    BadEpsilon,
    BadQuery,
    BudgetExceeded,
    KernelViolation,
    NoDelta,
    NotConcentrated,
    ProgramError,
)
from fpinq.model.notions import Amount, Rho, is_concentrated
from fpinq.runtime.refusals import TooLarge, failure_of, fields_of
from fpinq.server.house import House, budget_told
from fpinq.server.questions.question import About, Asked, Mistake, Question, amount_field, asked_of
from fpinq.server.questions.systems import OnLedger, OnPaper
from fpinq.server.told import (
    Allowance,
    AnswerTold,
    DeltaAllowance,
    DiscoveryTold,
    Estimate,
    Expected,
    Known,
    Mistaken,
    QuoteTold,
    Refusal,
    Step,
    Truncated,
)

ZERO = Fraction(0)
CONFIDENCE = Fraction(95, 100)
# Beyond it, languages that have only doubles round an integer.
EXACT = 2**53
# The error of some answers depends on how many rows there are: it is told for these.
SIZES = (1_000, 10_000, 100_000)


class Refused(BudgetExceeded):
    """⊥ with its numbers: what it costs, what is left, and of what: the budget, or the analyst's cap."""

    def __init__(self, accounts: "list[Account]", at: Amount) -> None:
        short = [each for each in accounts if each.price > each.left]
        of_delta = [each for each in accounts if each.delta > each.delta_left]
        if of_delta and not short:
            self._of_delta(of_delta[0])
            return
        worst = max(short or accounts, key=lambda each: each.price - each.left)
        self.dataset, self.refused_by = worst.dataset, worst.refused_by
        whose = "" if worst.refused_by == "budget" else ", your own share of it,"
        letter = "ρ" if isinstance(at, Rho) else "ε"
        super().__init__(
            f"it costs {shown(worst.price)} of {worst.dataset!r}, which{whose} has {shown(worst.left)} left. "
            f"Nothing was charged. A smaller {letter} costs less and is less exact",
            price=worst.price,
            remaining=worst.left,
        )

    def _of_delta(self, worst: "Account") -> None:
        self.dataset, self.refused_by = worst.dataset, "delta"
        super().__init__(
            f"it costs δ = {show_delta(worst.delta)} of {worst.dataset!r}, of whose δ for keys you have "
            f"{show_delta(worst.delta_left)} left. Nothing was charged. A smaller δ costs less",
            price=worst.delta,
            remaining=worst.delta_left,
        )


@dataclass(frozen=True)
class Account:
    """What a question costs of a data set, and what its analyst may still spend of it."""

    dataset: str
    price: Fraction
    left: Fraction
    budget_remaining: Fraction
    cap: Fraction | None
    cap_remaining: Fraction | None
    concentrated: bool = False  # amounts are ρ, not ε
    delta: Fraction = Fraction(0)  # what it costs of the δ for keys, and what may still be spent of that
    delta_left: Fraction = Fraction(0)

    @property
    def fits(self) -> bool:
        """Whether it costs no more than is left."""
        return self.price <= self.left and self.delta <= self.delta_left

    @property
    def refused_by(self) -> str:
        """What is short, or would be first."""
        of_cap = self.cap_remaining is not None and self.cap_remaining < self.budget_remaining
        return "cap" if of_cap else "budget"


def left_of(
    state: RootState, analyst: str, spent: Mapping[str, Fraction]
) -> tuple[Fraction | None, Fraction | None]:
    """An analyst's cap, and what is left of it."""
    cap = state.registered.cap_of(analyst)
    return cap, None if cap is None else max(cap - spent.get(state.registered.name, Fraction(0)), Fraction(0))


def left_of_delta(state: RootState, analyst: str, spent: Mapping[str, Fraction]) -> DeltaAllowance | None:
    """What an analyst may still spend of a data set's δ for keys, if it has one."""
    root = state.registered
    if not root.keys_delta:
        return None
    cap, left = root.keys_cap_of(analyst), state.remaining_delta
    cap_left = None if cap is None else max(cap - spent.get(root.name + FOR_KEYS, Fraction(0)), Fraction(0))
    return {
        "keys_delta": str(root.keys_delta),
        "remaining": str(left),
        "cap": None if cap is None else str(cap),
        "cap_remaining": None if cap_left is None else str(cap_left),
        "left": str(left if cap_left is None else min(left, cap_left)),
    }


def allowances(house: House, analyst: str) -> dict[str, Allowance]:
    """What an analyst may still spend of each data set."""
    spent = house.ledger.spent_by(analyst)
    found: dict[str, Allowance] = {}
    for name, state in house.ledger.roots().items():
        if name in house.data_sets:
            cap, cap_left = left_of(state, analyst, spent)
            found[name] = {
                **budget_told(state),
                "cap": None if cap is None else str(cap),
                "cap_remaining": None if cap_left is None else str(cap_left),
                "left": str(state.remaining if cap_left is None else min(state.remaining, cap_left)),
                "delta": left_of_delta(state, analyst, spent),
            }
    return found


# ── what it would cost ───────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Quote:
    """What is known of a question before it is asked."""

    asked: Asked
    accounts: list[Account]
    factor: int
    derivation: list[Step]
    truncation: list[Truncated]
    parts: int | None
    words: str
    refused: bool
    found: ExpectedKeys | None = None

    def check(self) -> None:
        """Refused if it costs more than is left."""
        if self.refused or not all(each.fits for each in self.accounts):
            raise Refused(self.accounts, self.asked.at)


def quoted(house: House, analyst: str, question: Question) -> Quote:
    """What a question would cost, by the kernel's rules, on paper; raises its first mistake."""
    paper = OnPaper(house, analyst)
    with About("table"):
        table = Catalog(paper).table(question.table)
    asked = asked_of(question, table)
    about = "of" if question.of is not None else "by"
    try:
        with (
            About(about),
            About(amount_field(question), BadEpsilon),
            About("rho", NotConcentrated),
            About("discover", NoDelta),
            About("discover" if question.discover else about, TooLarge),
        ):
            asked.ask()
    except Quoted:
        pass
    except BudgetExceeded:  # both of two queries or none: found before the first is asked
        paper.refused = True
    else:
        raise KernelViolation("a question asked nothing")
    facts = asked.query.traced(asked.table.facts.subject).derive(asked.table.facts)
    paper.check_thawed(set(facts.roots))
    found = _found(asked)
    prices = (
        paper.told(AskPrice(_variable(facts), asked.at)) if found is None else _by_root(facts, found.price)
    )
    deltas = {} if found is None else _by_root(facts, found.price_delta)
    return Quote(
        asked,
        [_account(house, analyst, root, prices[root], deltas.get(root)) for root in facts.roots],
        paper.told(AskScale(_variable(facts))),
        list(_nodes(Derivation(facts).root)),
        _truncation(house, facts),
        asked.parts,
        _words(question, asked),
        paper.refused,
        found,
    )


def _found(asked: Asked) -> ExpectedKeys | None:
    """Which keys a question shows, and what all of it costs, where it finds them."""
    if not isinstance(asked.keys, Discover):
        return None
    return expect_found(asked.table.facts, asked.at, asked.query, asked.by, asked.keys, None)


def _by_root(facts: Facts, amounts: Charged) -> Mapping[str, Fraction]:
    """What each root pays; as fractions, for what is told must be exact, and an Amount prints for people."""
    each = amounts if isinstance(amounts, Mapping) else dict.fromkeys(facts.roots, amounts)
    return {root: Fraction(amount) for root, amount in each.items()}


def _variable(facts: Facts) -> str:
    found = facts.binding
    variable = getattr(found, "variable", None)
    if variable is None:
        raise BadQuery("this table is public: it needs no question")
    return str(variable)


def _account(house: House, analyst: str, root: str, price: Fraction, delta: Fraction | None) -> Account:
    state, spent = house.ledger.roots()[root], house.ledger.spent_by(analyst)
    cap, cap_left = left_of(state, analyst, spent)
    left = state.remaining if cap_left is None else min(state.remaining, cap_left)
    of_delta = left_of_delta(state, analyst, spent)
    return Account(
        root,
        price,
        left,
        state.remaining,
        cap,
        cap_left,
        is_concentrated(state.registered.budget),
        delta or Fraction(0),
        Fraction(0) if of_delta is None else Fraction(of_delta["left"]),
    )


def _nodes(root: Node) -> Iterator[Step]:
    """The tables of a derivation, those that others are made of first."""
    numbers: dict[int, int] = {}

    def walk(node: Node) -> Iterator[Step]:
        if id(node) in numbers:
            return
        for parent in node.parents:
            yield from walk(parent)
        numbers[id(node)] = len(numbers)
        yield {
            "label": node.label,
            "factor": integer(node.factor),
            "parents": [numbers[id(parent)] for parent in node.parents],
            "stability": [integer(c) for c in node.made.stability],
            "rows_per_unit": node.made.rows_per_unit,
        }

    yield from walk(root)


def _truncation(house: House, facts: Facts) -> list[Truncated]:
    """Where rows of a person beyond a number are left out: no interval covers that."""
    found: list[Truncated] = []
    seen = [facts]
    while seen:
        one = seen.pop()
        seen += one.made.parents
        if not one.made.parents and one.made.rows_per_unit is not None:
            (root,) = one.roots
            table = one.made.label.partition(", at most ")[0]
            found.append(
                {"table": table, "unit": house.data_sets[root].unit, "rows_per_unit": one.made.rows_per_unit}
            )
    return found


def _words(question: Question, asked: Asked) -> str:
    """What is asked, in a line: average of income in people by city, where age > 17."""
    first = "" if question.first is None else f" {question.first}"
    what = question.kind.replace("_", " ") + first
    of = "" if question.of is None else f" of {question.of}"
    if isinstance(question.of, tuple):
        y, *x = question.of
        of = f" of {y} {'on' if question.kind == 'regression' else 'and'} {', '.join(x)}"
    by = f" by {', '.join(asked.by)}" if asked.by is not None else ""
    where = f", where {question.where}" if question.where is not None else ""
    return f"{what}{of} in {question.table}{by}{where}"


def quote_reply(house: House, analyst: str, question: Question) -> QuoteTold:
    """What a quote tells."""
    quote = quoted(house, analyst, question)
    return {
        "mistake": None,
        **_shared(quote),
        "refused": None if not _is_refused(quote) else refusal(Refused(quote.accounts, quote.asked.at)),
        "expected_error": _expected(quote.asked, question.size, quote.found),
        "expected_errors": [] if question.size else _by_size(quote.asked, quote.found),
    }


def _is_refused(quote: Quote) -> bool:
    return quote.refused or not all(each.fits for each in quote.accounts)


def _shared(quote: Quote) -> Known:
    """What is told of a question before and after."""
    largest = max((each.price for each in quote.accounts), default=Fraction(0))
    pure = not any(each.concentrated or each.delta for each in quote.accounts)
    at = quote.asked.at
    return {
        "words": quote.words,
        "epsilon": None if isinstance(at, Rho) else str(at),
        "rho": str(at.amount) if isinstance(at, Rho) else None,
        "prices": [
            {
                "dataset": each.dataset,
                "notion": "rho" if each.concentrated else "epsilon",
                "price": str(each.price),
                "left": str(each.left),
                "left_after": str(max(each.left - each.price, Fraction(0))),
                "budget_remaining": str(each.budget_remaining),
                "cap": None if each.cap is None else str(each.cap),
                "cap_remaining": None if each.cap_remaining is None else str(each.cap_remaining),
                "delta": None
                if not each.delta
                else {
                    "price": str(each.delta),
                    "left": str(each.delta_left),
                    "left_after": str(max(each.delta_left - each.delta, Fraction(0))),
                },
            }
            for each in quote.accounts
        ],
        "likelihood_ratio": number(likelihood_ratio(largest)) if pure else None,
        "scaling_factor": integer(quote.factor),
        "derivation": quote.derivation,
        "truncation": quote.truncation,
        "parts": quote.parts,
        "discovery": None if quote.found is None else _discovery(quote.found),
    }


def _discovery(found: ExpectedKeys) -> DiscoveryTold:
    at = found.epsilon
    return {
        "epsilon": None if isinstance(at, Rho) else exactly(at),
        "rho": exactly(at.amount) if isinstance(at, Rho) else None,
        "delta": exactly(found.delta),
        "threshold": integer(found.threshold),
        "shown_from": integer(found.sure(CONFIDENCE)),
        "expected_false": exactly(found.expected_false),
        "at_most": found.at_most,
        "half_width": number(found.half_width(CONFIDENCE)),
        "standard_error": number(found.standard_error),
        "confidence": float(CONFIDENCE),
        "words": Shown(found.query, at).__str__(),
    }


def likelihood_ratio(price: Fraction) -> float:
    """By which factor an answer can be more likely with a record than without: e^price, rounded up."""
    try:
        return exp(float(price)) * (1 + 1e-12)
    except OverflowError:
        return inf


def _expected(asked: Asked, size: int | None, keys: ExpectedKeys | None) -> Expected:
    if keys is not None and keys.then is None:  # counts are what finds them
        return {
            "size": size,
            "half_width": number(keys.half_width(CONFIDENCE)),
            "standard_error": number(keys.standard_error),
            "approximate": True,
            "unit": "",
            "note": "for each key that is shown",
            "confidence": float(CONFIDENCE),
        }
    found = asking.expect(asked.table.facts, asked.at, asked.query, size)
    assert isinstance(found, ExpectedError)
    return {
        "size": size,
        "half_width": number(found.half_width(CONFIDENCE)),
        "standard_error": number(found.standard_error),
        "approximate": found.approximate,
        "unit": found.expected.unit,
        "note": found.expected.note,
        "confidence": float(CONFIDENCE),
    }


def _by_size(asked: Asked, keys: ExpectedKeys | None) -> list[Expected]:
    """The error for numbers of rows, where it depends on them."""
    if _expected(asked, None, keys)["half_width"] is not None:
        return []
    return [found for size in SIZES if (found := _expected(asked, size, keys))["half_width"] is not None]


def mistaken(error: ProgramError) -> Mistaken:
    """A mistake in a question, as a quote tells it."""
    field, cause = (error.field, error.error) if isinstance(error, Mistake) else (None, error)
    return {"field": field, **refusal(cause)}


def refusal(error: ProgramError | BudgetExceeded) -> Refusal:
    """What is told of an error."""
    return {"code": failure_of(error).code, "message": str(error), "fields": fields_of(error)}


# ── asking ───────────────────────────────────────────────────────────────────────────


def session_of(house: House, analyst: str, request: str, kind: str = "question") -> str:
    """The session of a question or a statement: its own, and the same if it is sent again."""
    named = f"{kind}/{len(analyst)}/{analyst}/{request}"
    return house.sessions.named(sha256(named.encode()).hexdigest(), analyst)


def answered(house: House, analyst: str, question: Question, quote: Quote, system: OnLedger) -> AnswerTold:
    """Ask a question: the same actions, charges and answers as of any client."""
    asked = asked_of(question, Catalog(system).table(question.table))
    before = allowances(house, analyst)
    try:
        found = asked.ask()
    except Overtaken:
        raise
    except BudgetExceeded:  # meanwhile others spent
        raise Refused(quoted(house, analyst, question).accounts, asked.at) from None
    finding = found.found if isinstance(found, Answers) else None
    each = [one for one in (found, finding) if one is not None]
    charged = added([_charged(one.charged, quote) for one in each])
    keys = [one for one in each if isinstance(one, FoundAnswers)]
    charged_delta = added([_charged(one.charged_delta, quote) for one in keys if one.delta])
    rows = _leaves(found, quote.asked)
    return {
        **_shared(quote),
        "charged": charged,
        "remaining": remaining(before, charged, system),
        "charged_delta": charged_delta,
        "remaining_delta": remaining_delta(before, charged_delta, system),
        "confidence": float(CONFIDENCE),
        "name": rows[0][1] if rows else "value",
        "key_columns": list(rows[0][0] if rows else asked.by or ()),
        "answers": [_estimate(keys, answer) for keys, _, answer in rows],
    }


def _charged(charged: Charged, quote: Quote) -> dict[str, Fraction]:
    if isinstance(charged, Mapping):
        return dict(charged)
    return {each.dataset: charged for each in quote.accounts}


def added(charges: Sequence[Mapping[str, Fraction]]) -> dict[str, str]:
    """What was charged in all, to each data set."""
    names = dict.fromkeys(name for each in charges for name in each)
    return {name: exactly(sum((each.get(name, ZERO) for each in charges), ZERO)) for name in names}


def remaining(
    before: Mapping[str, Allowance], charged: Mapping[str, str], system: OnLedger
) -> dict[str, str]:
    """What is left for an analyst: what was before the first query, less what was charged since.

    Looked up after the last one it would tell when the measurement ended, to who
    knows when others were charged. What is sent again was charged before.
    """
    now = 0 if system.resumed else 1
    left = {name: Fraction(before[name]["left"]) for name in charged if name in before}
    return {name: str(max(each - now * Fraction(charged[name]), Fraction(0))) for name, each in left.items()}


def remaining_delta(
    before: Mapping[str, Allowance], charged: Mapping[str, str], system: OnLedger
) -> dict[str, str]:
    """The same of the δ for keys."""
    now = 0 if system.resumed else 1
    had = {name: before[name]["delta"] for name in charged if name in before}
    left = {name: Fraction(each["left"]) for name, each in had.items() if each is not None}
    return {name: str(max(each - now * Fraction(charged[name]), Fraction(0))) for name, each in left.items()}


def exactly(amount: Fraction) -> str:
    """An amount of ε, exactly: "1/20"."""
    return str(Fraction(amount.numerator, amount.denominator))


def _leaves(found: Answer | Answers, asked: Asked) -> list[tuple[Mapping[str, Any], str, Answer]]:
    """The answers, one by one: their keys, what they are called, and each."""
    if isinstance(found, Answer):
        found = found.called(asked.query.traced(asked.table.facts.subject).column())
    return [(leaf.keys, name, answer) for leaf in found.leaves() for name, answer in leaf.answers.items()]


def _estimate(keys: Mapping[str, Any], answer: Answer) -> Estimate:
    interval = answer.interval(CONFIDENCE)
    low, high = interval if interval is not None else (None, None)
    return {
        "key": [value(key) for key in keys.values()],
        "value": value(answer.value),
        "low": number(low),
        "high": number(high),
        "standard_error": number(answer.standard_error),
        "approximate": answer.approximate,
        "ranks": answer.ranks(CONFIDENCE),
        "note": answer.note,
    }


# ── values ───────────────────────────────────────────────────────────────────────────


def value(found: Any) -> Any:
    """A value as every language reads it: a day is a text, and so is an integer that doubles would round."""
    if found is None or isinstance(found, bool | str):
        return found
    if isinstance(found, date):
        return found.isoformat()
    return number(found)


def number(found: Any) -> int | float | str | None:
    """A number as every language reads it; what no number of JSON is, is a text."""
    if found is None:
        return None
    if isinstance(found, int):
        return integer(found)
    if isinstance(found, Fraction) and found.denominator == 1:
        return integer(int(found))
    close = float(found)
    return close if isfinite(close) else str(close)


def integer(found: int) -> int | str:
    """An integer; as a text where doubles would round it."""
    return found if abs(found) <= EXACT else str(found)


def shown(amount: Fraction) -> str:
    """An amount for people."""
    return str(amount) if amount.denominator > 1000 else f"{float(amount):.12g}"
