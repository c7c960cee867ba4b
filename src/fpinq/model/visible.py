"""Text that somebody looks at: what a terminal would obey, or not show, is written out.

Names of columns and keys are anybody's. A terminal takes some characters for
orders (to clear the screen, to write over the line above), and others turn
what stands beside them around; neither is a letter of a name.
"""


def visible(text: str) -> str:
    """A text in one line, with every character that cannot be printed as Python writes it: \\x1b, \\u202e."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def visible_lines(text: str) -> str:
    """The same of a text in lines, whose ends and tabs stay what they are."""
    return "\n".join("\t".join(map(visible, line.split("\t"))) for line in text.split("\n"))
