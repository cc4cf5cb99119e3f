"""Every python and sh block of our pages is run, in the order of the page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT, run_python

PAGES = ["python", "cli", "trap", "pytest", "logging", "notebook"]
_BLOCK = re.compile(r"^```(python|sh)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _blocks(page: str) -> Iterator[tuple[str, dict[str, str], str]]:
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    for language, options, body in _BLOCK.findall(text):
        yield language, dict(word.split("=", 1) for word in options.split()), body


def _shell(folder: Path, body: str) -> subprocess.CompletedProcess[str]:
    """Each line, with the commands of this environment; the status of the first one that fails."""
    tools = folder / "bin"
    tools.mkdir(exist_ok=True)
    for name, module in (("sherlorch", "sherlorch"), ("pytest", "pytest")):
        tool = tools / name
        plugin = " -p sherlorch.integrations.pytest_plugin" if name == "pytest" and not _installed() else ""
        tool.write_text(f'#!/bin/sh\nexec {sys.executable} -m {module}{plugin} "$@"\n')
        tool.chmod(0o755)
    path = os.pathsep.join([str(tools), str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        ["bash", "-ec", body], cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )


def _installed() -> bool:
    from importlib import metadata

    return any(
        entry.value == "sherlorch.integrations.pytest_plugin" for entry in metadata.entry_points(group="pytest11")
    )


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_run(page: str, tmp_path: Path) -> None:
    session: list[str] = []
    ran_any = False
    for language, options, body in _blocks(page):
        if "file" in options:
            (tmp_path / options["file"]).write_text(body)
        elif language == "python":
            session.append(body)
        else:
            ran_any = True
            ran = _shell(tmp_path, body)
            assert ran.returncode == int(options.get("exit", 0)), f"{body}\n{ran.stdout}\n{ran.stderr}"
    if session:
        ran_any = True
        script = tmp_path / "session.py"
        script.write_text("\n".join(session))
        ran = run_python(str(script), cwd=tmp_path)
        assert ran.returncode == 0, ran.stderr
    assert ran_any


def test_every_option_of_the_command_line_is_documented() -> None:
    from sherlorch.cli._parser import build_parser

    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    run = build_parser()._subparsers._group_actions[0].choices["run"]  # type: ignore[union-attr]
    for action in run._actions:
        for option in action.option_strings:
            if option.startswith("--") and option != "--help":
                assert option in text, option
