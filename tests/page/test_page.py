"""The page in a real browser: an analyst, an owner, an auditor; on a phone, in the dark, without a mouse."""

import re
import time
import tomllib
from collections.abc import Iterator
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import fpinq
from fpinq.server import DataSet, TableConfig
from fpinq.server.dashboard import load
from page.conftest import Watched, check_accessible, expect, picture
from server.live import Live, Reply, people, serve

FILES = Path(fpinq.__file__).parent / "server/dashboard/files"


# ── an analyst ───────────────────────────────────────────────────────────────────────


def test_an_analyst_sees_the_price_asks_and_sees_the_budget_fall(watched: Watched, live: Live) -> None:
    page = watched.sign_in(live.token())
    check_accessible(page)
    page.get_by_label("Only rows where").fill("age > 17")
    page.get_by_label("Ask for").select_option("Average")
    page.get_by_label("of", exact=True).select_option("income")
    page.get_by_label("For each").select_option("city: 4 groups")
    page.locator("#epsilon").fill("0.2")
    quote = page.locator("#quote")
    expect(quote).to_contain_text("Costs 0.2 of people, which has 5 left.")
    expect(quote).to_contain_text("It would have 4.8 left.")
    expect(quote).to_contain_text("4 groups for the price of one")
    expect(quote).to_contain_text(
        "How exact it is depends on how many rows there are in a group: at worst ±3 200 with 1 000"
    )
    expect(quote).to_contain_text("No answer is more than 1.23 times as likely")
    assert live.left() == 5, "a quote is free"
    page.get_by_role("button", name="Ask, spending 0.2").click()
    answer = page.get_by_role("article", name="Average of income in people by city, where age > 17")
    expect(answer.get_by_role("img").first).to_be_visible()
    expect(answer.get_by_role("row")).to_have_count(5)
    expect(answer).to_contain_text("Charged 0.2 of people.")
    expect(page.get_by_role("article", name="people", exact=True)).to_contain_text("4.8 of 5 left")
    assert live.left() == 5 - Fraction(1, 5)
    page.get_by_label("Ask for").select_option("Histogram")
    page.get_by_label("of", exact=True).select_option("age")
    page.get_by_label("For each").select_option("–")
    page.get_by_label("Bins").fill("22")
    page.locator("#epsilon").fill("0.05")
    page.get_by_role("button", name="Ask, spending 0.05").click()
    expect(page.get_by_role("article", name="Histogram of age in people, where age > 17")).to_be_visible()
    check_accessible(page)
    picture(page, "page-analyst")
    page.reload()  # which costs nothing
    expect(
        page.get_by_role("article", name="Average of income in people by city, where age > 17")
    ).to_be_visible()
    assert live.left() == 5 - Fraction(1, 4)


def test_truncation_is_said_before_and_after_and_the_derivation_is_drawn(
    watched: Watched, live: Live
) -> None:
    page = watched.sign_in(live.token("bob"))
    page.emulate_media(color_scheme="dark")
    page.get_by_label("Table").select_option("clinic.visits")
    page.get_by_label("For each").select_option("month: 12 groups")
    page.locator("#epsilon").fill("0.01")
    said = (
        "Of each person_id, at most 5 rows of visits are in it: the first in the order of its columns. "
        "What that leaves out is in no interval."
    )
    expect(page.locator("#quote")).to_contain_text(said)
    expect(page.locator("#quote")).to_contain_text(
        "One person_id can touch up to 5 of these rows, so the price is 5 times ε."
    )
    page.get_by_role("button", name="Ask, spending 0.05").click()
    answer = page.get_by_role("article", name="Count in clinic.visits by month")
    expect(answer).to_contain_text(said)
    answer.locator("summary", has_text="How it was made").click()
    expect(answer.locator("svg.derivation title")).to_contain_text("× 5: so many rows of one person_id")
    check_accessible(page)
    picture(page, "page-dark")


