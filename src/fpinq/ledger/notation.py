"""Entries in words, with actions as the paper writes them."""

from collections.abc import Iterable, Mapping
from fractions import Fraction

from fpinq.model.events import Began, Event, Froze, Recorded, Registered, Took, Unfroze, Upgraded
from fpinq.model.notation import show_action
from fpinq.model.traces import Released

# A histogram has many integers; a line of a trace does not need them all.
SHOWN = 8


def show_body(body: Event) -> str:
    """What an entry says, in one line. What a program wrote into it moves no cursor."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in _body(body))


def _body(body: Event) -> str:
    match body:
        case Began(id=name):
            return f"ledger {name}"
        case Registered(name=name, budget=budget, unit=unit, block_of=block_of):
            whose = f", one record per {unit}" if unit else ""
            block = f", a block of {block_of}" if block_of else ""
            types = ", its schema read off the data" if body.read_off else ""
            return f"root {name}, B = {budget}{whose}{block}{types}{_caps(body)}"
        case Took(session=session, analyst=analyst, action=action, rule=rule, charged=charged):
            who = f"{analyst}/{session[:8]}" if analyst else session[:8]
            return f"{who}  {show_action(action)}  {rule}{_charged(charged)}"
        case Recorded(answers=seq, released=released):
            return f"answer to {seq}: {_several(_released(r) for r in released[:SHOWN])}{_more(released)}"
        case Froze(name=name):
            return f"freeze {name}"
        case Unfroze(name=name):
            return f"unfreeze {name}"
        case Upgraded(format=older, entries=entries):  # pragma: no branch - exhaustive
            spent = {root: each[""] for root, each in body.spent.items() if each.get("")}
            return f"upgraded from format {older}, {entries} entries{_charged(spent)}"


def _caps(root: Registered) -> str:
    limits = [f"{who} ≤ {cap}" for who, cap in (root.caps or {}).items()]
    limits += [f"everyone ≤ {root.cap}"] if root.cap is not None else []
    limits += [f"{who} δ ≤ {cap}" for who, cap in (root.keys_caps or {}).items()]
    limits += [f"everyone δ ≤ {root.keys_cap}"] if root.keys_cap is not None else []
    return f", {_several(limits)}" if limits else ""


def _charged(charged: Mapping[str, Fraction]) -> str:
    return "".join(f", {root} − {cost}" for root, cost in charged.items())


def _released(released: Released) -> str:
    if isinstance(released, int):
        return str(released)
    shown = _several(str(n) for n in released[:SHOWN])
    return shown if len(released) == 1 else f"({shown}{_more(released)})"


def _more(several: tuple[object, ...]) -> str:
    return f", … {len(several)} in all" if len(several) > SHOWN else ""


def _several(texts: Iterable[str]) -> str:
    return ", ".join(texts)
