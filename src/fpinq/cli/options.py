"""Options that are numbers: refused while the command line is read, with what they may be."""

from argparse import ArgumentTypeError
from fractions import Fraction


def number(text: str) -> int:
    """How many of something: at least one."""
    return _between(text, 1, None, "a whole number ≥ 1")


def share(text: str) -> Fraction:
    """A part of one, exactly as it is written: 0.25, 1/3."""
    try:
        found = Fraction(text) if len(text) < 40 and "e" not in text.lower() else None
    except (ValueError, ZeroDivisionError):
        found = None
    if found is None or not 0 <= found <= 1:
        raise ArgumentTypeError(f"{text!r} is not a share, such as 0.25 or 1/3")
    return found


def port(text: str) -> int:
    """A port to listen at; 0 is any that is free."""
    return _between(text, 0, 65535, "a port from 1 to 65535, or 0 for any that is free")


def _between(text: str, least: int, most: int | None, what: str) -> int:
    found = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1
    if found < least or (most is not None and found > most):
        raise ArgumentTypeError(f"{text!r} is not {what}")
    return found
