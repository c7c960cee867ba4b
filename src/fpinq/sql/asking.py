"""Asking what a statement says: ε is shared, what can come from one measurement does, rows are made of it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from fractions import Fraction
from functools import partial
from typing import Any

from fpinq.client.amounts import plain_amount
from fpinq.client.answers import Answer, Answers, Charged
from fpinq.client.asking import refuse_unless_it_fits
from fpinq.client.named import Split
from fpinq.client.queries import DistinctCount
from fpinq.client.several import several
from fpinq.client.spelling import spell
from fpinq.model.expressions import Column
from fpinq.model.frozen import dataclass
from fpinq.model.notions import Amount, Rho, asked_at, share_of
from fpinq.model.operators import evaluate
from fpinq.model.queries import MAX_SEVERAL
from fpinq.sql.levels import consistent, listed
from fpinq.sql.linear import Combined, slopes_of
from fpinq.sql.relations import cells_of, placed
from fpinq.sql.results import Line, Result, Unknown
from fpinq.sql.statements import Output, Plan, Sorting

ZERO = Fraction(0)

# The answers of one level by key and by aggregate.
Found = dict[tuple[Any, ...], dict[str, Answer]]


@dataclass(frozen=True)
class Share:
    """Aggregates that are asked together, and their part of ε."""

    names: tuple[str, ...]
    epsilon: Amount


def shares(plan: Plan, epsilon: Amount) -> list[Share]:
    """How ε is shared: between levels equally, between aggregates by weight; most are asked as one query.

    At ρ each is asked by itself: shares of ρ add up as they are.
    """
    at_once = () if isinstance(epsilon, Rho) else plan.aggregates.items()
    together = [name for name, asked in at_once if not isinstance(asked.query, DistinctCount)]
    groups = [tuple(together[i : i + MAX_SEVERAL]) for i in range(0, len(together), MAX_SEVERAL)]
    groups += [(name,) for name in plan.aggregates if name not in together]
    total = sum(plan.weights.values(), Fraction(0)) * len(plan.levels)
    weights = [sum((plan.weights[name] for name in names), Fraction(0)) for names in groups]
    return [Share(names, share_of(epsilon, w / total)) for names, w in zip(groups, weights, strict=True)]


def exactly(epsilon: object) -> Amount:
    """An exact ε or ρ."""
    return asked_at(plain_amount(epsilon))


def _shared(plan: Plan, given: object) -> tuple[Amount, list[Share]]:
    """An exact ε and its shares; missing metadata and a budget too small are found here."""
    if plan.missing:
        raise plan.missing[0]
    epsilon = exactly(given)
    split_in = shares(plan, epsilon)
    if len(plan.levels) * len(split_in) > 1:  # all of it, or nothing: one query sees to that itself
        refuse_unless_it_fits(plan.table.facts, epsilon)
    return epsilon, split_in


def each_query(plan: Plan, given: object) -> Iterator[Callable[[], object]]:
    """The queries of a statement one by one, to be tried where nothing is charged: each may be refused."""
    _, split_in = _shared(plan, given)
    source = _with_listed_keys(plan)
    for level in plan.levels:
        found: Found = {key: {} for key in _keys(plan, level)}
        for share in split_in:
            yield partial(_ask, plan, source, level, share, found)


def number_of_queries(plan: Plan, given: object) -> int:
    """How many queries a statement is; of different values, those of each key are one."""
    split_in = shares(plan, exactly(given))
    one_by_one = sum(
        isinstance(plan.aggregates[name].query, DistinctCount) for share in split_in for name in share.names
    )
    at_once = len(split_in) - one_by_one
    return sum(at_once + one_by_one * len(_keys(plan, level)) for level in plan.levels)


def ask(plan: Plan, given: object) -> Line | Result:
    """The rows of a statement. Missing metadata and a budget too small are found before any charge."""
    epsilon, split_in = _shared(plan, given)
    source = _with_listed_keys(plan)
    split: list[tuple[tuple[str, ...], Fraction | Rho]] = []
    charges: list[Charged] = []
    levels: list[Found] = []
    for level in plan.levels:
        found: Found = {key: {} for key in _keys(plan, level)}
        for share in split_in:
            charges.append(_ask(plan, source, level, share, found))
            split.append((tuple(_shown(plan, name) for name in share.names), share.epsilon))
        levels.append(found)
    if len(levels) > 1:
        additive = [name for name, asked in plan.aggregates.items() if asked.additive]
        consistent(plan.levels, levels, additive)
    charged = _together(charges)
    rows = [
        _row(plan, level, key, answers, epsilon, charged, Split(epsilon, tuple(split)))
        for level, found in zip(plan.levels, levels, strict=True)
        for key, answers in found.items()
    ]
    return _result(plan, rows, epsilon, charged)


def _shown(plan: Plan, aggregate: str) -> str:
    """What an aggregate is called in the result: its column, or its place."""
    return next((each.name for each in plan.outputs if each.aggregate == aggregate), aggregate)


def _with_listed_keys(plan: Plan) -> Any:
    """The table; of several levels, the records whose keys are listed, so that levels add up."""
    if len(plan.levels) == 1:
        return plan.table
    return listed(plan.table, plan.by, plan.keys)


def _keys(plan: Plan, level: Sequence[int]) -> list[tuple[Any, ...]]:
    """The keys of a level, each once."""
    if not plan.by:
        return [()]
    return list(dict.fromkeys(tuple(key[i] for i in level) for key in plan.keys))


def _ask(plan: Plan, table: Any, level: Sequence[int], share: Share, found: Found) -> Charged:
    """Ask what a share of ε is for, and put the answers to the others of their key."""
    queries = {name: plan.aggregates[name].query for name in share.names}
    weights = {name: plan.weights[name] for name in share.names}
    query = next(iter(queries.values())) if len(queries) == 1 else several(queries, weights=weights)
    with placed(plan.parsed.text, plan.parsed.tree):
        if not level:
            answered = table.query(share.epsilon, query)
            _put(plan, share.names, answered, found[()])
            charged: Charged = answered.charged
            return charged
        names = [list(plan.by)[i] for i in level]
        trees = [plan.by[name] for name in names]
        by = dict(zip(names, trees, strict=True))
        keys = [key if len(names) > 1 else key[0] for key in found]
        answers: Answers = table.query(share.epsilon, query, by=lambda row: cells_of(row, by), keys=keys)
    for key, answered in zip(found, answers.values(), strict=True):
        _put(plan, share.names, answered, found[key])
    return answers.charged


def _put(plan: Plan, names: Sequence[str], answered: Any, into: dict[str, Answer]) -> None:
    for name in names:
        one = answered[name] if len(names) > 1 else answered
        part = plan.aggregates[name].part
        into[name] = one if part is None else one[part]


def _together(charges: Sequence[Charged]) -> Charged:
    """What was charged in all."""
    of_each = [each for each in charges if isinstance(each, Mapping)]
    if of_each:
        return {root: sum((each[root] for each in of_each), ZERO) for root in of_each[0]}
    return sum((each for each in charges if isinstance(each, Fraction)), ZERO)


# ── rows ─────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Row:
    """A row of the result: its key, the values that it is made of, and its line."""

    key: tuple[Any, ...]
    values: Mapping[str, Any]
    line: Line


def _row(
    plan: Plan,
    level: Sequence[int],
    key: tuple[Any, ...],
    answers: Mapping[str, Answer],
    epsilon: Amount,
    charged: Charged,
    split: Split,
) -> Row:
    whole = [None] * len(plan.by)
    for place, value in zip(level, key, strict=True):
        whole[place] = value
    values: dict[str, Any] = dict(zip(plan.by, whole, strict=True))
    values |= {f"grouping {name}": int(i not in level) for i, name in enumerate(plan.by)}
    values |= {name: answer.value for name, answer in answers.items()}
    cells = {each.name: _cell(each, values, answers, epsilon, charged) for each in plan.outputs}
    return Row(tuple(whole), values, Line(cells, epsilon, charged, split))


def _cell(
    output: Output,
    values: Mapping[str, Any],
    answers: Mapping[str, Answer],
    epsilon: Amount,
    charged: Charged,
) -> Any:
    """A column of a row: an answer, what is computed of answers, or what is made of keys."""
    if output.aggregate is not None:
        return copy(answers[output.aggregate]).called(output.name)
    value = evaluate(output.tree, values)
    if output.of_keys:
        return value
    slopes = slopes_of(output.tree, values, answers)
    error = Combined(tuple(answers[name] for name in slopes), tuple(slopes.values())) if slopes else Unknown()
    return Answer(value, epsilon, charged, error).called(output.name)


def _result(plan: Plan, rows: list[Row], epsilon: Amount, charged: Charged) -> Line | Result:
    if not plan.by and plan.having is None and plan.limit is None and not plan.offset:
        return rows[0].line
    if plan.having is not None:
        rows = [row for row in rows if evaluate(plan.having, row.values) is True]
    if plan.distinct:
        rows = list({tuple(map(_plain, row.line.cells.values())): row for row in reversed(rows)}.values())[
            ::-1
        ]
    for sorting in reversed(plan.sortings):
        rows = _sorted(rows, sorting)
    rows = rows[plan.offset :][: plan.limit]
    single = len(plan.by) == 1
    lines = {row.key[0] if single else row.key: row.line for row in rows}
    return Result(lines, epsilon, charged, _key_columns(plan))


def _plain(cell: Any) -> Any:
    return cell.value if isinstance(cell, Answer) else cell


def _key_columns(plan: Plan) -> tuple[str, ...]:
    """What the keys are called: as in the SELECT list, or as they are spelled."""
    shown = {each.tree: each.name for each in reversed(plan.outputs) if each.of_keys}
    names = tuple(shown.get(Column(name), spell(tree)) for name, tree in plan.by.items())
    return names or ("row",)


def _sorted(rows: list[Row], sorting: Sorting) -> list[Row]:
    keyed = [(evaluate(sorting.tree, row.values), row) for row in rows]
    present = [pair for pair in keyed if pair[0] is not None]
    nulls = [row for value, row in keyed if value is None]
    ordered = [row for _, row in sorted(present, key=lambda pair: pair[0], reverse=sorting.descending)]
    return nulls + ordered if sorting.nulls_first else ordered + nulls
