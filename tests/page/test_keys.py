"""Groups that nobody listed, on the page: offered where a column's keys are not public, quoted, found."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import fpinq as fp
from fpinq.cli.town import made_up
from page.conftest import Watched, check_accessible, expect, picture
from server.live import Live, serve

KEYS = Fraction(1, 10**6)


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    """The made-up town, where nobody listed its cities; its people have a δ for keys, the clinic has none."""
    town = made_up(people=1_500)
    people = town["people"]
    table = people.tables["people"]
    known = {name: of for name, of in table.columns.items() if name != "city"}
    unlisted = replace(table, columns=known)
    town["people"] = replace(
        people,
        budget=fp.approximate(5, KEYS, KEYS),
        tables={"people": unlisted},
        keys_caps={"bob": KEYS / 10},
    )
    with serve(tmp_path, town) as found:
        yield found


def find_by(page: Any, way: str) -> None:
    page.get_by_label("For each").select_option("city")
    page.get_by_label("Groups", exact=True).select_option(way)


def test_groups_are_found_at_a_delta_that_the_quote_says(watched: Watched, live: Live) -> None:
    page = watched.sign_in(live.token())
    expect(page.get_by_role("article", name="people")).to_contain_text(
        "δ for groups that nobody listed: 1e-6 of 1e-6 left"
    )
    find_by(page, "find them: needs δ")
    page.locator("#epsilon").fill("1")
    quote = page.locator("#quote")
    expect(page.get_by_label("δ, to find them")).to_have_value("1e-7")
    expect(quote).to_contain_text(
        "Shown are groups whose noisy counts reach 17: one of 19 rows 95 times in 100."
    )
    expect(quote).to_contain_text("Costs δ 1e-7 of people, which has 1e-6 left for groups.")
    expect(quote).to_contain_text("but for a chance of δ")
    check_accessible(page)
    picture(page, "page-keys")
    page.get_by_role("button", name="Ask, spending 1", exact=True).click()
    answer = page.get_by_role("article", name="Count in people by city")
    expect(answer).to_contain_text("Bergen")
    expect(answer).to_contain_text("Charged 1 of people and δ 1e-7 of people.")
    expect(page.get_by_role("article", name="people", exact=True)).to_contain_text("9e-7 of 1e-6 left")
    assert live.left() == 4
    page.set_viewport_size({"width": 375, "height": 812})
    watched.check()


def test_something_else_is_asked_of_groups_that_are_found_first(watched: Watched, live: Live) -> None:
    page = watched.sign_in(live.token())
    page.get_by_label("Ask for").select_option("Average")
    page.get_by_label("of", exact=True).select_option("age")
    find_by(page, "find them: needs δ")
    page.locator("#epsilon").fill("1")
    expect(page.locator("#find-help")).to_contain_text("a question of its own, at the same ε 1")
    page.get_by_role("button", name="Ask, spending 2", exact=True).click()
    expect(page.get_by_role("article", name="Average of age in people by city")).to_contain_text("Bergen")
    assert live.left() == 3
    watched.check()


def test_without_a_delta_groups_are_found_among_all_of_their_kind(watched: Watched, live: Live) -> None:
    page = watched.sign_in(live.token())
    find_by(page, "find them among all of their kind")
    page.locator("#epsilon").fill("1")
    expect(page.locator("#quote")).to_contain_text("At most 1/1000 of them are expected to be nobody’s.")
    page.get_by_text("The same in Python, SQL or curl").first.click()
    page.get_by_role("button", name="SQL", exact=True).first.click()
    expect(page.get_by_label("Program").first).to_contain_text("/*+ domain(city, 32) */")
    page.get_by_role("button", name="Ask, spending 1", exact=True).click()
    expect(page.get_by_role("article", name="Count in people by city")).to_contain_text("Bergen")
    watched.check()


def test_a_delta_that_is_none_or_too_much_is_said_and_nothing_is_charged(
    watched: Watched, live: Live
) -> None:
    page = watched.sign_in(live.token("bob"))
    expect(page.get_by_role("article", name="people")).to_contain_text("1e-7 of 1e-7 left for you")
    find_by(page, "find them: needs δ")
    expect(page.locator("#quote")).to_contain_text("Costs")
    page.get_by_label("δ, to find them").fill("1e-5")
    expect(page.locator("#quote")).to_contain_text(
        "Would be refused: it costs δ 1e-5 and people has 1e-7 left for groups."
    )
    page.get_by_label("δ, to find them").fill("2")
    expect(page.locator("form")).to_contain_text("δ must be less than 1")
    assert live.left() == 5
    watched.check()


def test_only_ways_that_a_data_set_has_are_offered(watched: Watched, live: Live) -> None:
    page = watched.sign_in(live.token())
    page.get_by_label("For each").select_option("income")
    expect(page.get_by_label("Groups separated by commas")).to_be_visible()
    page.get_by_label("Table").select_option("clinic.visits")
    page.get_by_label("For each").select_option("person_id")
    ways = page.get_by_label("Groups", exact=True).locator("option")
    expect(ways).to_have_text(["those that I list", "find them among all of their kind"])
    watched.check()


def test_a_statement_finds_groups_at_a_delta_beside_it(watched: Watched, live: Live) -> None:
    page = watched.sign_in(live.token())
    page.get_by_role("button", name="In SQL").click()
    page.get_by_label("Statement").fill("SELECT city, COUNT(*) AS n FROM people GROUP BY city")
    page.get_by_label("ε, the privacy to spend").fill("1")
    expect(page.locator("#explained")).to_contain_text("Or find them: at a δ")
    page.get_by_label("δ, to find groups that nobody listed").fill("1e-7")
    expect(page.locator("#explained")).to_contain_text("found at δ = 1e-07 at ε = 1")
    page.get_by_role("button", name="Ask, at ε 1").click()
    expect(page.get_by_role("region", name="The rows of")).to_contain_text("Bergen")
    assert live.left() == 4
    watched.check()
