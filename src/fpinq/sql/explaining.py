"""EXPLAIN: the plan of a statement, its price, how far each column will be off, and what is missing. Free."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from fpinq.client.shown import visibly
from fpinq.client.spelling import show_at, show_delta, show_up, spell
from fpinq.client.thresholds import Shown
from fpinq.model.frozen import dataclass
from fpinq.model.notions import Amount
from fpinq.sql.asking import delta_prices, exactly, prices, shares
from fpinq.sql.combining import Both, Whole, selects
from fpinq.sql.finding import asked_for_keys
from fpinq.sql.programs import Program
from fpinq.sql.scalars import opaque
from fpinq.sql.statements import Plan


@visibly
@dataclass(frozen=True)
class Explanation:
    """What a statement would ask, before it is asked."""

    program: Program
    epsilon: Amount | None

    @property
    def plan(self) -> Plan:
        """What its SELECT asks; of several, the last."""
        return self.program.plans[-1]

    @property
    def missing(self) -> tuple[str, ...]:
        """The metadata that it lacks: asked, it would be refused."""
        return tuple(str(error) for error in self.program.missing)

    @property
    def price(self) -> Fraction | Mapping[str, Fraction] | None:
        """What it would cost now."""
        if self.epsilon is None:
            return None
        facts = replace(self.plan.table.facts, roots=self.program.roots)
        return facts.by_root(prices(self.program, self.epsilon))

    @property
    def price_delta(self) -> Fraction | Mapping[str, Fraction] | None:
        """What it would cost now of the δ for keys."""
        if self.epsilon is None:
            return None
        facts = replace(self.plan.table.facts, roots=self.program.roots)
        return facts.by_root(delta_prices(self.program, self.epsilon))

    def __str__(self) -> str:
        return "\n".join(self._lines())

    __repr__ = __str__

    def _lines(self) -> Iterator[str]:
        program = self.program
        plans = program.plans
        for number, plan in enumerate(plans, 1):
            if len(plans) > 1:
                yield self._head(number, plan)
            yield from self._select(plan)
        if isinstance(program.whole, Both):
            yield f"rows: {_spelled(program.whole, len(program.scalars) + 1)}"
        if len(plans) > 1:
            yield from self._cost()
        for error in program.missing:
            yield f"missing: {error}"

    def _cost(self) -> Iterator[str]:
        if self.epsilon is not None:
            shown = _amounts(self.price, show_up)
            delta = f", and δ = {_amounts(self.price_delta, show_delta)}" if self._costs_delta() else ""
            yield f"{show_at(self.epsilon)} costs {shown}{delta}"

    def _costs_delta(self) -> bool:
        return any(plan.found is not None and plan.found.how.delta for plan in self.program.finders)

    def _head(self, number: int, plan: Plan) -> str:
        share = "free" if not plan.weight else f"{plan.weight / self.program.weight} of ε"
        if number <= len(self.program.scalars):
            return f"[{number}] a sub-query that is a value, asked first: {share}"
        return f"[{number}] SELECT: {share}"

    def _select(self, plan: Plan) -> Iterator[str]:
        if plan.query.args.get("from_") is not None:
            yield self._shown(str(plan.table.explain()))
        if plan.by:
            levels = f", {len(plan.levels)} grouping sets" if len(plan.levels) > 1 else ""
            named = ", ".join(spell(tree) for tree in plan.by.values())
            yield f"by {named}: {self._found(plan) or f'{len(plan.keys):,} public keys{levels}'}"
        if plan.query.args.get("from_") is not None:
            yield f"scaling factor {plan.table.scaling_factor}"
        if len(self.program.plans) == 1:
            yield from self._cost()
        yield from self._columns(plan)

    def _found(self, plan: Plan) -> str:
        """Which keys are found, where nobody listed them: at an ε, from which noisy count on."""
        if plan.found is None:
            return ""
        how = plan.found.at(len(self.program.finders))
        at = f" at δ = {show_delta(how.delta)}" if how.delta else ""
        if self.epsilon is None:
            return f"keys are found{at}, {how.at_most:,} at the most"
        share = shares(plan, self.epsilon, self.program.weight)[0].epsilon
        shown = Shown(asked_for_keys(plan.table.facts, plan.by, how), share)
        return f"found{at} at {show_at(share)}: {shown}"

    def _shown(self, text: str) -> str:
        """A sub-query's value by its number, in place of what stands in for it."""
        for number, scalar in enumerate(self.program.scalars, 1):
            written, shown = spell(opaque(scalar.stand_in, scalar.type)), f"[{number}]"
            lines = []
            for line in text.split("\n"):
                before, *after = line.split(written)
                for each in after:  # what stood further right stays there
                    name, gap, rest = each.partition("  ")
                    before += f"{shown}{name}{' ' * (len(written) - len(shown)) if gap else ''}{gap}{rest}"
                lines.append(before)
            text = "\n".join(lines)
        return text

    def _columns(self, plan: Plan) -> Iterator[str]:
        errors = {} if self.epsilon is None or self.program.missing else dict(self._errors(plan))
        for output in plan.outputs:
            if output.aggregate is not None and output.aggregate in plan.aggregates:
                query = plan.aggregates[output.aggregate].query
                expected = errors.get(output.aggregate)
                yield f"  {output.name}: {self._shown(query.words())}" + (f", {expected}" if expected else "")
            elif output.of_keys:
                yield f"  {output.name}: {'a key' if plan.by else 'a constant'}"
            else:
                yield f"  {output.name}: computed of what is released"

    def _errors(self, plan: Plan) -> Iterator[tuple[str, Any]]:
        """How far each aggregate will be off."""
        from fpinq.client.several import several

        assert self.epsilon is not None
        for share in shares(plan, self.epsilon, self.program.weight):
            queries = {name: plan.aggregates[name].query for name in share.names}
            if len(queries) == 1:
                ((name, query),) = queries.items()
                yield name, plan.table.expected_error(query, share.epsilon)
            else:
                weights = {name: plan.weights[name] for name in share.names}
                found = plan.table.expected_error(several(queries, weights=weights), share.epsilon)
                yield from ((name, found[name]) for name in share.names)


def _amounts(amounts: Fraction | Mapping[str, Fraction] | None, show: Callable[[Fraction], str]) -> str:
    if isinstance(amounts, Mapping):
        return ", ".join(f"{show(each)} of {root}" for root, each in amounts.items())
    return show(amounts or Fraction(0))


def _spelled(found: Whole, number: int) -> str:
    """Which SELECTs are put together, by their numbers, and how."""
    if isinstance(found, Plan):
        return f"[{number}]"
    right = _spelled(found.right, number + len(selects(found.left)))
    bag = " all" if found.bag else ""
    return f"({_spelled(found.left, number)} {found.operation}{bag} {right})"


def explain(program: Program, epsilon: object) -> Explanation:
    """The explanation of a statement; without an ε, without prices and errors."""
    return Explanation(program, None if epsilon is None else exactly(epsilon))
