"""Opens the page of made-up diagnoses in a headless Chromium: what it shows, that it is quiet, that it can be walked.

Needs what visiting.py needs, g++ and cmake; skipped with the reason where one of them is missing.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
from typing import Any

import pytest
from visiting import SCREENS, Visit, playwright

pytest_plugins = ["browser_fixtures"]

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ["attention", "distance", "parameter", "loop", "large", "hostile", "finite"]
CULPRIT_PAGES = [name for name in PAGES if name != "finite"]


def embed_resources(folder: pathlib.Path) -> pathlib.Path:
    """What sherlorch_embed_text() of the build does, for the three texts of the page."""
    page = ROOT / "core/report/page"
    words: list[str] = []
    for symbol, ending in [("kPageHtml", "html"), ("kPageCss", "css"), ("kPageJs", "js")]:
        words += ["SYMBOL", symbol, *(str(path) for path in sorted(page.glob(f"*.{ending}")))]
    stem = folder / "core/report/page_resources"
    stem.parent.mkdir(parents=True)
    subprocess.run(
        ["cmake", "-D", "SYMBOLS=" + "|".join(words), "-D", "NAMESPACE=sherlorch",
         "-D", "HEADER=core/report/page_resources.h", "-D", f"STEM={stem}", "-P", str(ROOT / "cmake/embed_text.cmake")],
        check=True,
    )  # fmt: skip
    return stem.with_suffix(".cpp")


def build_maker(folder: pathlib.Path) -> pathlib.Path:
    """Compiles make_pages.cpp against the reports alone: no torch, no library, about twenty seconds."""
    sources = [embed_resources(folder), ROOT / "tests/page/make_pages.cpp"]
    for pattern in ["core/report/*.cpp", "core/report/page/*.cpp"]:
        sources += sorted(path for path in ROOT.glob(pattern) if not path.name.endswith("_test.cpp"))
    sources += [ROOT / name for name in ["core/diagnose/diagnosis.cpp", "core/diagnose/explain_values.cpp",
                                         "core/base/ids.cpp", "core/base/element_set.cpp"]]  # fmt: skip
    flags = ["-std=c++20", "-O1", f"-I{ROOT}", f"-I{folder}"]
    jobs = []
    for number, source in enumerate(sources):
        target = folder / f"{number}.o"
        jobs.append((target, ["g++", *flags, "-c", str(source), "-o", str(target)]))
    for begin in range(0, len(jobs), 2):
        running = [subprocess.Popen(command) for _, command in jobs[begin : begin + 2]]
        if any(process.wait() for process in running):
            pytest.fail("make_pages.cpp or what it needs does not compile")
    maker = folder / "make_pages"
    subprocess.run(["g++", *(str(target) for target, _ in jobs), "-o", str(maker)], check=True)
    return maker


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The folder with the pages; made by the binary in SHERLORCH_MAKE_PAGES, else by one that is compiled here."""
    folder = tmp_path_factory.mktemp("pages")
    maker = os.environ.get("SHERLORCH_MAKE_PAGES")
    if not maker:
        missing = [tool for tool in ("g++", "cmake") if not shutil.which(tool)]
        if missing:
            pytest.skip(f"{' and '.join(missing)} not found, and SHERLORCH_MAKE_PAGES is not set")
        maker = str(build_maker(tmp_path_factory.mktemp("build")))
    subprocess.run([maker, str(folder), str(ROOT / "tests/page/programs")], check=True)
    return folder


@pytest.mark.parametrize("name", PAGES)
def test_page_is_quiet_and_asks_for_nothing(visit: Visit, pages: pathlib.Path, name: str) -> None:
    visit.open(pages / f"{name}.html").wait_for_timeout(100)
    assert visit.complaints == []
    assert visit.requests == [(pages / f"{name}.html").as_uri()]


def test_verdict_answers_what_where_why_and_what_to_change_on_the_first_screen(
    visit: Visit, pages: pathlib.Path
) -> None:
    page = visit.open(pages / "attention.html")
    title = page.locator("h1")
    assert title.inner_text() == "log(0.0) is -inf, at attention.py:19 in model.layer1"
    for part in [".where .hit", ".why .first", ".change .first", ".change .hit"]:
        box = page.locator(part).bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 900, f"{part} is not on the first screen"
    assert "return torch.log(scores.relu())" in page.locator(".where .hit").inner_text()
    assert page.locator(".where .hit u").inner_text() == "log"
    assert page.locator(".why .first").inner_text() == (
        "log(0.0) = -inf at [0, 0, 1, 5]; 377 \u2212Inf of 4,096 elements, in 3 of 4 samples."
    )


