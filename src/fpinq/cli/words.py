"""Numbers with their nouns."""


def counted(number: int, one: str, several: str | None = None) -> str:
    """1 session, 2 sessions, 1 entry, 1,000 entries."""
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"
