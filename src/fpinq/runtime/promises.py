"""What an owner promises about the size of data, checked when the data comes in."""

from collections.abc import Mapping

from fpinq.model.errors import BadData


def check_rows(found: Mapping[str, int], promised: Mapping[str, int]) -> None:
    """BadData if a table has more rows than its owner promised. How many it has is not said."""
    for table, most in promised.items():
        if found[table] > most:
            raise BadData(
                f"{table} has more rows than rows_at_most = {most}: "
                "promise a number that you know without the data"
            )
