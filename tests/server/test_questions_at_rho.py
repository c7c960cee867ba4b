"""Questions over HTTP of a budget in ρ: at an ε, and at a ρ."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import fpinq as fp
from fpinq.model.expressions import Type
from fpinq.model.notions import Rho
from fpinq.server import DataSet, TableConfig
from server.asked import COLUMNS, QUESTIONS, ask, check, words
from server.live import PEOPLE, Live, serve


def test_a_question_of_a_concentrated_budget_is_quoted_as_it_is_charged(tmp_path: Path) -> None:
    with serve(tmp_path, concentrated()) as live:
        token = live.token()
        question = {"table": "conc", "kind": "average", "of": "age", "by": "gender"}
        quote = ask(live, token, "/quotes", **question).json
        assert (quote["mistake"], quote["likelihood_ratio"]) == (None, None)
        told = ask(live, token, **question)
        assert told.status == 200, told.body
        (price,) = quote["prices"]
        assert 0 < Fraction(told.json["charged"]["conc"]) <= Fraction(price["price"]) < Fraction(1, 100)
        mine = live.send("GET", "/me", token=token).json["datasets"]["conc"]
        assert (mine["notion"], mine["budget"]) == ("rho", "1/50")
        assert Fraction(mine["left"]) == Fraction(1, 50) - Fraction(told.json["charged"]["conc"])


@pytest.mark.parametrize("question", QUESTIONS, ids=words)
def test_a_question_at_rho_costs_what_its_quote_says(
    at_rho: tuple[Live, str, dict[str, Any]], question: dict[str, Any]
) -> None:
    live, token, described = at_rho
    body = {"table": "conc", "epsilon": None, "rho": "1/1000", **question}
    quote = ask(live, token, "/quotes", **body).json
    before, told = live.left("conc"), ask(live, token, **body)
    check(described, "/quotes", quote)
    assert quote["mistake"] is None
    assert told.status == 200, told.body
    check(described, "/questions", told.json)
    check(described, "/questions", {"table": "conc", "rho": "1/1000", **question}, request=True)
    assert (quote["epsilon"], quote["rho"], told.json["rho"]) == (None, "1/1000", "1/1000")
    (price,) = quote["prices"]
    charged = before - live.left("conc")
    assert price["notion"] == "rho"
    assert Fraction(price["price"]) == charged == Fraction(told.json["charged"]["conc"]) > 0


@pytest.fixture(scope="module")
def at_rho(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Live, str, dict[str, Any]]]:
    table = TableConfig(PEOPLE, columns=COLUMNS)
    data = {"conc": DataSet("conc", Rho(Fraction(100)), {"conc": table})}
    with serve(tmp_path_factory.mktemp("rho"), data) as found:
        yield found, found.token(), found.send("GET", "/openapi.json").json


def test_a_refusal_at_rho_speaks_of_rho(tmp_path: Path) -> None:
    with serve(tmp_path, concentrated()) as live:
        refused = ask(live, live.token(), table="conc", kind="count", epsilon=None, rho=1)
        assert refused.code == "budget_exceeded"
        assert "A smaller ρ costs less" in refused.json["error"]["message"]


def test_a_cap_in_rho_refuses_what_the_budget_would_not(tmp_path: Path) -> None:
    (data,) = concentrated().values()
    capped = replace(data, caps={"bob": Rho(Fraction(1, 1000))})
    with serve(tmp_path, {"conc": capped}) as live:
        bob, ann = live.token("bob"), live.token("ann")
        question = {"table": "conc", "kind": "minimum", "of": "age", "epsilon": None}
        assert ask(live, bob, rho="1/2000", **question).status == 200
        refused = ask(live, bob, rho="1/1000", **question)
        assert (refused.code, live.left("conc")) == ("budget_exceeded", Fraction(39, 2000))
        assert "your own share" in refused.json["error"]["message"]
        (price,) = ask(live, bob, "/quotes", rho="1/1000", **question).json["prices"]
        assert (price["notion"], price["cap"], price["cap_remaining"]) == ("rho", "1/1000", "1/2000")
        assert ask(live, ann, rho="1/1000", **question).status == 200


def test_two_roots_of_different_notions_in_one_query_pay_each_in_its_own(tmp_path: Path) -> None:
    rows = TableConfig([{"age": i} for i in range(50)], schema={"age": Type.INT64})
    other = TableConfig([{"age": 2 * i} for i in range(50)], schema={"age": Type.INT64})
    data = {
        "pure": DataSet("pure", Fraction(2), {"pure": rows}),
        "conc": DataSet("conc", Rho(Fraction(2)), {"conc": other}),
    }
    with serve(tmp_path, data) as live:
        catalog = fp.connect(live.url, live.token())
        both = catalog.table("pure").concat(catalog.table("conc"))
        with pytest.raises(fp.NotConcentrated):
            both.noisy_top(fp.rho("1/10"), 1, "age", [1, 2])
        assert (live.left("pure"), live.left("conc")) == (2, 2)
        charged = both.noisy_count(1).charged
        assert charged == {"pure": 1, "conc": catalog.table("conc").price(1)}
        assert charged["conc"] < Fraction(1, 2)
        assert live.left("pure") == 1
        with pytest.raises(fp.BudgetExceeded):  # of the pure one; the other keeps what it has
            both.noisy_count("3/2")
        assert live.left("conc") == 2 - charged["conc"]


def test_blocks_in_rho_pay_each_their_own_and_one_that_is_spent_refuses_all(tmp_path: Path) -> None:
    data = {
        name: DataSet(
            name,
            Rho(Fraction(budget)),
            {name: TableConfig([{"age": i + n} for i in range(50)], schema={"age": Type.INT64})},
        )
        for n, (name, budget) in enumerate({"monday": 1, "tuesday": 1, "wednesday": 2}.items())
    }
    with serve(tmp_path, data) as live:
        catalog = fp.connect(live.url, live.token())
        days = [catalog.table(name) for name in data]
        week = days[0].concat(days[1]).concat(days[2])
        found = week.noisy_quantile(fp.rho("1/2"), [0.25, 0.75], "age", bounds=(0, 60), interval=0.9)
        assert found.charged == dict.fromkeys(data, Fraction(1, 2))
        days[0].noisy_count(fp.rho("1/4"))
        with pytest.raises(fp.BudgetExceeded, match="monday"):
            week.noisy_count(fp.rho("1/2"))
        assert [live.left(name) for name in data] == [Fraction(1, 4), Fraction(1, 2), Fraction(3, 2)]
        assert days[2].concat(days[1]).noisy_proportion(fp.rho("1/2"), lambda x: x.age > 3).value >= 0
        assert [live.left(name) for name in data] == [Fraction(1, 4), 0, 1]


@pytest.mark.parametrize("wrong", [0, -1, "x", "nan", "1/0", 1e-40, "1e999", True, [1]])
def test_a_rho_that_is_none_is_refused_and_nothing_is_charged(
    at_rho: tuple[Live, str, dict[str, Any]], wrong: object
) -> None:
    live, token, _ = at_rho
    before = live.left("conc")
    refused = ask(live, token, table="conc", kind="top", of="gender", first=1, epsilon=None, rho=wrong)
    assert refused.status in (400, 422)
    assert live.left("conc") == before


def concentrated() -> dict[str, DataSet]:
    rows = [{"age": 20 + i % 50, "gender": i % 2} for i in range(100)]
    table = TableConfig(rows, columns=COLUMNS)
    return {"conc": DataSet("conc", Rho(Fraction(1, 50)), {"conc": table})}
