"""Names and texts of others in our SQL."""


def identifier(name: str) -> str:
    """A name of the owner's as SQL."""
    return '"' + name.replace('"', '""') + '"'


def by_code_point(text: str) -> str:
    """A text that is compared byte by byte, which in UTF-8 is by code point."""
    return f'({text} COLLATE "C")'
