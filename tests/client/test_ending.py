"""How a program ends: without a word, whatever it leaves behind."""

import subprocess
import sys

import pytest

PROGRAM = """
import fpinq as fp
data = fp.protect([{"a": 1}], budget=1, schema={"a": "int64"}, engine=ENGINE)
part = data.where(lambda x: x.a > 0)
part.noisy_count(0.5)
"""


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
def test_a_program_ends_without_a_word(engine: str) -> None:
    """DuckDB listed on standard error what was still alive when the interpreter had gone."""
    program = PROGRAM.replace("ENGINE", repr(engine))
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (ended.stdout, ended.stderr) == ("", "")
