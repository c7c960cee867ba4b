"""How much of the machine an engine may use, as its owner says it."""

import re
from fractions import Fraction

from fpinq.model.errors import ProgramError
from fpinq.model.frozen import dataclass

# Less than this and hardly anything can be measured.
MEMORY_AT_LEAST = 128 * 2**20
THREADS_AT_MOST = 4096
_UNITS = {
    **{f"{letter}b": 1000 ** (power + 1) for power, letter in enumerate("kmgt")},
    **{f"{letter}ib": 1024 ** (power + 1) for power, letter in enumerate("kmgt")},
}
_AMOUNT = re.compile(r"(\d{1,9}(?:\.\d{1,6})?) ?([kmgt]i?b)", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True)
class Resources:
    """Memory in bytes, and threads; None where the engine decides."""

    memory_limit: int | None = None
    threads: int | None = None

    def said(self) -> dict[str, int]:
        """What was said, by the names it is said with."""
        given = {"memory_limit": self.memory_limit, "threads": self.threads}
        return {name: amount for name, amount in given.items() if amount is not None}

    def shared(self, workers: int) -> "Resources":
        """What each of several processes may use; a thread at the least."""
        memory = None if self.memory_limit is None else self.memory_limit // workers
        if memory is not None and memory < MEMORY_AT_LEAST:
            raise ProgramError(
                f"memory_limit is shared out: {memory:,} bytes for each of {workers} workers is too little; "
                f"{MEMORY_AT_LEAST * workers // 2**20} MiB are enough, or fewer workers"
            )
        return Resources(memory, None if self.threads is None else max(1, self.threads // workers))


UNSAID = Resources()


def resources(memory_limit: object = None, threads: object = None) -> Resources:
    """What an owner says, checked."""
    return Resources(
        None if memory_limit is None else _bytes(memory_limit), None if threads is None else _count(threads)
    )


def _bytes(given: object) -> int:
    amount = given if type(given) is int else parsed(given) if isinstance(given, str) else None
    if amount is None:
        raise ProgramError(f"memory_limit is an amount such as '2GB', '512MiB' or 2 * 10**9, not {given!r}")
    if amount < MEMORY_AT_LEAST:
        raise ProgramError(
            f"memory_limit={given!r} is {amount:,} bytes, and {MEMORY_AT_LEAST // 2**20} MiB is the least: "
            "write '2GB' for two gigabytes"
        )
    return amount


def parsed(text: str) -> int | None:
    """The bytes that an amount says, such as "2GB"; None if it is none."""
    match = _AMOUNT.fullmatch(text.strip())
    return None if match is None else int(Fraction(match[1]) * _UNITS[match[2].lower()])


def _count(given: object) -> int:
    if type(given) is not int or not 1 <= given <= THREADS_AT_MOST:
        raise ProgramError(f"threads is a whole number, 1 to {THREADS_AT_MOST:,}, not {given!r}")
    return given
