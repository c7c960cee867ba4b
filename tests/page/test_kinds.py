"""Every kind of question on the page: its form, its price and error, its answer, and the same elsewhere."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import fpinq as fp
from fpinq.cli.town import made_up
from fpinq.server.questions.question import KINDS
from page.conftest import Watched, check_accessible, expect, picture
from server.live import Live, serve

# A question of each kind, as a body; where a kind has several shapes, of each shape.
QUESTIONS: list[dict[str, Any]] = [
    {"kind": "count", "where": "age > 17 and city = 'Bergen'"},
    {"kind": "count", "by": "month", "keys": [1, 2], "table": "clinic.visits"},
    {"kind": "count", "by": "city", "keys": ["Bergen", "O'Hara"], "where": "age > 17 or owns_home"},
    {"kind": "distinct_count", "of": "city"},
    {"kind": "proportion", "of": "age > 64"},
    {"kind": "sum", "of": "income / 12", "bounds": ["0", "9000"]},
    {"kind": "average", "of": "age", "by": "city"},
    {"kind": "variance", "of": "age"},
    {"kind": "standard_deviation", "of": "age"},
    {"kind": "median", "of": "age"},
    {"kind": "median", "of": "age", "interval": "0.95"},
    {"kind": "quantile", "of": "age", "fraction": "0.9"},
    {"kind": "minimum", "of": "age"},
    {"kind": "maximum", "of": "age"},
    {"kind": "mode", "of": "city"},
    {"kind": "mode", "of": "age", "candidates": [20, 40, 60]},
    {"kind": "top", "of": "city", "first": 2},
    {"kind": "histogram", "of": "age", "bins": 5},
    {"kind": "cdf", "of": "age", "bins": 5},
    {"kind": "covariance", "of": ["age", "income"]},
    {"kind": "covariance", "of": ["age", "person_id"], "bounds": [None, ["0", "2000"]]},
    {"kind": "correlation", "of": ["age", "income"], "by": "city"},
    {"kind": "regression", "of": ["income", "age"]},
    {"kind": "regression", "of": ["income", "age", "owns_home"]},
]
NOT_IN_SQL = ("proportion", "top", "histogram", "cdf")


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    """The made-up town, and its people once more, others, with a budget in ρ."""
    town = made_up(people=1_200)
    others = made_up(people=1_100)["people"]
    noted = replace(others, name="noted", budget=fp.rho(1), tables={"noted": others.tables["people"]})
    with serve(tmp_path, {**town, "noted": noted}) as found:
        yield found


def ask_for(page: Any, kind: str, of: str | None = None) -> None:
    page.get_by_label("Ask for").select_option(kind)
    if of is not None:
        page.get_by_label("of", exact=True).select_option(of)


def ask(page: Any, spending: str) -> None:
    page.get_by_role("button", name=f"Ask, spending {spending}", exact=True).click()


def test_the_page_offers_every_kind_that_the_server_has(watched: Watched, live: Live) -> None:
    form = watched.sign_in(live.token()).get_by_label("Ask for")
    form.wait_for()  # evaluate_all takes what is there, and there may be nothing yet
    offered = form.locator("option").evaluate_all("all => all.map((one) => one.value)")
    assert set(offered) == set(KINDS) == {each["kind"] for each in QUESTIONS}


def test_every_kind_says_how_exact_it_will_be_in_its_own_unit(watched: Watched, live: Live) -> None:
    page = watched.sign_in(live.token())
    said = page.locator("#quote .exactness")
    for kind, words in (
        (
            "Minimum (nearly)",
            "The answer will be the value of a row near the end, around record 155 from below",
        ),
        ("Median", "at most 78 ranks away"),
        ("Histogram", "Each bar will be within ±30 of the exact one"),
        ("Share up to each value", "on average over the points ±"),
        ("Covariance", "at worst ±660 000 with 1 000, ±66 000 with 10 000"),
        ("Correlation", "if deviations are an eighth of the bounds' widths; more if less."),
    ):
        ask_for(page, kind, "age")
        if kind in ("Covariance", "Correlation"):
            page.get_by_label("and", exact=True).select_option("income")
        expect(said).to_contain_text(words)
    ask_for(page, "Most frequent value", "city")
    expect(said).to_contain_text("at most 44 rows fewer have than the most frequent one")
    ask_for(page, "Most frequent values", "city")
    expect(said).to_contain_text("None of them will be in more than")


def test_a_regression_is_asked_by_form_and_is_an_equation_a_chart_and_a_table(
    watched: Watched, live: Live
) -> None:
    page = watched.sign_in(live.token())
    ask_for(page, "Linear regression", "income")
    expect(page.locator("#quote")).to_contain_text("More ε is more exact")
    page.get_by_label("age", exact=True).check()
    page.get_by_label("owns_home", exact=True).check()
    page.locator("#epsilon").fill("1")
    expect(page.locator("#quote")).to_contain_text(
        "in widths of y for each width of a predictor, if deviations"
    )
    check_accessible(page)
    ask(page, "1")
    answer = page.get_by_role("article", name="Regression of income on age, owns_home in people")
    expect(answer.locator(".equation")).to_contain_text("income ≈ ")
    expect(answer.locator(".equation")).to_contain_text("× owns_home")
    expect(answer.locator("svg.chart").first.locator("title")).to_contain_text("3 terms with their intervals")
    expect(answer.get_by_role("row")).to_have_count(4)
    expect(answer).to_contain_text("Each term on a scale of its own")
    picture(page, "page-regression")
    page.get_by_label("For each").select_option("city: 4 groups")
    ask(page, "1")
    grouped = page.get_by_role("article", name="Regression of income on age, owns_home in people by city")
    expect(grouped.locator(".equation")).to_have_count(4)
    expect(grouped.get_by_role("row")).to_have_count(13)
    check_accessible(page)
    page.set_viewport_size({"width": 375, "height": 812})
    watched.check()
    page.emulate_media(color_scheme="dark")
    check_accessible(page)
    assert live.left() == 3


def test_what_is_most_frequent_is_among_what_is_said_without_the_data(watched: Watched, live: Live) -> None:
    page = watched.sign_in(live.token())
    ask_for(page, "Most frequent values", "city")
    page.get_by_label("how many").fill("2")
    page.locator("#epsilon").fill("0.5")
    ask(page, "0.5")
    answer = page.get_by_role("article", name="Top 2 of city in people")
    expect(answer.get_by_role("row")).to_have_count(3)
    expect(answer.get_by_role("row").nth(1)).to_contain_text("Altdorf")
    ask_for(page, "Most frequent value", "person_id")
    expect(page.locator("form")).to_contain_text("what it may be must not depend on the data")
    page.get_by_label("What it may be").fill("1, 2")
    expect(page.locator("#quote .exactness")).to_contain_text("rows fewer have")
    ask_for(page, "Most frequent value", "owns_home")  # two values, which nobody needs to say
    ask(page, "0.5")
    expect(page.get_by_role("article", name="Mode of owns_home in people").locator(".figure")).to_have_text(
        "false"
    )


def test_what_noise_hides_is_said_beside_the_answers_that_it_hides(watched: Watched, live: Live) -> None:
    page = watched.sign_in(live.token())
    ask_for(page, "Correlation", "age")
    page.get_by_label("and", exact=True).select_option("income")
    page.locator("#epsilon").fill("0.001")
    page.get_by_label("For each").select_option("city: 4 groups")
    for _ in range(3):  # one of 12 such answers is hidden, but for one time in thousands
        ask(page, "0.001")
        expect(page.get_by_role("button", name="Ask, spending")).to_have_attribute("aria-disabled", "false")
    expect(page.locator(".note").first).to_contain_text("noise hides how much it varies: use a larger ε")


def test_a_budget_in_rho_is_asked_at_a_rho_or_at_an_epsilon(watched: Watched, live: Live) -> None:
    page = watched.sign_in(live.token())
    page.get_by_label("Table").select_option("noted")
    quote = page.locator("#quote")
    expect(quote).to_contain_text("Costs ρ 0.005 of noted, which has 1 left.")
    expect(quote).to_contain_text("It would have 0.995 left.")
    expect(quote).to_contain_text("The budget is in ρ (concentrated)")
    page.get_by_label("ρ by slider").focus()
    for _ in range(12):
        page.keyboard.press("ArrowLeft")
    expect(quote).to_contain_text("Costs ρ 0.00005 of noted")
    page.locator("#epsilon").fill("2")
    expect(quote).to_contain_text("A smaller ρ costs less and is less exact.")
    page.locator("#epsilon").fill("0.005")
    ask(page, "0.005")
    answer = page.get_by_role("article", name="Count in noted")
    expect(answer).to_contain_text("UTC · ρ 0.005")
    expect(answer).to_contain_text("Charged ρ 0.005 of noted.")
    page.get_by_label("Asked at").select_option("ε")
    expect(page.locator("#epsilon")).to_have_value("0.1")
    expect(quote).to_contain_text("of noted, which has 0.995 left.")
    check_accessible(page)
    page.get_by_label("Table").select_option("people")
    expect(page.get_by_label("Asked at")).to_have_count(0)
    expect(quote).to_contain_text("Costs 0.1 of people")


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with serve(tmp_path_factory.mktemp("town"), made_up(people=500)) as found:
        yield found


@pytest.fixture(scope="module")
def programs(browser: Any, town: Live) -> Iterator[Any]:
    """What the page copies of a body, in a language."""
    page = browser.new_context().new_page()
    page.goto(town.url)
    yield lambda language, body: page.evaluate(
        "([language, body]) => import('/page/programs.js').then((all) => all[language](body))",
        [language, body],
    )
    page.context.close()


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: "-".join(map(str, [q["kind"], *list(q)[1:]])))
def test_what_is_copied_is_a_program_that_runs(programs: Any, question: dict[str, Any], town: Live) -> None:
    """In Python and for curl the same body; in SQL a statement that can be asked, or why there is none."""
    body = {"table": "people", "epsilon": "0.01", **question}
    token = town.token()
    environment = {**os.environ, "FPINQ_TOKEN": token}
    written = programs("python", body)
    printed = subprocess.run(
        [sys.executable, "-c", written],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert printed.stdout.strip()
    if shutil.which("curl"):
        sent = subprocess.run(
            ["sh", "-c", programs("curl", body)], env=environment, capture_output=True, timeout=60, check=True
        )
        assert "answers" in json.loads(sent.stdout)
    statement = programs("sql", body)
    several = isinstance(question.get("of"), list) and len(question["of"]) > 2
    if question["kind"] in NOT_IN_SQL or "interval" in question or "candidates" in question or several:
        assert statement.startswith("-- ")
        assert statement.endswith(": ask it here, or in Python")
        return
    pytest.importorskip("sqlglot")
    explained = town.send(
        "POST", "/sql", {"statement": f"EXPLAIN {statement}", "epsilon": body["epsilon"]}, token
    )
    assert explained.status == 200, explained.body
    assert json.loads(explained.body)["missing"] == []
