"""EXPLAIN: the plan of a statement, its price, how far each column will be off, and what is missing. Free."""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from fpinq.client.spelling import show_at, show_up, spell
from fpinq.model.frozen import dataclass
from fpinq.model.notions import Amount
from fpinq.sql.asking import exactly, shares
from fpinq.sql.statements import Plan


@dataclass(frozen=True)
class Explanation:
    """What a statement would ask, before it is asked."""

    plan: Plan
    epsilon: Amount | None

    @property
    def missing(self) -> tuple[str, ...]:
        """The metadata that it lacks: asked, it would be refused."""
        return tuple(str(error) for error in self.plan.missing)

    @property
    def price(self) -> Fraction | Mapping[str, Fraction] | None:
        """What it would cost now."""
        return None if self.epsilon is None else self.plan.table.price(self.epsilon)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    __repr__ = __str__

    def _lines(self) -> Iterator[str]:
        plan = self.plan
        yield str(plan.table.explain())
        if plan.by:
            levels = f", {len(plan.levels)} grouping sets" if len(plan.levels) > 1 else ""
            named = ", ".join(spell(tree) for tree in plan.by.values())
            yield f"by {named}: {len(plan.keys):,} public keys{levels}"
        yield f"scaling factor {plan.table.scaling_factor}"
        if self.epsilon is not None:
            price = self.price
            shown = (
                ", ".join(f"{show_up(each)} of {root}" for root, each in price.items())
                if isinstance(price, Mapping)
                else show_up(price or Fraction(0))
            )
            yield f"{show_at(self.epsilon)} costs {shown}"
        yield from self._columns()
        for error in plan.missing:
            yield f"missing: {error}"

    def _columns(self) -> Iterator[str]:
        plan = self.plan
        errors = {} if self.epsilon is None or plan.missing else dict(self._errors())
        for output in plan.outputs:
            if output.aggregate is not None and output.aggregate in plan.aggregates:
                query = plan.aggregates[output.aggregate].query
                expected = errors.get(output.aggregate)
                yield f"  {output.name}: {query.words()}" + (f", {expected}" if expected else "")
            elif output.of_keys:
                yield f"  {output.name}: a key"
            else:
                yield f"  {output.name}: computed of what is released"

    def _errors(self) -> Iterator[tuple[str, Any]]:
        """How far each aggregate will be off."""
        from fpinq.client.several import several

        assert self.epsilon is not None
        plan = self.plan
        for share in shares(plan, self.epsilon):
            queries = {name: plan.aggregates[name].query for name in share.names}
            if len(queries) == 1:
                ((name, query),) = queries.items()
                yield name, plan.table.expected_error(query, share.epsilon)
            else:
                weights = {name: plan.weights[name] for name in share.names}
                found = plan.table.expected_error(several(queries, weights=weights), share.epsilon)
                yield from ((name, found[name]) for name in share.names)


def explain(plan: Plan, epsilon: object) -> Explanation:
    """The explanation of a plan; without an ε, without prices and errors."""
    return Explanation(plan, None if epsilon is None else exactly(epsilon))