def test_what_is_spent_is_refused_before_and_after(watched: Watched, live: Live) -> None:
    page = watched.sign_in(live.token())
    page.locator("#epsilon").fill("6")
    expect(page.locator("#quote")).to_contain_text("Would be refused: it costs 6 and people has 5 left.")
    button = page.get_by_role("button", name="Ask, spending 6")
    expect(button).to_have_attribute("aria-disabled", "true")
    button.click(force=True)
    page.get_by_label("Table").select_option("clinic.visits")
    page.locator("#epsilon").fill("0.25")
    expect(page.locator("#quote")).to_contain_text("it costs 1.25 and your share of clinic has 1 left")
    page.get_by_label("Table").select_option("people")
    page.locator("#epsilon").fill("4.9")
    ready = page.get_by_role("button", name="Ask, spending 4.9")
    expect(ready).to_have_attribute("aria-disabled", "false")
    spent = live.send(
        "POST", "/questions", {"table": "people", "kind": "count", "epsilon": 1}, live.token("bob")
    )
    assert spent.status == 200
    ready.click()  # others were faster
    expect(page.get_by_role("alert").last).to_contain_text(
        "Refused, and nothing was charged: it costs 4.9 and people has 4 left."
    )
    assert live.left() == 4
    check_accessible(page)


def test_the_first_mistake_is_said_where_it_is(watched: Watched, live: Live) -> None:
    page = watched.sign_in(live.token())
    where = page.get_by_label("Only rows where")
    where.fill("agee > 17")
    expect(page.locator("#where-wrong")).to_contain_text("did you mean 'age'?")
    expect(where).to_have_attribute("aria-invalid", "true")
    where.fill("age > 17")
    expect(where).to_have_attribute("aria-invalid", "false")
    page.locator("#epsilon").fill("much")
    expect(page.locator("form")).to_contain_text("is not a number")
    expect(page.get_by_role("button", name="Ask")).to_have_attribute("aria-disabled", "true")


def test_everything_goes_without_a_mouse(watched: Watched, live: Live) -> None:
    page = watched.page
    page.goto(live.url)
    page.get_by_label("Your token").focus()
    page.keyboard.type(live.token())
    page.keyboard.press("Enter")
    expect(page.locator("#quote")).to_contain_text("Costs 0.1")
    page.get_by_label("ε by slider").focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#quote")).to_contain_text("Costs 0.07")
    page.locator("#epsilon").focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent.trim()") == "Ask, spending 0.07"
    page.keyboard.press("Enter")
    expect(page.get_by_role("article", name="Count in people")).to_be_visible()
    assert page.evaluate("document.activeElement.type") == "submit", "the focus stays where it was"
    assert live.left() == 5 - Fraction(7, 100)


def test_a_question_can_be_taken_elsewhere(watched: Watched, live: Live) -> None:
    page = watched.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=live.url)
    watched.sign_in(live.token())
    page.get_by_label("Ask for").select_option("Average")
    page.get_by_label("of", exact=True).select_option("age")
    page.get_by_label("For each").select_option("city: 4 groups")
    page.get_by_role("button", name="Ask, spending 0.1").click()
    answer = page.get_by_role("article", name="Average of age in people by city")
    answer.get_by_text("The same in Python").click()
    answer.get_by_role("button", name="SQL").click()
    expect(answer.locator("pre")).to_have_text(
        "SELECT city, AVG(age)\nFROM people\nGROUP BY city\n-- epsilon = 0.1"
    )
    answer.get_by_role("button", name="Copy").click()
    expect(answer.get_by_role("status")).to_have_text("Copied.")
    assert page.evaluate("navigator.clipboard.readText()").startswith("SELECT city")
    answer.get_by_role("button", name="curl").click()
    expect(answer.locator("pre")).to_contain_text(f"curl -s '{live.url}/questions'")
    with page.expect_download() as download:
        answer.get_by_role("button", name="CSV file").click()
    text = Path(download.value.path()).read_text(encoding="utf-8")
    assert text.startswith("city,average_age,low,high,standard_error")


