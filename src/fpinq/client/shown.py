"""Results on a screen: lines of text, and tables of a notebook."""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from html import escape
from typing import TypeVar

from fpinq.model.visible import visible, visible_lines

C = TypeVar("C")


def visibly(of: type[C]) -> type[C]:
    """A class whose str and repr are fit for a terminal, whatever names are in them."""
    for name in ("__str__", "__repr__"):
        if name in vars(of):
            setattr(of, name, _visibly(vars(of)[name]))
    return of


def _visibly(shown: Callable[[object], str]) -> Callable[[object], str]:
    @wraps(shown)
    def seen(self: object) -> str:
        return visible_lines(shown(self))

    return seen


def even(lines: Sequence[Sequence[str]]) -> list[list[str]]:
    """Lines of as many cells each: a shorter one is filled before its last."""
    most = max(map(len, lines), default=0)
    return [[*line[:-1], *[""] * (most - len(line)), line[-1]] for line in lines]


def text_table(lines: Sequence[Sequence[str]]) -> str:
    """Lines whose cells stand below each other."""
    lines = [list(map(visible, line)) for line in lines]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def html_table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table with a header; the last cell of a line is a number, as a rule, and stands to the right."""
    above = "".join(f"<th>{escape(visible(name))}</th>" for name in header)
    rows = "".join(
        "<tr>"
        + "".join(f"<td style='text-align:left'>{escape(visible(cell))}</td>" for cell in line[:-1])
        + f"<td style='text-align:right'>{escape(visible(line[-1]))}</td></tr>"
        for line in lines
    )
    return f"<table><thead><tr>{above}</tr></thead><tbody>{rows}</tbody></table>"


def html_facts(facts: Mapping[str, str]) -> str:
    """A table of facts, each with its name before it."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{escape(visible(name))}</th>"
        f"<td style='text-align:left'>{escape(visible(fact))}</td></tr>"
        for name, fact in facts.items()
    )
    return f"<table>{rows}</table>"