def test_backward_culprit_says_so_and_is_marked_uncertain(visit: Visit, pages: pathlib.Path) -> None:
    page = visit.open(pages / "distance.html")
    facts = page.locator(".op-facts").inner_text()
    assert "SqrtBackward0, in it aten::div.Tensor" in facts
    assert "inside" not in facts
    assert page.locator("#verdict .warning").inner_text().startswith("Not certain.")
    assert page.locator("#blind li").count() == 2
    assert "masked_fill" in page.locator("#deliberate").inner_text()


def test_bad_parameter_is_not_blamed_on_the_op(visit: Visit, pages: pathlib.Path) -> None:
    page = visit.open(pages / "parameter.html")
    assert "held nan from the start" in page.locator("h1").inner_text()
    assert "first read at evaluate.py:11" in page.locator("h1").inner_text()
    assert "bad before any op touched it" in page.locator(".lead").inner_text()


def test_finite_target_says_that_nothing_is_wrong(visit: Visit, pages: pathlib.Path) -> None:
    page = visit.open(pages / "finite.html")
    assert page.locator("h1").inner_text().startswith("Nothing is wrong")
    assert not page.locator("#path").is_visible()


def test_path_is_walked_with_the_keyboard(visit: Visit, pages: pathlib.Path) -> None:
    page = visit.open(pages / "attention.html")
    rail = page.locator("#rail")
    rail.focus()
    assert rail.get_attribute("aria-activedescendant") == "row-0"
    for _ in range(5):
        page.keyboard.press("ArrowDown")
    detail = page.locator("#detail")
    assert detail.get_attribute("aria-live") == "polite"
    assert detail.locator(".name").inner_text() == "layer_norm"
    assert "Inf → NaN" in detail.inner_text()
    assert "1,536 NaN of 2,048 elements" in detail.inner_text()
    page.keyboard.press("End")
    assert "its one element is NaN" in detail.inner_text()
    page.keyboard.press("ArrowRight")
    assert rail.get_attribute("aria-activedescendant") == "row-7"
    page.keyboard.press("Home")
    assert detail.locator(".name").inner_text() == "log"


def test_each_culprit_has_its_own_verdict_and_path(visit: Visit, pages: pathlib.Path) -> None:
    page = visit.open(pages / "loop.html")
    assert page.locator("h1").inner_text().startswith("0.0 / 0.0 is nan")
    page.get_by_role("button", name="2. _to_copy").click()
    assert page.locator("h1").inner_text().startswith("1.3e+07 does not fit into float16")
    assert "This line did it 11 times" in page.locator(".lead").inner_text()
    assert page.locator("#detail .name").inner_text() == "_to_copy"
    page.get_by_role("button", name="Look at culprit 3").click()
    assert page.locator("h1").inner_text().startswith("exp(112.4) is inf")


def test_markup_in_names_shows_as_text(visit: Visit, pages: pathlib.Path) -> None:
    page = visit.open(pages / "hostile.html")
    page.wait_for_timeout(100)
    assert page.title().startswith("sherlorch: log(0.0)")
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    heading = page.locator("h1").inner_text()
    assert "</script><script>document.title='owned'</script>" in heading
    assert "<img src=x onerror=" in heading
    assert "{{script}}" in heading
    assert "\\u202e" in heading
    assert "\u202e" not in page.locator("main").inner_text()
    assert "<img src=x" in page.locator("#modules").inner_text()
    assert "</script>" in page.locator(".where .hit").inner_text()
    page.evaluate("document.querySelector('#time-filter').value = 'onerror'")
    page.locator("#time-filter").dispatch_event("input")
    page.wait_for_timeout(300)
    assert "<img src=x" in page.locator("#ops-rows").inner_text()
    assert visit.complaints == []


def test_heat_map_is_read_with_the_keyboard(visit: Visit, pages: pathlib.Path) -> None:
    page = visit.open(pages / "attention.html")
    heat = page.locator("#elements canvas")
    assert "only in rows 0\u201363, 128\u2013255" in (heat.get_attribute("aria-label") or "")
    heat.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert re.match(r"Row 4.7, column 0: (finite|\d+% bad)", page.locator("#elements output").inner_text())


def test_timeline_is_walked_filtered_and_virtual(visit: Visit, pages: pathlib.Path) -> None:
    page = visit.open(pages / "large.html")
    page.locator("#plot").focus()
    readout = page.locator("#time-readout")
    page.keyboard.press("Home")
    page.keyboard.press("n")
    assert readout.inner_text().startswith("#992 ")
    assert "NOT FINITE" in readout.inner_text()
    page.keyboard.press("End")
    assert readout.inner_text().startswith("#100000 ")
    page.locator("#time-bad").check()
    assert page.locator("#time-count").inner_text() == "901 of 100,000 ops"
    page.locator("#time-filter").fill("layers.7.mlp")
    playwright.expect(page.locator("#time-count")).not_to_have_text("901 of 100,000 ops")
    assert int(page.locator("#time-count").inner_text().split()[0]) < 901
    assert page.locator("#ops-rows .row").count() < 60