def test_a_statement_is_explained_asked_and_there_after_a_reload(watched: Watched, live: Live) -> None:
    pytest.importorskip("sqlglot")
    page = watched.sign_in(live.token())
    page.get_by_role("button", name="In SQL").click()
    page.get_by_label("Statement").fill("SELECT city, AVG(age) AS age FROM people GROUP BY citty")
    expect(page.locator("#explained")).to_contain_text("citty")
    page.get_by_label("Statement").fill("SELECT city, AVG(age) AS age FROM people GROUP BY city")
    expect(page.get_by_label("Explanation")).to_contain_text("scaling factor")
    assert live.left() == 5
    page.get_by_role("button", name="Ask, at ε 0.1").click()
    answer = page.get_by_role("article", name="SELECT city")
    expect(answer.get_by_role("row")).to_have_count(5)
    expect(answer).to_contain_text("Charged 0.1 of people.")
    check_accessible(page)
    page.reload()
    expect(page.get_by_role("article", name="SELECT city").get_by_role("row")).to_have_count(5)
    assert live.left() == 5 - Fraction(1, 10)


# ── a phone ──────────────────────────────────────────────────────────────────────────


def test_a_phone_shows_everything_in_one_column(watched: Watched, live: Live) -> None:
    page = watched.page
    page.set_viewport_size({"width": 375, "height": 812})
    watched.sign_in(live.token())
    page.get_by_label("For each").select_option("city: 4 groups")
    page.get_by_role("button", name="Ask, spending 0.1").click()
    expect(
        page.get_by_role("article", name="Count in people by city").get_by_role("img").first
    ).to_be_visible()
    for control in page.locator("form select, form input:not([type=range]), form button.main").all():
        assert control.bounding_box()["height"] >= 40, "a finger finds it"
    watched.check()
    check_accessible(page)
    picture(page, "page-phone")


# ── an owner and an auditor ──────────────────────────────────────────────────────────


def asked(live: Live, who: str, epsilon: object) -> Reply:
    question = {"table": "people", "kind": "count", "epsilon": epsilon}
    return live.send("POST", "/questions", question, live.token(who))


def test_an_owner_watches_freezes_and_thaws(watched: Watched, live: Live) -> None:
    asked(live, "alice", "1/2")
    asked(live, "bob", 1)
    page = watched.sign_in(live.token("olga", "owner"))
    mine = page.get_by_role("article", name="people", exact=True)
    expect(mine).to_contain_text("3.5 of 5 left")
    expect(mine.get_by_role("row", name=re.compile("alice 0.5"))).to_be_visible()
    expect(mine.get_by_role("row", name=re.compile("bob 1 "))).to_be_visible()
    rows = page.locator(".entries tbody tr")
    expect(rows.first).to_contain_text("answer to")
    asked(live, "carol", "1/4")  # as it happens
    expect(page.locator(".entries")).to_contain_text("carol/")
    expect(mine).to_contain_text("3.25 of 5 left")
    mine.get_by_role("button", name="Freeze people").click()
    expect(mine).to_contain_text("frozen")
    assert asked(live, "alice", "1/4").code == "frozen"
    expect(rows.first).to_contain_text("freeze people")
    check_accessible(page)
    picture(page, "page-owner")
    mine.get_by_role("button", name="Thaw people").click()
    expect(mine.get_by_role("button", name="Freeze people")).to_be_visible()
    assert asked(live, "alice", "1/4").status == 200


def test_an_auditor_finds_entries_and_replays_them(watched: Watched, live: Live) -> None:
    asked(live, "alice", "1/2")
    asked(live, "bob", 1)
    page = watched.sign_in(live.token("ann", "auditor"))
    expect(page.get_by_role("button", name="Freeze people")).to_have_count(0)
    rows = page.locator(".entries tbody tr")
    expect(rows.first).to_be_visible()
    page.get_by_label("Analyst").fill("bob")
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text("bob/")
    page.get_by_role("button", name="Replay all entries").click()
    expect(page.locator(".verified")).to_contain_text("entries of 2 sessions follow from each other")
    head = live.house.ledger.head()
    expect(page.locator(".hash")).to_have_text(head.hash)
    check_accessible(page)


