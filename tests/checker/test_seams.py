"""Mutation seams: a parameter that only mutants look at says so."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import fpinq.model
from fpinq.checker import mutants

FILES = sorted(Path(fpinq.model.__file__).parent.glob("**/*.py"))


def unused(file: Path) -> Iterator[tuple[ast.FunctionDef, str]]:
    """The functions of a module with a parameter that they do not use."""
    for function in ast.parse(file.read_text("utf-8")).body:
        if isinstance(function, ast.FunctionDef):
            names = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
            yield from ((function, a.arg) for a in function.args.args if a.arg not in names)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_parameter_of_the_model_is_used_or_says_that_it_is_a_seam(file: Path) -> None:
    for function, name in unused(file):
        assert f"`{name}` is a seam" in (ast.get_docstring(function) or ""), f"{function.name}({name})"


def test_every_seam_is_a_mutants() -> None:
    patched = {mutant.attribute for mutant in mutants.MUTANTS}
    seams = {function.name for file in FILES for function, _ in unused(file)}
    assert {"query_bottom"} <= seams <= patched
