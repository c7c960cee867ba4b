"""A question to its answer, or to what it would cost: of public facts, and of what is released."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from hashlib import sha256
from math import exp, inf, isfinite
from typing import Any

from fpinq.client import asking
from fpinq.client.answers import Answer, Answers
from fpinq.client.asking import Overtaken
from fpinq.client.catalog import Catalog
from fpinq.client.derivation import Derivation, Node
from fpinq.client.facts import Facts
from fpinq.client.planning import ExpectedError
from fpinq.ledger import RootState
from fpinq.model.actions import AskPrice, AskScale
from fpinq.model.errors import BadQuery, BudgetExceeded, KernelViolation, ProgramError
from fpinq.model.notions import is_concentrated
from fpinq.runtime.refusals import failure_of, fields_of
from fpinq.server.house import House
from fpinq.server.questions.question import About, Asked, Mistake, Question, asked_of
from fpinq.server.questions.systems import OnLedger, OnPaper, Quoted
from fpinq.server.told import (
    Allowance,
    AnswerTold,
    Estimate,
    Expected,
    Known,
    Mistaken,
    QuoteTold,
    Refusal,
    Step,
    Truncated,
)

CONFIDENCE = Fraction(95, 100)
# Beyond it, languages that have only doubles round an integer.
EXACT = 2**53
# The error of some answers depends on how many rows there are: it is told for these.
SIZES = (1_000, 10_000, 100_000)


class Refused(BudgetExceeded):
    """⊥ with its numbers: what it costs, what is left, and of what: the budget, or the analyst's cap."""

    def __init__(self, accounts: "list[Account]") -> None:
        short = [each for each in accounts if each.price > each.left]
        worst = max(short or accounts, key=lambda each: each.price - each.left)
        self.dataset, self.refused_by = worst.dataset, worst.refused_by
        whose = "" if worst.refused_by == "budget" else ", your own share of it,"
        super().__init__(
            f"it costs {shown(worst.price)} of {worst.dataset!r}, which{whose} has {shown(worst.left)} left. "
            "Nothing was charged. A smaller ε costs less and is less exact",
            price=worst.price,
            remaining=worst.left,
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


def allowances(house: House, analyst: str) -> dict[str, Allowance]:
    """What an analyst may still spend of each data set."""
    spent = house.ledger.spent_by(analyst)
    found: dict[str, Allowance] = {}
    for name, state in house.ledger.roots().items():
        if name in house.data_sets:
            cap, cap_left = left_of(state, analyst, spent)
            found[name] = {
                "notion": "rho" if is_concentrated(state.registered.budget) else "epsilon",
                "budget": str(state.registered.amount),
                "remaining": str(state.remaining),
                "cap": None if cap is None else str(cap),
                "cap_remaining": None if cap_left is None else str(cap_left),
                "left": str(state.remaining if cap_left is None else min(state.remaining, cap_left)),
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

    def check(self) -> None:
        """Refused if it costs more than is left."""
        if self.refused or any(each.price > each.left for each in self.accounts):
            raise Refused(self.accounts)


def quoted(house: House, analyst: str, question: Question) -> Quote:
    """What a question would cost, by the kernel's rules, on paper; raises its first mistake."""
    paper = OnPaper(house, analyst)
    with About("table"):
        table = Catalog(paper).table(question.table)
    asked = asked_of(question, table)
    try:
        with About("of" if question.of is not None else "by"):
            asked.ask()
    except Quoted:
        pass
    except BudgetExceeded:  # both of two queries or none: found before the first is asked
        paper.refused = True
    else:
        raise KernelViolation("a question asked nothing")
    facts = asked.query.traced(asked.table.facts.subject).derive(asked.table.facts)
    prices = paper.told(AskPrice(_variable(facts), asked.epsilon))
    paper.check_thawed(set(facts.roots))
    return Quote(
        asked,
        [_account(house, analyst, root, prices[root]) for root in facts.roots],
        paper.told(AskScale(_variable(facts))),
        list(_nodes(Derivation(facts).root)),
        _truncation(house, facts),
        asked.parts,
        _words(question, asked),
        paper.refused,
    )


def _variable(facts: Facts) -> str:
    found = facts.binding
    variable = getattr(found, "variable", None)
    if variable is None:
        raise BadQuery("this table is public: it needs no question")
    return str(variable)


def _account(house: House, analyst: str, root: str, price: Fraction) -> Account:
    state = house.ledger.roots()[root]
    cap, cap_left = left_of(state, analyst, house.ledger.spent_by(analyst))
    left = state.remaining if cap_left is None else min(state.remaining, cap_left)
    concentrated = is_concentrated(state.registered.budget)
    return Account(root, price, left, state.remaining, cap, cap_left, concentrated)


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
    what = question.kind.replace("_", " ")
    of = f" of {question.of}" if question.of is not None else ""
    by = f" by {', '.join(asked.by)}" if asked.by is not None else ""
    where = f", where {question.where}" if question.where is not None else ""
    return f"{what}{of} in {question.table}{by}{where}"


def quote_reply(house: House, analyst: str, question: Question) -> QuoteTold:
    """What a quote tells."""
    quote = quoted(house, analyst, question)
    return {
        "mistake": None,
        **_shared(quote),
        "refused": None if not _is_refused(quote) else refusal(Refused(quote.accounts)),
        "expected_error": _expected(quote.asked, question.size),
        "expected_errors": [] if question.size else _by_size(quote.asked),
    }


def _is_refused(quote: Quote) -> bool:
    return quote.refused or any(each.price > each.left for each in quote.accounts)


def _shared(quote: Quote) -> Known:
    """What is told of a question before and after."""
    largest = max((each.price for each in quote.accounts), default=Fraction(0))
    pure = not any(each.concentrated for each in quote.accounts)
    return {
        "words": quote.words,
        "epsilon": str(quote.asked.epsilon),
        "prices": [
            {
                "dataset": each.dataset,
                "price": str(each.price),
                "left": str(each.left),
                "left_after": str(max(each.left - each.price, Fraction(0))),
                "budget_remaining": str(each.budget_remaining),
                "cap": None if each.cap is None else str(each.cap),
                "cap_remaining": None if each.cap_remaining is None else str(each.cap_remaining),
            }
            for each in quote.accounts
        ],
        "likelihood_ratio": number(likelihood_ratio(largest)) if pure else None,
        "scaling_factor": integer(quote.factor),
        "derivation": quote.derivation,
        "truncation": quote.truncation,
        "parts": quote.parts,
    }


def likelihood_ratio(price: Fraction) -> float:
    """By which factor an answer can be more likely with a record than without: e^price, rounded up."""
    try:
        return exp(float(price)) * (1 + 1e-12)
    except OverflowError:
        return inf


def _expected(asked: Asked, size: int | None) -> Expected:
    found = asking.expect(asked.table.facts, asked.epsilon, asked.query, size)
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


def _by_size(asked: Asked) -> list[Expected]:
    """The error for numbers of rows, where it depends on them."""
    if _expected(asked, None)["half_width"] is not None:
        return []
    return [found for size in SIZES if (found := _expected(asked, size))["half_width"] is not None]


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
    try:
        found = asked.ask()
    except Overtaken:
        raise
    except BudgetExceeded:  # meanwhile others spent
        raise Refused(quoted(house, analyst, question).accounts) from None
    charged = _charged(found, quote)
    rows = _leaves(found, quote.asked)
    left = allowances(house, analyst)
    return {
        **_shared(quote),
        "charged": charged,
        "remaining": {name: left[name]["left"] for name in charged},
        "confidence": float(CONFIDENCE),
        "name": rows[0][1] if rows else "value",
        "key_columns": list(rows[0][0]) if rows else [],
        "answers": [_estimate(keys, answer) for keys, _, answer in rows],
    }


def _charged(found: Answer | Answers, quote: Quote) -> dict[str, str]:
    charged = found.charged
    if isinstance(charged, Mapping):
        return {root: exactly(amount) for root, amount in charged.items()}
    return {each.dataset: exactly(charged) for each in quote.accounts}


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
