"""What several test files of the Python package need."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def run_python(*words: str, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """This Python with these words, in a folder of the test, without the colours of the terminal around it."""
    clean = {key: value for key, value in os.environ.items() if key not in ("FORCE_COLOR", "COLUMNS", "PYTEST_ADDOPTS")}
    return subprocess.run(
        [sys.executable, *words],
        cwd=cwd,
        env={**clean, **(env or {})},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.fixture
def python(tmp_path: Path) -> Run:
    """`python(*words)` runs this Python in the test's own folder."""

    def run(*words: str, env: dict[str, str] | None = None, cwd: Path = tmp_path) -> subprocess.CompletedProcess[str]:
        return run_python(*words, cwd=cwd, env=env)

    return run


@pytest.fixture
def command(python: Run) -> Run:
    """`command(*words)` runs `python -m sherlorch` with these words in the test's own folder."""

    def run(*words: str, **options: object) -> subprocess.CompletedProcess[str]:
        return python("-m", "sherlorch", *words, **options)

    return run
