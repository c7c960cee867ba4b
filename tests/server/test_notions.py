"""Budgets of ρ on a server and in the shell: asked, capped, refused and shown in their own unit."""

from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

import fpinq as fp
from fpinq.cli.main import main
from fpinq.ledger import open_store
from fpinq.ledger.verify import verify
from fpinq.server import DataSet, TableConfig, load
from fpinq.server.limits import Limits
from server.live import PEOPLE, Live, serve

R = fp.rho("1/400")


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    table = TableConfig(PEOPLE, schema=None, columns={"age": {"bounds": [0, 110]}})
    caps = {"bob": fp.rho("1/100")}
    with serve(
        tmp_path, {"people": DataSet("people", fp.approximate(1, "1e-9"), {"people": table}, caps=caps)}
    ) as it:
        yield it


def test_a_server_answers_at_rho_and_its_ledger_verifies(live: Live, tmp_path: Path) -> None:
    table = fp.connect(live.url, live.token()).table("people")
    left = table.remaining
    assert 0 < table.noisy_count(R) < 200
    assert table.query(R, fp.count(), by="gender", keys=[0, 1]).epsilon == R
    assert 0 <= table.noisy_median(R, "age") <= 110
    assert table.remaining == left - 3 * R.amount  # type: ignore[operator]
    assert table.price(0.1) < Fraction(1, 199)  # type: ignore[operator]
    with pytest.raises(fp.BudgetExceeded, match="ρ ≤"):
        table.noisy_count(fp.rho(1))
    live.house.close()
    with closing(open_store(tmp_path / "ledger", create=False)) as store:
        assert verify(store).roots["people"][1] == 3 * R.amount


def test_a_catalog_with_a_budget_in_rho_raised_in_a_notebook(live: Live) -> None:
    shown = live.connect()._repr_html_()
    assert "ρ = " in shown
    assert all(name in shown for name in live.connect())


def test_a_budget_of_rho_was_a_text_in_one_reply_and_a_number_in_another(live: Live) -> None:
    token = live.token()
    mine = live.send("GET", "/me", token=token).json["datasets"]["people"]
    (listed,) = live.send("GET", "/datasets", token=token).json["datasets"]
    assert {name: listed[name] for name in ("notion", "budget", "remaining")} == {
        name: mine[name] for name in ("notion", "budget", "remaining")
    }
    assert listed["notion"] == "rho"
    assert Fraction(listed["remaining"]) <= Fraction(listed["budget"]) < 1
    assert "(ε, δ) = (1, 1/1000000000)" in listed["promised"]
    assert live.send("GET", "/datasets/people", token=token).json == listed


def test_an_analyst_s_cap_is_a_rho(live: Live) -> None:
    table = fp.connect(live.url, live.token("bob")).table("people")
    assert table.remaining == Fraction(1, 100)
    table.noisy_count(R)
    with pytest.raises(fp.BudgetExceeded):
        table.noisy_count(fp.rho("8/1000"))


def test_no_question_at_rho_is_free(live: Live) -> None:
    table = fp.connect(live.url, live.token()).table("people")
    least = Limits().epsilon_at_least ** 2 / 2
    table.noisy_count(fp.rho(least))
    with pytest.raises(fp.BadEpsilon, match="ρ is at least"):
        table.noisy_count(fp.rho(least / 2))


def test_a_notion_is_said_in_the_configuration_and_in_the_shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "people.csv").write_text("age\n" + "30\n" * 50)
    config = str(tmp_path / "fpinq.toml")

    def add(name: str, budget: str, *more: str) -> int:
        shared = ["--rows-at-most", "1000", "--config", config, "--schema", "age=int64"]
        return main(["dataset", "add", name, "people.csv", "--budget", budget, *shared, *more])

    assert add("people", "rho 1/50", "--cap", "ann=rho 1/100") == 0
    found = load(config).data_sets["people"]
    assert (found.budget, found.caps) == (fp.rho("1/50"), {"ann": fp.rho("1/100")})
    assert add("others", "rho x") == 2
    capsys.readouterr()
    assert main(["dataset", "list", "--config", config]) == 0
    assert "ρ = 1/50" in capsys.readouterr().out


def test_the_shell_asks_at_rho(live: Live, capsys: pytest.CaptureFixture[str]) -> None:
    shared = ["--url", live.url, "--token", live.token(), "--epsilon", "rho 1/200"]
    assert main(["query", "people", "count", *shared]) == 0
    assert "±" in capsys.readouterr().out
    assert main(["query", "people", "price", *shared]) == 0
    assert capsys.readouterr().out.split()[-1] in ("0.005", "1/200")
