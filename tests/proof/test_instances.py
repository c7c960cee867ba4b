"""Every query class that runs has an instance in the proof, named in the table of proof/README.md."""

import re
from pathlib import Path
from typing import get_args

import pytest

from fpinq.model.queries import PrimitiveQuery

PROOF = Path(__file__).parents[2] / "proof"
ROW = re.compile(r"^\| `(\w+)` \|(.*)\|$", flags=re.MULTILINE)


def classes() -> set[str]:
    """The closed set of what can be asked."""
    return {query.__name__ for query in get_args(PrimitiveQuery)}


def rows(text: str) -> dict[str, list[str]]:
    """Class by class, what is named in its row."""
    _, after = text.split("## What runs, and where its proof is")
    table, *_ = after.split("\n## ")
    return {name: re.findall(r"`(\w+)`", cells) for name, cells in ROW.findall(table)}


def defined() -> set[str]:
    """All that has a name in the proof."""
    source = "\n".join(file.read_text(encoding="utf-8") for file in PROOF.glob("*.v"))
    words = "Lemma|Theorem|Corollary|Definition|Fixpoint|Record|Inductive"
    constructors = re.findall(r"^\s*\| (\w+)", source, flags=re.MULTILINE)
    return {*re.findall(rf"^\s*(?:{words}) (\w+)", source, flags=re.MULTILINE), *constructors}


def missing(text: str) -> list[str]:
    """The classes without a row."""
    return sorted(classes() - rows(text).keys())


def readme() -> str:
    return (PROOF / "README.md").read_text(encoding="utf-8")


def test_every_query_class_has_a_row_in_the_proof_s_table() -> None:
    without = missing(readme())
    assert not without, (
        f"{', '.join(without)}: no row in the table of proof/README.md (What runs, and where its proof is). "
        "Make the query an instance in proof/ (Queries.v and AtRho.v, or Discovery.v) and name it there."
    )


def test_every_name_in_the_table_is_in_the_proof() -> None:
    known = defined()
    unknown = {name for cells in rows(readme()).values() for name in cells} - known
    assert not unknown, f"named in proof/README.md and not defined in proof/: {sorted(unknown)}"


@pytest.mark.parametrize("name", sorted(classes()))
def test_a_row_that_is_taken_away_is_missed(name: str) -> None:
    text = re.sub(rf"^\| `{name}` \|.*\n", "", readme(), flags=re.MULTILINE)
    assert missing(text) == [name]
