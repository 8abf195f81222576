"""The page in a real Chromium: it asks the network for nothing, no script fails, it fits a phone, its buttons copy.

Needs a Chromium that is installed (CHROMIUM=/path/to/it, or on the PATH); skipped where there is none.
With SCREENSHOTS=DIR (`make pages`) each page is kept as pictures, 390 and 1280 wide, light and dark, and on paper.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from postmortem.report import html
from postmortem.report.texts import Texts
from postmortem.scan import Lexicon
from tests.pages import excerpt, page
from tests.report.test_html_hostile import HOSTILE, replaced
from tests.test_fixtures import report_on

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
CHROMIUM = CHROMIUM or shutil.which("google-chrome")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no Chromium is installed (set CHROMIUM=/path/to/it)")

WHOLE = bool(os.environ.get("SCREENSHOTS"))
"""All fixtures, widths and languages; else the few that a normal run has time for."""
NAMES: tuple[str, ...] = (
    "early-step-checkpointing-off",
    "bucket-spike-lived-flux",
    "sampling-mid-run-checkpointing-off",
)
if WHOLE:
    NAMES += ("caching-latents-wan-81-frames", "startup-quantise-other-process", "host-stood-still-137")
    NAMES += ("spill-flux-windows", "no-memory-disk-full", "ok-clean-sdxl", "folder-second-attempt-skips")
WIDTHS = (320, 390, 1280) if WHOLE else (320,)
WATCH = "window.refused = []; document.addEventListener('securitypolicyviolation', e => window.refused.push(e.violatedDirective))"
"""Run before the page: notes what the page's policy refused."""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
    arguments += ["--disable-background-networking", "--disable-component-update"]
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def files(lexicon: Lexicon, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    folder = tmp_path_factory.mktemp("pages")

    def file(name: str, lang: str = "en", raw: str | None = None) -> Path:
        path = folder / f"{name}.{lang}.{'plain' if raw is None else HOSTILE.index(raw)}.html"
        if not path.exists():
            report = report_on(name, lexicon, lang)
            if raw is None:
                text = page(name, report, lexicon)
            else:
                cut = replaced(excerpt(name, report), raw)
                text = html.render(replaced(report, raw), Texts(lexicon.knowledge, lang), cut)
            path.write_text(text, encoding="utf-8")
        return path

    return file


class Visit:
    """A page as a browser shows it, with all that it asked for and all that went wrong in it."""

    def __init__(self, chromium: Any, path: Path, **options: Any) -> None:
        options.setdefault("viewport", {"width": 390, "height": 844})
        self.context = chromium.new_context(**options)
        self.page = self.context.new_page()
        self.asked: list[str] = []
        self.wrong: list[str] = []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("console", lambda message: self.wrong.append(message.text))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("dialog", self._dialog)
        self.page.on("requestfailed", self._failed)
        self.page.add_init_script(WATCH)
        self.page.goto(path.as_uri())

    def _failed(self, request: Any) -> None:
        # what the policy stopped never left; anything else was asked for, answered or not
        if request.failure == "csp":
            self.asked.remove(request.url)

    def _dialog(self, dialog: Any) -> None:
        self.wrong.append("dialog")
        dialog.dismiss()

    def __enter__(self) -> Visit:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()

    @property
    def sticks_out(self) -> int:
        """Pixels by which the page is wider than its window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))


@pytest.mark.parametrize("lang", ["en", "ko"])
@pytest.mark.parametrize("name", NAMES)
def test_a_page_asks_for_nothing_and_fits_a_phone(chromium: Any, files: Any, name: str, lang: str) -> None:
    path = files(name, lang)
    for width in WIDTHS:
        with Visit(chromium, path, viewport={"width": width, "height": 844}) as visit:
            assert visit.asked == [path.as_uri()]
            assert visit.wrong == []
            assert visit.page.evaluate("window.refused") == []
            assert visit.sticks_out <= 0
            visit.page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
            assert visit.sticks_out <= 0


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("lang", ["en", "ko"])
def test_the_first_screen_holds_cause_proof_and_next_action(chromium: Any, files: Any, lang: str, width: int) -> None:
    height = 844 if width == 390 else 800
    with Visit(chromium, files(NAMES[0], lang), viewport={"width": width, "height": height}) as visit:
        for part in ("h1", ".reason", ".proof code", ".act h2", ".act .new"):
            box = visit.page.locator(part).first.bounding_box()
            assert box["y"] >= 0 and box["y"] + box["height"] <= height, part


def test_a_button_copies_its_line(chromium: Any, files: Any) -> None:
    with Visit(chromium, files(NAMES[0]), permissions=["clipboard-read", "clipboard-write"]) as visit:
        visit.page.locator("button.copy").first.click()
        visit.page.wait_for_function("document.getElementById('copied').textContent !== ''")
        assert visit.page.locator("#copied").text_content() == "Copied."
        assert visit.page.evaluate("navigator.clipboard.readText()") == "gradient_checkpointing: true"
        assert visit.wrong == []


def test_a_button_copies_where_the_clipboard_is_out_of_reach(chromium: Any, files: Any) -> None:
    with Visit(chromium, files(NAMES[0]), permissions=["clipboard-read"]) as visit:
        visit.page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined, configurable: true})")
        button = visit.page.locator("button.copy").first
        button.focus()
        visit.page.keyboard.press("Enter")
        assert visit.page.locator("#copied").text_content() == "Copied."
        assert visit.page.evaluate("document.activeElement.className") == "copy done"
        assert visit.page.locator("textarea").count() == 0
        assert visit.wrong == []


def test_without_script_all_is_there_but_the_buttons(chromium: Any, files: Any) -> None:
    with Visit(chromium, files(NAMES[0]), java_script_enabled=False) as visit:
        assert visit.page.locator("button.copy").first.is_hidden()
        assert visit.page.locator("#L141").is_visible()
        visit.page.locator("details summary").first.click()
        assert visit.page.locator("details table").first.is_visible()
        assert visit.asked == [files(NAMES[0]).as_uri()]


def test_the_keyboard_reaches_the_verdict_first(chromium: Any, files: Any) -> None:
    with Visit(chromium, files(NAMES[0])) as visit:
        visit.page.keyboard.press("Tab")
        assert visit.page.evaluate("document.activeElement.getAttribute('href')") == "#verdict"
        assert visit.page.locator(".skip").bounding_box()["y"] >= 0
        visit.page.keyboard.press("Tab")
        assert visit.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"


def test_dark_is_dark_and_paper_is_light_with_all_of_it_open(chromium: Any, files: Any) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    for script in (True, False):
        with Visit(chromium, files(NAMES[0]), color_scheme="dark", java_script_enabled=script) as visit:
            assert visit.page.evaluate(ground) == "rgb(20, 23, 27)"
            visit.page.emulate_media(media="print", color_scheme="dark")
            assert visit.page.evaluate(ground) == "rgb(255, 255, 255)"
            tables = visit.page.locator("details table")
            assert tables.count() > 3
            assert all(tables.nth(index).bounding_box()["height"] > 20 for index in range(tables.count()))


@pytest.mark.parametrize("raw", HOSTILE if WHOLE else HOSTILE[2:5])
def test_hostile_text_does_nothing(chromium: Any, files: Any, raw: str) -> None:
    for width in WIDTHS:
        path = files("sampling-mid-run-checkpointing-off", "en", raw)
        with Visit(chromium, path, viewport={"width": width, "height": 800}) as visit:
            assert visit.asked == [path.as_uri()]
            assert visit.wrong == []
            assert visit.page.evaluate("window.refused") == []
            assert visit.sticks_out <= 0
            visit.page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
            assert visit.sticks_out <= 0


def test_what_is_not_the_pages_own_is_refused(chromium: Any, files: Any, tmp_path: Path) -> None:
    """The policy bites: a script, a style, a picture put into the page do nothing."""
    evil = '<script>document.title = "evil"</script><style>h1 { display: none }</style><img src="https://x.invalid/a.png"></main>'
    path = tmp_path / "evil.html"
    path.write_text(files(NAMES[0]).read_text(encoding="utf-8").replace("</main>", evil), encoding="utf-8")
    with Visit(chromium, path) as visit:
        visit.page.wait_for_function("window.refused.length >= 3")
        assert visit.page.title() != "evil"
        assert visit.page.locator("h1").is_visible()
        assert visit.asked == [path.as_uri()]


@pytest.mark.skipif(not WHOLE, reason="pictures are made where SCREENSHOTS names a folder")
@pytest.mark.parametrize("lang", ["en", "ko"])
@pytest.mark.parametrize("name", NAMES)
def test_pictures_for_people_to_look_at(chromium: Any, files: Any, name: str, lang: str) -> None:
    folder = Path(os.environ["SCREENSHOTS"])
    folder.mkdir(parents=True, exist_ok=True)
    for scheme in ("light", "dark"):
        for width, height in ((390, 844), (1280, 800)):
            size = {"width": width, "height": height}
            with Visit(chromium, files(name, lang), viewport=size, color_scheme=scheme) as visit:
                visit.page.screenshot(path=folder / f"{name}.{lang}.{scheme}.{width}.png")
                visit.page.screenshot(path=folder / f"{name}.{lang}.{scheme}.{width}.whole.png", full_page=True)
    with Visit(chromium, files(name, lang)) as visit:
        visit.page.pdf(path=folder / f"{name}.{lang}.pdf", format="A4")
