"""A counterexample as two runs side by side, in the paper's notation."""

from fractions import Fraction

from fpinq.checker.interleavings import Breach, Move
from fpinq.checker.mechanisms import base2, parts
from fpinq.checker.programs import Violation
from fpinq.checker.scope import start
from fpinq.checker.worlds import ROOTS, Table
from fpinq.engines.reference import PersonBag, compute, distance, order
from fpinq.model.accounts import Root, paid
from fpinq.model.events import Froze, Registered, Unfroze
from fpinq.model.notation import show_action, show_record
from fpinq.model.notions import pure
from fpinq.model.semantics import Bottom, Measure, Told, step


def show_bag(table: Table) -> str:
    """A bag of records, or of persons, who are bags of records of each table."""
    if isinstance(table, PersonBag):
        shown = [" and ".join(show_bag(rows) for rows in person.values()) for person in table.persons]
    else:
        shown = [show_record(record) for record in sorted(table.rows, key=order)]
    return "{" + ", ".join(shown) + "}"


def show_breach(breach: Breach) -> str:
    """An interleaving, move by move, and what does not hold after it."""
    meeting = breach.meeting
    totals = zip(ROOTS, meeting.budgets, strict=True)
    caps = [f"{analyst} ≤ {cap}" for analyst, cap in meeting.caps]
    caps += [f"everyone ≤ {meeting.cap}"] if meeting.cap is not None else []
    lines = [
        f"  T : {', '.join(f'{root} = {show_bag(breach.neighbours.left[root])}' for root in ROOTS)}",
        f"  T′: {', '.join(f'{root} = {show_bag(breach.neighbours.right[root])}' for root in ROOTS)}",
        f"  budgets: {', '.join([*(f'{root} {total}' for root, total in totals), *caps])}",
    ]
    lines += [f"    {move.who:<7} {_move(move)}" for move in breach.program]
    return "\n".join([*lines, f"  but {breach.what}"])


def _move(move: Move) -> str:
    match move.what:
        case Registered(name=name):
            return f"root {name}"
        case Froze(name=name):
            return f"freeze {name}"
        case Unfroze(name=name):
            return f"unfreeze {name}"
        case action:
            return show_action(action)


def show_violation(violation: Violation | Breach) -> str:
    """The trace pair that breaks the theorem, replayed through the rules that are in force."""
    if isinstance(violation, Breach):
        return show_breach(violation)
    left, right = violation.neighbours.left, violation.neighbours.right
    budgets = dict(zip(ROOTS, violation.budgets, strict=True))
    lines = [
        f"  T : {', '.join(f'{root} = {show_bag(left[root])}' for root in ROOTS)}",
        f"  T′: {', '.join(f'{root} = {show_bag(right[root])}' for root in ROOTS)}",
        f"  budgets: {', '.join(f'{root} {total}' for root, total in budgets.items())}",
    ]
    c, p, q = start(violation.budgets, violation.world, violation.concentrated), Fraction(1), Fraction(1)
    in_rho = any(violation.concentrated)
    whole = not in_rho
    for action in violation.program:
        transition = step(c, action)
        c, label = transition.configuration, transition.label
        seen = "τ"
        if isinstance(label, Measure):
            seen = ", ".join(["0"] * label.parts)
            whole = whole and pure(label.epsilon).denominator == 1
            for here, there in zip(parts(label, left), parts(label, right), strict=True):
                p *= base2(0, pure(label.epsilon))[0] if whole else 1
                q *= base2(distance(here, there), pure(label.epsilon))[0] if whole else 1
            table = f"{show_bag(compute(label.plan, left))} | {show_bag(compute(label.plan, right))}"
            seen += f"     on {table}"
        elif isinstance(label, Bottom):
            seen = "⊥"
        elif isinstance(label, Told):
            seen = "told"
        lines.append(f"    {show_action(action):<52} ── {seen}")
    charged = [paid(c.accounts, Root(root)) for root in ROOTS]
    spent = ", ".join(f"{root} {amount}" for root, amount in zip(ROOTS, charged, strict=True))
    lines.append(f"  charged: {spent}")
    if violation.loss > violation.allowed and in_rho:
        lines.append(f"  D_α / α = {violation.loss}  >  {violation.allowed} = (Σ d·√(B − B′))²")
    elif violation.loss > violation.allowed and not whole:
        lines.append(f"  p / q = 2^{violation.loss}  >  2^{violation.allowed} = 2^(B − B′)")
    elif violation.loss > violation.allowed:
        lines.append(f"  p = {p}  >  {q}·2^{violation.allowed} = q·2^(B − B′)")
    else:
        lines.append("  but 0 ≤ B′ ≤ B fails")
    return "\n".join(lines)
