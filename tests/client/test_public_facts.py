"""Public facts: the derivation with every factor, and what a table shows of itself."""

import subprocess
import sys
from fractions import Fraction
from xml.etree import ElementTree

import pytest

import fpinq as fp
from client.small_data import PEOPLE, PLENTY
from fpinq import _


def copies(table: fp.Table, k: int) -> fp.Table:
    return table.select_many(lambda x: [x] * k, at_most=k)


@pytest.fixture
def figure(engine: str) -> dict[str, fp.Table]:
    """The paper's figure; F₁,₄ as a concat with four copies of each record of E."""
    a = fp.protect(PEOPLE, budget=PLENTY, engine=engine, name="A")
    b, c = copies(a, 2), copies(a, 3)
    d = copies(b, 5)
    parts = c.partition(_.gender, keys=[0, 1])
    g = d.concat(copies(parts[0], 4))
    return {"A": a, "B": b, "C": c, "D": d, "E": parts[0], "F": parts[1], "G": g}


def test_the_factors_of_the_papers_figure(figure: dict[str, fp.Table]) -> None:
    factors = {name: table.scaling_factor for name, table in figure.items()}
    assert factors == {"A": 1, "B": 2, "C": 3, "D": 10, "E": 3, "F": 3, "G": 22}
    assert figure["G"].price("1/22") == 1


def test_explain_derives_every_factor(figure: dict[str, fp.Table]) -> None:
    lines = str(figure["G"].explain()).splitlines()
    assert lines[0].split() == ["table", "scaling", "factor"]
    assert [line.split("  ")[-1].strip() for line in lines[1:]] == [
        "22 = 1·10 + 1·12",
        "10 = 5·2",
        "2 = 2·1",
        "1",
        "12 = 4·3",
        "3 = 1·3",
        "3 = 3·1",
        "1",
    ]


def test_explain_says_why_merged_parts_cost_their_maximum(figure: dict[str, fp.Table]) -> None:
    merged = figure["E"].concat(figure["F"])
    assert "3 ≤ 1·3 + 1·3" in str(merged.explain())


def test_explain_is_a_drawing_too(figure: dict[str, fp.Table]) -> None:
    drawing = ElementTree.fromstring(figure["G"].explain()._repr_svg_())
    texts = {text.text for text in drawing.iter("{http://www.w3.org/2000/svg}text")}
    assert {"22", "10", "×5", "A"} <= texts
    shared = figure["A"].concat(figure["A"])
    assert "(as above)" not in str(shared.explain())
    twice = figure["B"].concat(figure["B"])
    assert "(as above)" in str(twice.explain())
    assert twice.scaling_factor == 4


def test_sensitivity_is_a_vector_over_sources(figure: dict[str, fp.Table]) -> None:
    assert dict(figure["D"].sensitivity) == {"A": 10}
    (part,) = figure["E"].sensitivity.values()
    assert part == 1
    assert sorted(figure["G"].sensitivity.values()) == [4, 10]
    assert dict(fp.public([{"a": 1}]).sensitivity) == {}


def test_a_table_shows_its_plan_factor_and_what_is_left(figure: dict[str, fp.Table]) -> None:
    text = str(figure["A"].where(_.age > 17))
    for shown in ("A → where age > 17", "age int64", "scaling factor  1", f"{PLENTY} of A"):
        assert shown in text
    html = figure["A"].where(_.city == "<b>")._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<svg" in html
    assert "costs nothing" in str(fp.public([{"a": 1}]))


def test_prices_round_up_and_what_is_left_rounds_down(engine: str) -> None:
    data = fp.protect(PEOPLE, budget="2/3", engine=engine, name="A")
    assert "2/3 (about 0.666666) of A" in str(data)
    with pytest.raises(fp.BudgetExceeded, match=r"cost 5/7 \(about 0\.714286\)"):
        data.noisy_count("5/7")
    assert data.remaining == Fraction(2, 3)


def test_schema_is_a_mapping_to_type_names(people: fp.Table) -> None:
    assert people.schema["age"] == "int64"
    assert list(people.schema) == ["id", "age", "gender", "city", "income"]


def test_parts_are_a_mapping(people: fp.Table) -> None:
    parts = people.partition(_.city, keys=["Ulm", "Bonn"])
    assert (len(parts), "Ulm" in parts, [] in parts) == (2, True, False)
    with pytest.raises(fp.BadPartition, match="no part has this key; the keys are 'Ulm', 'Bonn'"):
        parts["Rom"]
    assert parts.get("Rom") is None
    assert "2 parts by city" in repr(parts)


def test_handles_that_are_gone_leave_the_system(engine: str) -> None:
    data = fp.protect(PEOPLE, budget=1, engine=engine)
    for i in range(50):
        data.where(_.age > i)
    assert data.where(_.age > 3).scaling_factor == 1
    system = data.facts.system
    assert system is not None
    alive = [t for t in system.configuration().environment if t.startswith("t")]  # type: ignore[attr-defined]
    assert len(alive) < 50


def test_importing_fpinq_imports_nothing_heavy() -> None:
    code = (
        "import fpinq, sys; print([m for m in ('numpy', 'duckdb', 'pandas', 'polars') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["t1", "$1", "t$1"])
def test_a_data_set_may_be_called_as_a_variable_is(name: str) -> None:
    """One called t1 was in the way of the program's own first table."""
    first = fp.protect([{"x": 1}], schema={"x": "int64"}, budget=1, engine="reference").where(
        lambda row: row.x > 0
    )
    number = int("".join(filter(str.isdigit, first.facts.binding.variable)))  # type: ignore[union-attr]
    table = fp.protect(
        [{"x": 2}],
        schema={"x": "int64"},
        budget=1,
        engine="reference",
        name=name.replace("1", str(number + 3)),
    )
    made = [table.where(lambda row: row.x > 0) for _ in range(6)]
    assert [each.noisy_count("1/10").value is not None for each in made] == [True] * 6
