"""Pages of real traces in a headless Chromium: modules, backward, hostile names, and 100,000 ops."""

from __future__ import annotations

import pathlib
import time
from typing import Any

import pytest
from visiting import SCREENS, Visit

torch = pytest.importorskip("torch", reason="torch is not installed")
sherlorch = pytest.importorskip("sherlorch", reason="sherlorch is not installed for this Python")

pytest_plugins = ["browser_fixtures"]

SECONDS_TO_OPEN = 2.0


class LogScores(torch.nn.Module):
    def forward(self, scores: Any) -> Any:
        return torch.log(scores.relu())


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = torch.nn.Sequential(torch.nn.Linear(8, 8), LogScores())
        self.norm = torch.nn.LayerNorm(8)
        self.unused = torch.nn.ModuleList([torch.nn.Linear(8, 8)])

    def forward(self, x: Any) -> Any:
        return self.norm(self.encoder(x))


@pytest.fixture(params=[True, False], ids=["watched", "unwatched"])
def module_page(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> tuple[pathlib.Path, str]:
    torch.manual_seed(0)
    net = Net()
    with sherlorch.trace() as tracker:
        if request.param:
            tracker.watch(net, "net")
        out = net(torch.randn(4, 8))
    return tracker.diagnose(out).to_html(tmp_path / "page.html"), "net" if request.param else "Net"


def test_the_module_tree_shows_the_whole_model_and_where_it_went_bad(
    visit: Visit, module_page: tuple[pathlib.Path, str]
) -> None:
    path, root = module_page
    page = visit.open(path)
    tree = page.locator("#modules")
    labels = [" ".join(text.split()) for text in tree.locator("summary, .leaf").all_inner_texts()]
    assert labels[0].startswith(f"{root} Net"), labels
    assert any(
        text.startswith("1 LogScores, 2 recorded ops, 1 of them not finite ✕ went bad here: log") for text in labels
    )
    assert any(text.startswith("norm LayerNorm") and "passed it on" in text for text in labels)
    assert any(
        text.startswith("unused ModuleList") for text in labels
    )  # it ran nothing and is in the tree all the same
    assert tree.locator(".went-bad").count() == 1
    assert visit.complaints == []


def test_a_backward_culprit_reads_as_in_the_text_report(visit: Visit, tmp_path: pathlib.Path) -> None:
    with sherlorch.trace() as tracker:
        weight = torch.zeros(3, requires_grad=True)
        (weight.sqrt() * 0).sum().backward()
    report = tracker.diagnose(weight.grad)
    culprit = report.culprits[0]
    page = visit.open(report.to_html(tmp_path / "page.html"))
    assert page.locator("h1 .what").inner_text() == culprit.headline
    facts = page.locator(".op-facts").inner_text()
    assert "SqrtBackward0, in it aten::div" in facts
    assert "backward (the line is that of its forward op)" in facts
    assert "inside" not in facts
    assert "the gradient that you asked about" in page.locator(".lead").inner_text()
    assert culprit.help in page.locator(".change").inner_text()


def test_the_route_leads_to_the_step(visit: Visit, module_page: tuple[pathlib.Path, str]) -> None:
    page = visit.open(module_page[0])
    stops = page.locator(".route a")
    assert [text.split(",")[0].split(" in ")[0] for text in stops.all_inner_texts()] == [
        "\u2212Inf log",
        "NaN layer_norm",
    ]
    stops.last.click()
    assert page.locator("#detail .name").inner_text() == "layer_norm"


def test_names_of_a_live_trace_are_text(visit: Visit, tmp_path: pathlib.Path) -> None:
    """A module, its class, a function and a file whose names are markup; the file is there to be read."""
    nasty = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    file = tmp_path / "a<img src=x onerror=alert(1)>{{script}}.py"
    file.write_text("def forward(self, x):\n    return x.log()  # </script><b>\n", encoding="utf-8")
    space: dict[str, Any] = {}
    exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), space)
    nasty_class = type("<svg onload=alert(1)>", (torch.nn.Module,), {"forward": space["forward"]})
    net = torch.nn.Sequential()
    net.add_module(nasty.replace(".", "\u2024"), nasty_class())  # torch allows no dot in a name
    with sherlorch.trace() as tracker:
        tracker.watch(net, "<b>net</b>")
        out = net(torch.zeros(2))
    page = visit.open(tracker.diagnose(out).to_html(tmp_path / "page.html"))
    page.wait_for_timeout(100)
    assert page.title().startswith("sherlorch: log(0.0)")
    heading = page.locator("h1").inner_text()
    assert "a<img src=x onerror=alert(1)>{{script}}.py:2" in heading
    assert "</script><script>" in heading
    assert "<svg onload=alert(1)>" in page.locator("#modules").inner_text()
    assert "# </script><b>" in page.locator(".where .hit").inner_text()
    assert page.locator("main img, main svg, main b b").count() == 0
    assert page.locator("script").count() == 2
    assert visit.complaints == []


def test_a_real_trace_of_a_hundred_thousand_ops_opens_in_two_seconds(
    visit: Visit, tmp_path: pathlib.Path, record_property: Any
) -> None:
    x = torch.ones(4)
    with sherlorch.trace() as tracker:
        x = x - 1
        x = x.log()
        for _ in range(100_000):
            x = x + 1
    asked = time.perf_counter()
    report = tracker.diagnose(x)
    diagnosed = time.perf_counter()
    path = report.to_html(tmp_path / "page.html")
    written = time.perf_counter()
    page = visit.open(path)
    took = page.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd / 1000")
    painted = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime / 1000")
    record_property("seconds_to_open", took)
    print(
        f"100,002 ops: diagnosed in {diagnosed - asked:.2f} s, page of {path.stat().st_size / 1e6:.1f} MB written in "
        f"{written - diagnosed:.2f} s, opened in {took:.2f} s, painted after {painted:.2f} s"
    )
    assert "100,000 ops in the order in which they ran" in page.locator("#timeline .intro").inner_text()
    assert page.evaluate("document.querySelectorAll('*').length") < 3000
    assert took < SECONDS_TO_OPEN
    page.locator("#plot").focus()
    page.keyboard.press("End")
    assert "add" in page.locator("#time-readout").inner_text()


@pytest.mark.parametrize("screen", SCREENS)
def test_a_live_page_fits_its_screen(
    browser: Any, module_page: tuple[pathlib.Path, str], screenshots: pathlib.Path, screen: str
) -> None:
    visit = Visit(browser, **SCREENS[screen])
    page = visit.open(module_page[0])
    assert page.evaluate("document.documentElement.scrollWidth") <= SCREENS[screen]["viewport"]["width"]
    page.screenshot(path=screenshots / f"live-{screen}.png", full_page=True)
    page.context.close()