def test_hundred_thousand_ops_open_quickly_and_stay_folded(
    visit: Visit, pages: pathlib.Path, record_property: Any
) -> None:
    page = visit.open(pages / "large.html")
    took = page.evaluate(
        "() => { const t = performance.getEntriesByType('navigation')[0]; return t.domContentLoadedEventEnd / 1000; }"
    )
    record_property("seconds_to_open", took)
    print(f"a page of 100,000 ops opened in {took:.2f} s")
    # What makes it quick is that the document stays small; the time itself depends on the machine.
    assert page.evaluate("document.querySelectorAll('*').length") < 3000
    assert "100,000 ops" in page.locator("#path .intro").inner_text()
    page.locator("#rail").focus()
    rows = page.locator("#rail [role=option]").count()
    fold = page.locator("#rail .fold").first
    assert "folded" in fold.inner_text() or "left out" in fold.inner_text()
    fold.click()
    assert rows <= page.locator("#rail [role=option]").count() < rows + 120


@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("name", PAGES)
def test_page_fits_its_screen(
    browser: Any, pages: pathlib.Path, screenshots: pathlib.Path, name: str, screen: str
) -> None:
    visit = Visit(browser, **SCREENS[screen])
    page = visit.open(pages / f"{name}.html")
    width = SCREENS[screen]["viewport"]["width"]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.screenshot(path=screenshots / f"{name}-{screen}.png", full_page=True)
    page.context.close()


def luminance(color: str) -> float:
    red, green, blue = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (red, green, blue)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    light, dark = sorted((luminance(a), luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colors_have_the_contrast_of_wcag_aa(visit: Visit, pages: pathlib.Path, theme: str) -> None:
    page = visit.open(pages / "attention.html")
    page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
    names = re.findall(r"--([a-z-]+): #", (ROOT / "core/report/page/page.css").read_text("utf-8"))
    color = {name: page.evaluate(f"style('--{name}')") for name in names}
    color = {name: "#" + "".join(c * 2 for c in v[1:]) if len(v) == 4 else v for name, v in color.items()}
    text = [
        (fore, back) for fore in ("ink", "soft", "link", "nan", "inf", "good") for back in ("paper", "card", "sunken")
    ]
    text += [("nan", "nan-wash"), ("inf", "inf-wash"), ("good", "good-wash"), ("ink", "mark"), ("ink", "inf-wash"),
             ("soft", "mark"), ("soft", "nan-wash"), ("link", "inf-wash"), ("nan", "mark")]  # fmt: skip
    for fore, back in text:
        assert contrast(color[fore], color[back]) >= 4.5, f"{fore} on {back}"
    for fore in ("focus", "line-strong"):
        assert contrast(color[fore], color["paper"]) >= 3, f"{fore} on paper"


def test_theme_button_changes_the_theme(visit: Visit, pages: pathlib.Path) -> None:
    page = visit.open(pages / "attention.html")
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    button = page.get_by_role("button", name="Theme")
    button.click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == before
    button.click()
    assert button.inner_text() == "Theme: dark"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before


def test_structure_for_a_screen_reader(visit: Visit, pages: pathlib.Path) -> None:
    page = visit.open(pages / "loop.html")
    for role in ["banner", "navigation", "main", "contentinfo"]:
        assert page.get_by_role(role).count() == 1, role
    assert page.locator("h1").count() == 1
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll('button, input, canvas, [tabindex="0"], section')]
            .filter((n) => !n.hidden && !n.textContent.trim() && !n.getAttribute('aria-label') && !n.labels?.length)
            .map((n) => n.outerHTML)"""
    )
    assert unnamed == []
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map((n) => n.id)")
    assert len(ids) == len(set(ids))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the verdict"


def test_page_works_in_a_sandboxed_frame(visit: Visit, pages: pathlib.Path) -> None:
    """As a notebook shows it: scripts allowed, no origin, no storage."""
    visit.page.set_content("<iframe sandbox='allow-scripts' style='width:900px;height:600px'></iframe>")
    visit.page.evaluate(
        "(html) => { document.querySelector('iframe').srcdoc = html; }", (pages / "attention.html").read_text("utf-8")
    )
    frame = visit.page.frame_locator("iframe")
    assert frame.locator("h1 .what").inner_text() == "log(0.0) is -inf"
    frame.locator("#theme").click()
    assert frame.locator("#theme").inner_text() == "Theme: light"
    assert visit.complaints == []


def test_verdict_is_there_without_javascript(browser: Any, pages: pathlib.Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((pages / "attention.html").as_uri())
    assert "attention.py:19" in page.locator("h1").inner_text()
    assert "log(0.0) = -inf" in page.locator("noscript").inner_text()
    context.close()
