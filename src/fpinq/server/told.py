"""What replies are made of, beside the kernel's observations. Their JSON Schemas are made of these classes.

Amounts of ε are exact and written as text: "1/20". An integer above 2^53 is text, too, since most
languages read a JSON number as a double; so is what no number of JSON is ("inf").
"""

from typing import Any, Literal, TypedDict

# What amounts are of: ε, or ρ where the budget is concentrated.
Notion = Literal["epsilon", "rho"]
Number = int | float | str
Scalar = bool | int | float | str | None


class BudgetTold(TypedDict):
    """A budget, and what is left of it: amounts of its notion."""

    notion: Notion
    budget: str
    remaining: str


class Allowance(BudgetTold):
    """What is left of a data set, for everybody and for whoever asks."""

    cap: str | None
    cap_remaining: str | None
    left: str
    delta: "DeltaAllowance | None"


class DeltaAllowance(TypedDict):
    """What is left of the δ for keys that nobody listed, for everybody and for whoever asks."""

    keys_delta: str
    remaining: str
    cap: str | None
    cap_remaining: str | None
    left: str


class Me(TypedDict):
    """Whom a token stands for."""

    name: str
    role: str
    expires_at: str | None
    datasets: dict[str, Allowance]


class Price(TypedDict):
    """What a question costs of a data set."""

    dataset: str
    notion: Notion
    price: str
    left: str
    left_after: str
    budget_remaining: str
    cap: str | None
    cap_remaining: str | None
    delta: "DeltaPrice | None"


class DeltaPrice(TypedDict):
    """What a question that finds keys costs of a data set's δ for keys."""

    price: str
    left: str
    left_after: str


class Step(TypedDict):
    """A table of a derivation: of which others it is made (by their numbers), and its scaling factor."""

    label: str
    factor: int | str
    parents: list[int]
    stability: list[int | str]
    rows_per_unit: int | None


class Truncated(TypedDict):
    """Of each unit at most so many rows of a table are looked at. What that leaves out is in no interval."""

    table: str
    unit: str | None
    rows_per_unit: int


class Expected(TypedDict):
    """How far an answer will be off; of some, for an assumed number of rows."""

    size: int | None
    half_width: Number | None
    standard_error: Number | None
    approximate: bool
    unit: str
    note: str
    confidence: float


class Refusal(TypedDict):
    """Why something is refused."""

    code: str
    message: str
    fields: dict[str, Any]


class Mistaken(Refusal):
    """The first mistake in a question, and in which field it is."""

    field: str | None


class Wrong(TypedDict):
    """A quote of a question that cannot be asked."""

    mistake: Mistaken


class DiscoveryTold(TypedDict):
    """Which keys are shown, of those that nobody listed: whose noisy counts reach a threshold.

    A key that shown_from records have is shown with the confidence that is told. In words it is words.
    """

    epsilon: str | None
    rho: str | None
    delta: str
    threshold: int | str
    shown_from: int | str
    expected_false: str
    at_most: int
    half_width: Number | None
    standard_error: Number | None
    confidence: float
    words: str


class Known(TypedDict):
    """What is known of a question before and after."""

    words: str
    epsilon: str | None
    rho: str | None
    prices: list[Price]
    likelihood_ratio: Number | None
    scaling_factor: int | str
    derivation: list[Step]
    truncation: list[Truncated]
    parts: int | None
    discovery: DiscoveryTold | None


class QuoteTold(Known):
    """What a question would cost, and how exact it would be."""

    mistake: None
    refused: Refusal | None
    expected_error: Expected
    expected_errors: list[Expected]


class Estimate(TypedDict):
    """An answer under its key, with the interval of its noise; a quantile is off by so many ranks."""

    key: list[Scalar]
    value: Scalar
    low: Number | None
    high: Number | None
    standard_error: Number | None
    approximate: bool
    ranks: int | None
    note: str


class AnswerTold(Known):
    """The answer of a question."""

    charged: dict[str, str]
    remaining: dict[str, str]
    charged_delta: dict[str, str]
    remaining_delta: dict[str, str]
    confidence: float
    name: str
    key_columns: list[str]
    answers: list[Estimate]


class Told(AnswerTold):
    """The answer of a question, under its request id."""

    request_id: str


class KeptQuestion(TypedDict):
    """A question that was asked; without an answer, it is under way or was cut short: send it again."""

    number: int
    request_id: str
    question: dict[str, Any]
    asked_at: str
    answer: AnswerTold | None


class KeptQuestions(TypedDict):
    """One's own questions, newest first; and whether there are earlier ones."""

    questions: list[KeptQuestion]
    more: bool


class HeadTold(TypedDict):
    """The last entry of the ledger: it stands for all before it."""

    seq: int
    hash: str


class TraceTold(TypedDict):
    """Entries of the trace, each as it is written, with its hash and in words."""

    entries: list[dict[str, Any]]
    looked_at: int
    head: HeadTold


class ByAnalyst(TypedDict):
    """What an analyst has spent of a data set, and of its δ for keys where it has one."""

    name: str
    spent: str
    cap: str | None
    spent_delta: str | None
    keys_cap: str | None


class Moment(TypedDict):
    """What was spent of a data set until then."""

    at: str
    spent: str


class SpentTold(TypedDict):
    """What was spent of a data set."""

    name: str
    budget: str
    cap: str | None
    keys_delta: str | None
    analysts: list[ByAnalyst]
    over_time: list[Moment]


class SpendingTold(TypedDict):
    """What was spent."""

    datasets: list[SpentTold]


class Balance(TypedDict):
    """What the ledger says of a data set."""

    budget: str
    spent: str


class Verified(TypedDict):
    """Every entry follows from those before, by the kernel's rules."""

    ok: bool
    entries: int
    sessions: int
    unanswered: int
    head: HeadTold
    datasets: dict[str, Balance]


class Corrupt(TypedDict):
    """The first entry that does not follow; nothing after it can be trusted."""

    ok: bool
    entry: int
    what: str


class TableTold(TypedDict):
    """What is public of a table."""

    name: str
    description: str
    descriptions: dict[str, str]
    schema: list[list[str]]
    rows_per_unit: int | None
    rows_at_most: int
    columns: dict[str, dict[str, Any]]


class DataSetTold(BudgetTold):
    """What is public of a data set. What was promised is for people to read, with its δ."""

    name: str
    unit: str | None
    block_of: str | None
    promised: str
    keys_delta: str | None
    remaining_delta: str | None
    frozen: bool
    description: str
    tables: list[TableTold]


class DataSetsTold(TypedDict):
    """The data sets."""

    datasets: list[DataSetTold]


class FrozenTold(TypedDict):
    """Whether a data set is frozen now."""

    name: str
    frozen: bool


class SessionTold(TypedDict):
    """The name of a new session."""

    session: str


class Described(TypedDict):
    """A table of a session: its columns, and how many of its rows one record of each source can change."""

    shape: dict[str, Any]
    sensitivity: list[list[Any]]
