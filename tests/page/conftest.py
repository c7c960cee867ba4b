"""A real browser and a server of a made-up town. Without a browser, these tests are skipped, and say so."""

import os
import shutil
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from fpinq.cli.town import made_up
from server.live import Live, serve

WHERE = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]


# Of a module: as long as it runs, so does Playwright's event loop, and other tests have their own.
@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, with a profile of its own that goes with it."""
    playwright = pytest.importorskip("playwright.sync_api", reason="no Playwright: make page")
    found = next(filter(None, map(shutil.which, WHERE)), None)
    if found is None:
        pytest.skip("no Chromium: apt-get install chromium")
    with playwright.sync_playwright() as running:
        chromium = running.chromium.launch(executable_path=found, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    """The made-up town; alice may spend 1 of the clinic's budget."""
    with serve(tmp_path, made_up(people=1_500, caps={"alice": Fraction(1)})) as found:
        yield found


class Watched:
    """A page of the browser, and what must not happen on it."""

    def __init__(self, page: Any, live: Live) -> None:
        self.page, self.live = page, live
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(f"error: {error}"))
        page.on("request", lambda request: self._check(request.url))
        page.on(
            "console",
            lambda message: self.errors.append(message.text) if "Content Security" in message.text else 0,
        )
        page.add_init_script(
            "addEventListener('securitypolicyviolation',"
            " (e) => { (globalThis.violations ??= []).push(e.violatedDirective); })"
        )

    def _check(self, url: str) -> None:
        if not url.startswith((self.live.url, "blob:")):
            self.errors.append(f"asked elsewhere: {url}")

    def check(self) -> None:
        """No error, no violation of the policy, no request elsewhere, nothing beyond the window."""
        assert not self.errors
        assert self.page.evaluate("globalThis.violations ?? []") == []
        wide = self.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert wide[0] <= wide[1], "it scrolls sideways"

    def sign_in(self, token: str) -> Any:
        """With a token, by the form."""
        self.page.goto(self.live.url)
        self.page.get_by_label("Your token").fill(token)
        self.page.get_by_role("button", name="Sign in").click()
        return self.page


@pytest.fixture
def watched(browser: Any, live: Live) -> Iterator[Watched]:
    context = browser.new_context(viewport={"width": 1180, "height": 900}, reduced_motion="reduce")
    context.set_default_timeout(15_000)
    page = Watched(context.new_page(), live)
    yield page
    page.check()
    context.close()


# Where FPINQ_PICTURES=docs/pictures is set, the pictures of the documentation are made again.
PICTURES = os.environ.get("FPINQ_PICTURES")


def picture(page: Any, name: str) -> None:
    if PICTURES:
        from PIL import Image  # comes with matplotlib

        path = Path(PICTURES) / f"{name}.png"
        page.screenshot(path=path, full_page=True)
        with Image.open(path) as found:
            small = found.convert("RGB").quantize(48)
        small.save(path, optimize=True)


def expect(locator: Any) -> Any:
    from playwright.sync_api import expect as asserted

    return asserted(locator, "")


def check_accessible(page: Any, but: str = ".nothing") -> None:
    """axe finds nothing (WCAG 2.2 A and AA, and best practice)."""
    axe = pytest.importorskip("axe_playwright_python", reason="no axe: make page")
    source = (Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
    page.evaluate(source + ";0")
    found = page.evaluate("(but) => axe.run({include: [['html']], exclude: [[but]]})", but)
    assert [(each["id"], [node["target"] for node in each["nodes"]]) for each in found["violations"]] == []