# ── hostile names, and things that go wrong ──────────────────────────────────────────

MARKUP = "<img src=x onerror=\"globalThis.broken='yes'\"><script>globalThis.broken='yes'</script>'`${1}"


@pytest.fixture
def hostile(tmp_path: Path) -> Iterator[Live]:
    rows = [{MARKUP: i % 2, "age": i, "it's": MARKUP} for i in range(50)]
    columns: Any = {
        MARKUP: {"keys": [0, 1], "description": MARKUP},
        "it's": {"keys": [MARKUP, "b"], "max_length": 200},
    }
    table = TableConfig(rows, columns=columns, description=MARKUP)
    with serve(
        tmp_path, {MARKUP: DataSet(MARKUP, Fraction(5), {MARKUP: table}, description=MARKUP)}
    ) as found:
        yield found


def test_names_full_of_markup_are_text(browser: Any, hostile: Live) -> None:
    page = browser.new_context().new_page()
    watched = Watched(page, hostile)
    watched.sign_in(hostile.token(MARKUP[:90]))
    page.get_by_label("For each").select_option("it's: 2 groups")
    page.get_by_label("Only rows where").fill('"' + MARKUP.replace('"', '""') + '" = 1')
    page.get_by_role("button", name="Ask, spending 0.1").click()
    expect(page.locator("article.answer").first).to_contain_text("<script>")
    assert hostile.left(MARKUP) == 5 - Fraction(1, 10)
    owner = browser.new_context().new_page()
    watching = Watched(owner, hostile)
    watching.sign_in(hostile.token("olga", "owner"))
    expect(owner.locator(".entries")).to_contain_text("onerror")
    for one in (watched, watching):
        assert one.page.evaluate("globalThis.broken") is None
        assert one.page.locator("main img, main script").count() == 0
        one.check()
        one.page.context.close()


