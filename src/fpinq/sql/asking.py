"""Asking what a statement says: ε is shared, what can come from one measurement does, rows are made of it."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from fractions import Fraction
from typing import Any

from fpinq.client.amounts import plain_amount
from fpinq.client.answers import Answer, Answers, Charged
from fpinq.client.asking import refuse_unless_it_fits
from fpinq.client.discovery import FEW_PARTS, Discover, FoundAnswers, find
from fpinq.client.facts import Facts
from fpinq.client.named import Split
from fpinq.client.paper import Paper, Papers, Quoted, on_paper, spent
from fpinq.client.queries import DistinctCount
from fpinq.client.several import several
from fpinq.client.spelling import show_delta, show_down, show_up, spell
from fpinq.client.table import Table
from fpinq.model.errors import BudgetExceeded
from fpinq.model.expressions import Column
from fpinq.model.frozen import dataclass
from fpinq.model.notions import Amount, Rho, asked_at, share_of
from fpinq.model.operators import evaluate
from fpinq.model.queries import MAX_SEVERAL
from fpinq.sql.combining import Whole, as_type, put_together
from fpinq.sql.finding import instead_of_found
from fpinq.sql.levels import consistent, listed
from fpinq.sql.linear import Combined, slopes_of
from fpinq.sql.programs import Program
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


def shares(plan: Plan, epsilon: Amount, whole: Fraction) -> list[Share]:
    """How ε is shared: between levels equally, between aggregates by weight; most are asked as one query.

    Counts that find keys are asked by themselves, and first.
    At ρ each is asked by itself: shares of ρ add up as they are. The whole is the weight of all SELECTs.
    """
    at_once = () if isinstance(epsilon, Rho) else plan.aggregates.items()
    together = [name for name, asked in at_once if not isinstance(asked.query, DistinctCount)]
    first = [] if plan.found is None else [plan.found.counted]
    together = [name for name in together if name not in first]
    groups: list[tuple[str, ...]] = [(name,) for name in first]
    groups += [tuple(together[i : i + MAX_SEVERAL]) for i in range(0, len(together), MAX_SEVERAL)]
    groups += [(name,) for name in plan.aggregates if name not in together and name not in first]
    total = whole * len(plan.levels)
    weights = [sum((plan.weights[name] for name in names), ZERO) for names in groups]
    return [Share(names, share_of(epsilon, w / total)) for names, w in zip(groups, weights, strict=True)]


def exactly(epsilon: object) -> Amount:
    """An exact ε or ρ."""
    return asked_at(plain_amount(epsilon))


def number_of_queries(program: Program, epsilon: Amount) -> int:
    """How many queries a statement is; of different values, those of each key are one."""
    number = 0
    for plan in program.plans:
        split_in = shares(plan, epsilon, program.weight)
        names = [name for share in split_in for name in share.names]
        one_by_one = sum(isinstance(plan.aggregates[name].query, DistinctCount) for name in names)
        at_once = len(split_in) - one_by_one
        number += sum(at_once + one_by_one * _number_of_keys(plan, level) for level in plan.levels)
    return number


def _number_of_keys(plan: Plan, level: Sequence[int]) -> int:
    """How many keys a level has; of those that are to be found, at the most."""
    return len(_keys(plan, level)) if plan.found is None else plan.found.how.at_most or 0


# ── before anything is asked ─────────────────────────────────────────────────────────


def prices(program: Program, epsilon: Amount) -> dict[str, Fraction]:
    """What a statement would cost now of each root, by its name in the system."""
    papers, found = Papers(), dict.fromkeys(program.roots, ZERO)
    for plan in program.plans:
        if plan.weight:
            share = share_of(epsilon, plan.weight / program.weight)
            for root, price in spent(plan.table.facts, share, papers).items():
                found[root] += price
    return found


def refuse_unless_possible(program: Program, epsilon: Amount, *, even_one: bool = False) -> None:
    """Whatever is refused of a statement, or of any query of it, is refused here: nothing is charged yet.

    Every query is tried on paper, the sub-queries' values being something of their types. Of a system that
    is elsewhere only the budget is asked.
    """
    if program.missing:
        raise program.missing[0]
    if number_of_queries(program, epsilon) == 1:
        if not even_one:  # all of it, or nothing: one query sees to that itself
            return
    else:
        _refuse_unless_it_fits(program, epsilon)
        _refuse_unless_delta_fits(program, epsilon)
    papers = Papers()
    for plan in program.plans:
        paper = papers.of(plan.table.facts.system)
        if paper is not None and plan.weight:
            _try(plan, epsilon, program, paper)


def delta_prices(program: Program, epsilon: Amount) -> dict[str, Fraction]:
    """What a statement would cost now of the δ for keys of each root, by its name in the system."""
    found = dict.fromkeys(program.roots, ZERO)
    for plan in program.finders:
        assert plan.found is not None
        at, how = shares(plan, epsilon, program.weight)[0].epsilon, plan.found.at(len(program.finders))
        if how.delta is not None:
            for root, price in plan.table.facts.delta_prices(at, how.delta).items():
                found[root] += price
    return found


def _refuse_unless_delta_fits(program: Program, epsilon: Amount) -> None:
    """BudgetExceeded unless what is left of every δ for keys is enough; NoDelta if there is none."""
    prices = delta_prices(program, epsilon)
    for plan in program.finders:
        left = plan.table.facts.left_for_keys()
        for root, label in plan.table.facts.roots.items():
            if prices[root] > left.get(root, ZERO):
                raise BudgetExceeded(
                    f"the statement would cost δ = {show_delta(prices[root])} of {label!r}, of whose δ for "
                    f"keys {show_delta(left.get(root, ZERO))} is left. Nothing was charged.",
                    price=prices[root],
                    remaining=left.get(root, ZERO),
                )


def _try(plan: Plan, epsilon: Amount, program: Program, paper: Paper) -> None:
    """Every query of a SELECT on paper, where it is charged for those after it."""
    facts = on_paper(plan.table.facts, paper)
    source = _with_listed_keys(plan, Table(facts))
    for level in plan.levels:
        found: Found = {key: {} for key in _keys(plan, level)}
        rest = shares(plan, epsilon, program.weight)
        if plan.found is not None:
            how = plan.found.at(len(program.finders))
            try:
                _find(plan, source, rest[0], how)
            except Quoted:
                if paper.refused:
                    raise BudgetExceeded("it costs more than is left. Nothing was charged") from None
                paper.go_on()
            most = (how.at_most or 0) if isinstance(plan.table.facts.system, Paper) else FEW_PARTS
            found = {key: {} for key in instead_of_found(facts, plan.by, how, most)}
            rest = rest[1:]
        for share in rest:
            try:
                _ask(plan, source, level, share, found)
            except Quoted:
                if paper.refused or paper.spend(facts.binding.variable_in(paper), share.epsilon) is None:
                    raise BudgetExceeded("it costs more than is left. Nothing was charged") from None


def _refuse_unless_it_fits(program: Program, epsilon: Amount) -> None:
    """BudgetExceeded unless all of it fits the budgets, and those that were handed on."""
    plans = [plan for plan in program.plans if plan.weight]
    if len(plans) == 1:
        refuse_unless_it_fits(plans[0].table.facts, epsilon)
        return
    at = {id(plan): share_of(epsilon, plan.weight / program.weight) for plan in plans}
    total = prices(program, epsilon)
    for plan in plans:
        facts = plan.table.facts
        left = replace(facts, budgets=frozenset()).left()
        for root in facts.roots:
            _refuse_if_less(left[root], total[root], facts.roots[root])
            for budget in facts.budgets:
                sharing = [each for each in plans if budget in each.table.facts.budgets]
                spent = sum((each.table.facts.prices(at[id(each)]).get(root, ZERO) for each in sharing), ZERO)
                _refuse_if_less(budget.left_at(root), spent, facts.roots[root])


def _refuse_if_less(left: Fraction, price: Fraction, root: str) -> None:
    if price > left:
        raise BudgetExceeded(
            f"the statement would cost {show_up(price)} of {root!r}, which has {show_down(left)} left. "
            "Nothing was charged.",
            price=price,
            remaining=left,
        )


# ── asking ───────────────────────────────────────────────────────────────────────────


def ask(program: Program, given: object) -> Line | Result:
    """The rows of a statement. Whatever can be refused is refused before any charge."""
    epsilon = exactly(given)
    refuse_unless_possible(program, epsilon)
    asking = Asking(epsilon, program.weight, len(program.finders))
    for number, scalar in enumerate(program.scalars):
        program = program.knowing(asking.values)
        rows = asking.rows(program.scalars[number].plan)
        asking.learn(scalar.name, next(iter(rows[0].line.cells.values())) if rows else None)
    program = program.knowing(asking.values)
    if isinstance(program.whole, Plan) and program.whole.one_row:
        line = asking.rows(program.whole)[0].line
        line.charged_delta = asking.charged_delta()
        return line
    if isinstance(program.whole, Plan):
        found, names = program.whole, _key_columns(program.whole)
        single = len(found.by) == 1
        lines = {row.key[0] if single else row.key: row.line for row in asking.rows(found)}
    else:
        lines, names = dict(enumerate(asking.lines(program.whole))), ("row",)
    result = Result(lines, epsilon, asking.charged(), names)
    result.charged_delta = asking.charged_delta()
    return result


class Asking:
    """A statement while it is asked: what was charged so far, and what sub-queries answered."""

    def __init__(self, epsilon: Amount, weight: Fraction, finders: int = 0) -> None:
        self._epsilon, self._weight, self._finders = epsilon, weight, finders
        self._deltas: list[tuple[Facts, Charged]] = []
        self.values: dict[str, Any] = {}
        self._answers: dict[str, Answer] = {}
        self._charges: list[tuple[Facts, Charged]] = []
        self._split: list[tuple[tuple[str, ...], Fraction | Rho]] = []

    def learn(self, name: str, cell: Any) -> None:
        """What a sub-query answered."""
        self.values[name] = _plain(cell)
        if isinstance(cell, Answer):
            self._answers[name] = cell

    def charged(self) -> Charged:
        """What was charged in all."""
        return _together(self._charges)

    def charged_delta(self) -> Charged:
        """What was charged of the δ for keys."""
        return _together(self._deltas)

    def _shares(self) -> Split:
        return Split(self._epsilon, tuple(self._split))

    def rows(self, plan: Plan) -> "list[Row]":
        """The rows of a SELECT."""
        source = _with_listed_keys(plan, plan.table)
        levels: list[Found] = []
        for level in plan.levels:
            found: Found = {key: {} for key in _keys(plan, level)}
            rest = shares(plan, self._epsilon, self._weight)
            for share in rest:
                self._split.append((tuple(_shown(plan, name) for name in share.names), share.epsilon))
            if plan.found is not None:
                found = self._found(plan, source, rest.pop(0))
            for share in rest if found else ():  # of no keys nothing is asked
                self._charges.append((plan.table.facts, _ask(plan, source, level, share, found)))
            levels.append(found)
        if len(levels) > 1:
            additive = [name for name, asked in plan.aggregates.items() if asked.additive]
            consistent(plan.levels, levels, additive)
        charged, split = self.charged(), self._shares()
        made = []
        for level, found in zip(plan.levels, levels, strict=True):
            for key, answers in found.items():
                values = _values(plan, level, key) | self.values
                made.append(_row(plan, values, answers | self._answers, self._epsilon, charged, split))
        return _chosen(plan, made)

    def _found(self, plan: Plan, source: Table, share: Share) -> Found:
        """The keys that are found, with their counts."""
        assert plan.found is not None
        answers = _find(plan, source, share, plan.found.at(self._finders))
        self._charges.append((plan.table.facts, answers.charged))
        self._deltas.append((plan.table.facts, answers.charged_delta))
        keys = {key if len(plan.by) > 1 else (key,): answer for key, answer in answers.items()}
        return {key: {plan.found.counted: one} for key, one in keys.items() if plan.found.keeps(key)}

    def lines(self, found: Whole) -> list[Line]:
        """The rows of SELECTs that are put together."""
        if isinstance(found, Plan):
            return [row.line for row in self.rows(found)]
        asked = [self.lines(each) for each in (found.left, found.right)]  # before anything is made of them
        left, right = ([self._as(found.outputs, line) for line in lines] for lines in asked)
        rows = [Row((), _named(line), line) for line in put_together(found, left, right, _plain_cells)]
        for sorting in reversed(found.sortings):
            rows = _sorted(rows, sorting)
        return [row.line for row in rows[found.offset :][: found.limit]]

    def _as(self, outputs: Sequence[Output], line: Line) -> Line:
        """A row under the names and types that both sides have."""
        cells: dict[str, Any] = {}
        for output, cell in zip(outputs, line.cells.values(), strict=True):
            if not output.of_keys and not isinstance(cell, Answer):  # beside answers of the other side
                cell = Answer(cell, self._epsilon, self.charged(), Unknown())
            if isinstance(cell, Answer):
                cell = copy(cell).called(output.name)
                cell.value = as_type(cell.value, output.type)
                cells[output.name] = cell
            else:
                cells[output.name] = as_type(cell, output.type)
        return Line(cells, self._epsilon, self.charged(), self._shares())


def _named(line: Line) -> dict[str, Any]:
    return {name: _plain(cell) for name, cell in line.cells.items()}


def _plain_cells(line: Line) -> tuple[Any, ...]:
    return tuple(map(_plain, line.cells.values()))


def _shown(plan: Plan, aggregate: str) -> str:
    """What an aggregate is called in the result: its column, or its place."""
    return next((each.name for each in plan.outputs if each.aggregate == aggregate), aggregate)


def _with_listed_keys(plan: Plan, table: Table) -> Table:
    """The table; of several levels, the records whose keys are listed, so that levels add up."""
    return table if len(plan.levels) == 1 else listed(table, plan.by, plan.keys)


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
    with placed(plan.text, plan.query):
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


def _find(plan: Plan, table: Table, share: Share, how: Discover) -> FoundAnswers:
    """The keys of GROUP BY that enough records have, and how many."""
    with placed(plan.text, plan.query):
        return find(table.facts, share.epsilon, lambda row: cells_of(row, plan.by), how)


def _put(plan: Plan, names: Sequence[str], answered: Any, into: dict[str, Answer]) -> None:
    for name in names:
        one = answered[name] if len(names) > 1 else answered
        part = plan.aggregates[name].part
        into[name] = one if part is None else one[part]


def _together(charges: Sequence[tuple[Facts, Charged]]) -> Charged:
    """What was charged in all: of one root an amount, of several each."""
    roots: dict[str, str] = {}
    spent: dict[str, Fraction] = {}
    for facts, charged in charges:
        roots |= facts.roots
        by_label = charged if isinstance(charged, Mapping) else None
        for root, label in facts.root_labels().items():
            amount = charged if by_label is None else by_label[label]
            spent[root] = spent.get(root, ZERO) + amount  # type: ignore[operator]  # one of both
    return replace(charges[0][0], roots=roots).by_root(spent) if charges else ZERO


# ── rows ─────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Row:
    """A row of the result: its key, the values that it is made of, and its line."""

    key: tuple[Any, ...]
    values: Mapping[str, Any]
    line: Line


def _values(plan: Plan, level: Sequence[int], key: tuple[Any, ...]) -> dict[str, Any]:
    """What is public of a row: its key, and which of them it is by."""
    whole = [None] * len(plan.by)
    for place, value in zip(level, key, strict=True):
        whole[place] = value
    values: dict[str, Any] = dict(zip(plan.by, whole, strict=True))
    return values | {f"grouping {name}": int(i not in level) for i, name in enumerate(plan.by)}


def _row(
    plan: Plan,
    public: Mapping[str, Any],
    answers: Mapping[str, Answer],
    epsilon: Amount,
    charged: Charged,
    split: Split,
) -> Row:
    values = {**public, **{name: answer.value for name, answer in answers.items()}}
    cells = {each.name: _cell(each, values, answers, epsilon, charged) for each in plan.outputs}
    return Row(tuple(values[name] for name in plan.by), values, Line(cells, epsilon, charged, split))


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


def _chosen(plan: Plan, rows: list[Row]) -> list[Row]:
    """The rows that HAVING, DISTINCT and LIMIT leave, in the order of ORDER BY."""
    if plan.having is not None:
        rows = [row for row in rows if evaluate(plan.having, row.values) is True]
    if plan.distinct:
        rows = list({_plain_cells(row.line): row for row in reversed(rows)}.values())[::-1]
    for sorting in reversed(plan.sortings):
        rows = _sorted(rows, sorting)
    return rows[plan.offset :][: plan.limit]


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
