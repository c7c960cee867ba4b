"""Results on a screen: lines of text, and tables of a notebook."""

from collections.abc import Mapping, Sequence
from html import escape


def even(lines: Sequence[Sequence[str]]) -> list[list[str]]:
    """Lines of as many cells each: a shorter one is filled before its last."""
    most = max(map(len, lines), default=0)
    return [[*line[:-1], *[""] * (most - len(line)), line[-1]] for line in lines]


def text_table(lines: Sequence[Sequence[str]]) -> str:
    """Lines whose cells stand below each other."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def html_table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table with a header; the last cell of a line is a number, as a rule, and stands to the right."""
    above = "".join(f"<th>{escape(name)}</th>" for name in header)
    rows = "".join(
        "<tr>"
        + "".join(f"<td style='text-align:left'>{escape(cell)}</td>" for cell in line[:-1])
        + f"<td style='text-align:right'>{escape(line[-1])}</td></tr>"
        for line in lines
    )
    return f"<table><thead><tr>{above}</tr></thead><tbody>{rows}</tbody></table>"


def html_facts(facts: Mapping[str, str]) -> str:
    """A table of facts, each with its name before it."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        f"<td style='text-align:left'>{escape(fact)}</td></tr>"
        for name, fact in facts.items()
    )
    return f"<table>{rows}</table>"