def test_a_token_that_is_none_or_has_ended_is_said(watched: Watched, live: Live) -> None:
    page = watched.sign_in("fpq_nobody")
    expect(page.get_by_role("alert")).to_contain_text("This token is not known, has ended or was revoked")
    token = live.token()
    page.get_by_label("Your token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("#quote")).to_contain_text("Costs")
    live.house.tokens.revoke(token.split("_")[1])
    page.locator("#epsilon").fill("0.3")
    expect(page.get_by_role("alert").first).to_contain_text(
        "This token is not known, has ended or was revoked"
    )
    expect(page.get_by_label("Your token")).to_be_visible()
    watched.errors.clear()  # the browser notes the status


def test_a_server_that_is_gone_is_said_and_nothing_is_asked_twice(browser: Any, tmp_path: Path) -> None:
    page = browser.new_context().new_page()
    with serve(tmp_path, people(1)) as live:
        Watched(page, live).sign_in(live.token())
        expect(page.get_by_role("button", name="Ask, spending 0.1")).to_have_attribute(
            "aria-disabled", "false"
        )
    page.get_by_role("button", name="Ask, spending 0.1").click()
    expect(page.get_by_role("alert").first).to_contain_text("No reply from the server. Is it running?")
    page.context.close()


def test_a_server_of_a_newer_version_is_said(browser: Any, live: Live) -> None:
    page = browser.new_context().new_page()
    page.route("**/me", lambda route: route.fulfill(status=200, body="{}", headers={"Fpinq-Wire": "99"}))
    Watched(page, live).sign_in(live.token())
    expect(page.get_by_role("alert").first).to_contain_text(
        "newer version than this page: load the page again"
    )
    page.context.close()


def test_the_policy_forbids_what_the_page_does_not_do(browser: Any, live: Live) -> None:
    """So that no violation means something in the tests above."""
    page = browser.new_context().new_page()
    watched = Watched(page, live)
    page.goto(live.url)
    tried = page.evaluate(
        """() => {
          const script = document.createElement('script');
          let refused = 0;
          try { script.textContent = 'globalThis.broken = 1'; } catch { refused += 1; }
          try { document.body.innerHTML = '<b>x</b>'; } catch { refused += 1; }
          document.body.setAttribute('style', 'color: red');
          return [refused, globalThis.broken];
        }"""
    )
    assert tried == [2, None]
    assert page.evaluate("fetch('https://example.invalid/').then(() => 'sent', () => 'refused')") == "refused"
    assert {"style-src-attr", "connect-src"} <= set(page.evaluate("globalThis.violations"))
    assert not [error for error in watched.errors if error.startswith("asked elsewhere")]
    page.context.close()


def test_a_token_in_the_address_signs_in_and_is_not_left_there(watched: Watched, live: Live) -> None:
    watched.page.goto(f"{live.url}/#token={live.token()}")
    expect(watched.page.locator("#quote")).to_contain_text("Costs")
    assert watched.page.url == f"{live.url}/"


def test_the_first_paint_is_soon_also_with_a_quantum(browser: Any, tmp_path: Path) -> None:
    with serve(tmp_path, people(1), quantum_seconds=Fraction(1, 2)) as live:
        times = []
        for _ in range(3):
            page = browser.new_context().new_page()
            page.goto(live.url)
            page.get_by_label("Your token").wait_for()
            times.append(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
            page.context.close()
    assert min(times) < 500, times


def test_the_http_interface_is_described_without_another_address(watched: Watched, live: Live) -> None:
    watched.page.goto(f"{live.url}/docs")
    expect(watched.page.get_by_role("heading", name="POST /questions")).to_be_visible()
    check_accessible(
        watched.page, but=".operation ~ .operation"
    )  # one is like the others, and there are many


# ── files ────────────────────────────────────────────────────────────────────────────


def test_what_others_wrote_is_as_they_wrote_it() -> None:
    (vendored,) = tomllib.loads((FILES / "vendor/VENDORED.toml").read_text(encoding="utf-8")).values()
    assert sha256((FILES / "vendor/lit-html.js").read_bytes()).hexdigest() == vendored["sha256"]
    assert "BSD 3-Clause" in (FILES / "vendor/lit-html.LICENSE").read_text(encoding="utf-8")


def test_every_module_is_asked_for_at_once() -> None:
    listed = re.findall(r'modulepreload" href="([^"]+)"', (FILES / "index.html").read_text(encoding="utf-8"))
    modules = {f"/page/{path.relative_to(FILES).as_posix()}" for path in FILES.rglob("*.js")} - {
        "/page/docs.js"
    }
    assert set(listed) == modules
    assert set(listed) <= load().keys()


def test_no_file_names_another_address_or_has_code_in_its_markup() -> None:
    for path in [*FILES.glob("*"), *FILES.glob("views/*")]:
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text), path
            assert not re.search(r"\beval\(|innerHTML|new Function|unsafe|style=\$?[\"{]|<script>", text), (
                path
            )


def test_the_page_is_replied_at_once_whatever_the_quantum_and_all_else_is_not(tmp_path: Path) -> None:
    with serve(tmp_path, people(1), quantum_seconds=Fraction(1)) as live:
        began = time.monotonic()
        first = live.send("GET", "/")
        assert time.monotonic() - began < 0.8
        assert (first.status, first.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert "require-trusted-types-for 'script'" in first.headers["content-security-policy"]
        again = live.send("GET", "/", If_None_Match=first.headers["etag"])
        assert (again.status, again.body) == (304, b"")
        zipped = live.send("GET", "/page/main.js", Accept_Encoding="gzip")
        assert zipped.headers["content-encoding"] == "gzip"
        assert live.send("HEAD", "/").body == b""
        for method, path in (("GET", "/page/nothing.js"), ("GET", "/page/../main.js"), ("POST", "/")):
            began = time.monotonic()
            assert live.send(method, path).status in (404, 405)
            assert time.monotonic() - began >= 0.95


def test_an_owner_may_have_no_page(tmp_path: Path) -> None:
    with serve(tmp_path, people(1), page=False) as live:
        assert live.send("GET", "/").status == 404
        assert live.send("GET", "/docs").status == 404
