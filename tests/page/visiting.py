"""A page in a headless Chromium, for the tests of this folder.

Needs the playwright package and a Chromium (`apt-get install chromium`, or its path in SHERLORCH_CHROMIUM).
"""

from __future__ import annotations

import os
import pathlib
import shutil
from typing import Any

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="the playwright package is not installed")

SCREENS: dict[str, dict[str, Any]] = {
    "light": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "color_scheme": "light", "device_scale_factor": 2},
    "wide": {"viewport": {"width": 1600, "height": 1000}, "color_scheme": "light"},
}


def find_chromium() -> str | None:
    names = [os.environ.get("SHERLORCH_CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome"]
    return next((found for name in names if name and (found := shutil.which(name))), None)


class Visit:
    """One page, with everything that it said or asked for."""

    def __init__(self, browser: Any, **screen: Any) -> None:
        self.page = browser.new_context(**screen).new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def open(self, path: pathlib.Path) -> Any:
        self.page.goto(path.as_uri())
        return self.page
