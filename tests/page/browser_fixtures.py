"""The browser, a page in it, and where screenshots go: `pytest_plugins = ["browser_fixtures"]`."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest
from visiting import SCREENS, Visit, find_chromium, playwright


@pytest.fixture(scope="session")
def screenshots(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Where they go: SHERLORCH_SCREENSHOTS, else pytest's temporary folder."""
    folder = os.environ.get("SHERLORCH_SCREENSHOTS")
    if not folder:
        return tmp_path_factory.mktemp("screenshots")
    path = pathlib.Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    chromium = find_chromium()
    if not chromium:
        pytest.skip("no Chromium: apt-get install chromium, or set SHERLORCH_CHROMIUM")
    with playwright.sync_playwright() as tools:
        opened = tools.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def visit(browser: Any) -> Iterator[Visit]:
    one = Visit(browser, **SCREENS["light"])
    yield one
    one.page.context.close()
