"""A counterexample as two runs side by side, in the paper's notation."""

from fractions import Fraction

from fpinq.checker.mechanisms import base2, parts
from fpinq.checker.programs import Violation
from fpinq.checker.scope import ROOTS, start
from fpinq.engines.reference import Relation, compute, distance
from fpinq.model.notation import show_action, show_record
from fpinq.model.semantics import Measure, step
from fpinq.model.sources import Root


def show_bag(table: Relation) -> str:
    """A bag of records."""
    return "{" + ", ".join(show_record(record) for record in sorted(table.rows)) + "}"


def show_violation(violation: Violation) -> str:
    """The trace pair that breaks the theorem, replayed through the rules that are in force."""
    left, right = violation.neighbours.left, violation.neighbours.right
    budget = violation.budget
    lines = [
        f"  T : {', '.join(f'{root} = {show_bag(left[root])}' for root in ROOTS)}",
        f"  T′: {', '.join(f'{root} = {show_bag(right[root])}' for root in ROOTS)}",
        f"  budgets: {', '.join(f'{root} {budget}' for root in ROOTS)}",
    ]
    c, p, q = start(budget), Fraction(1), Fraction(1)
    for action in violation.program:
        transition = step(c, action)
        c, label = transition.configuration, transition.label
        seen = "τ"
        if isinstance(label, Measure):
            seen = ", ".join("0" for _ in label.queries)
            for here, there in zip(parts(label, left), parts(label, right), strict=True):
                p *= base2(0, label.epsilon)[0]
                q *= base2(distance(here, there), label.epsilon)[0]
            table = f"{show_bag(compute(label.plan, left))} | {show_bag(compute(label.plan, right))}"
            seen += f"     on {table}"
        elif transition.rule == "Query⊥":
            seen = "⊥"
        lines.append(f"    {show_action(action):<52} ── {seen}")
    charged = [c.accounts.counters.get(Root(root), Fraction(0)) for root in ROOTS]
    spent = ", ".join(f"{root} {amount}" for root, amount in zip(ROOTS, charged, strict=True))
    lines.append(f"  charged: {spent}")
    if violation.loss > violation.allowed:
        lines.append(f"  p = {p}  >  {q}·2^{violation.allowed} = q·2^(B − B′)")
    else:
        lines.append(f"  but 0 ≤ B′ ≤ B fails: {spent} charged of {budget}")
    return "\n".join(lines)
