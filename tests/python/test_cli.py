"""show, html, doctor, and every wrong use of the command line that we could think of."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import sherlorch
import torch
from conftest import Run
from sherlorch.cli import main


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A report that was kept as JSON."""
    with sherlorch.trace() as tracker:
        y = torch.zeros(2).log().sum()
    path = tmp_path / "kept.json"
    tracker.diagnose(y).to_json(path)
    return path


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """`show` and `html` in this process: they change nothing of it, and importing torch anew for each takes long."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        capfd.readouterr()
        status = main(words)
        return subprocess.CompletedProcess(words, status, *capfd.readouterr())

    return run


def _one_line(text: str) -> str:
    lines = text.strip().splitlines()
    assert len(lines) == 1, text
    return lines[0]


def test_show_prints_what_str_gives(command: Run, kept: Path) -> None:
    ran = command("show", "kept.json")
    assert (ran.returncode, ran.stderr) == (0, "")
    report = sherlorch.DiagnosisReport.from_json(kept.read_text())
    assert ran.stdout == report.to_text(width=80) + "\n"
    assert "\x1b" not in ran.stdout
    ran = command("show", "kept.json", "--json")
    assert json.loads(ran.stdout) == json.loads(kept.read_text())


def test_show_colours_only_when_told_that_it_is_a_terminal(command: Run, kept: Path) -> None:
    assert "\x1b[" in command("show", "kept.json", env={"FORCE_COLOR": "1", "TERM": "xterm-256color"}).stdout
    env = {"FORCE_COLOR": "1", "TERM": "xterm-256color", "NO_COLOR": "1"}
    assert "\x1b[" not in command("show", "kept.json", env=env).stdout
    ran = command("html", "kept.json", env=env)
    assert ran.stderr == "sherlorch: Wrote kept.html\n"


def test_show_writes_a_file_and_overwrites_only_by_force(here: Run, kept: Path, tmp_path: Path) -> None:
    ran = here("show", "kept.json", "--output", "out.txt")
    assert (ran.returncode, ran.stdout) == (0, "")
    assert _one_line(ran.stderr) == "sherlorch: Wrote out.txt"
    assert "log" in (tmp_path / "out.txt").read_text()
    ran = here("show", "kept.json", "--output", "out.txt")
    assert ran.returncode == 2
    assert (
        _one_line(ran.stderr) == "sherlorch show: error: --output out.txt exists already; pass --force to overwrite it"
    )
    assert here("show", "kept.json", "--output", "out.txt", "--force").returncode == 0


def test_html_makes_a_page_beside_the_json(here: Run, kept: Path, tmp_path: Path) -> None:
    ran = here("html", "kept.json")
    assert (ran.returncode, ran.stdout) == (0, "")
    assert ran.stderr == "sherlorch: Wrote kept.html\n"
    assert "<html" in (tmp_path / "kept.html").read_text()
    ran = here("html", "kept.json")
    assert ran.returncode == 2
    assert "exists already" in _one_line(ran.stderr)
    assert here("html", "kept.json", "--force").returncode == 0
    assert here("html", "kept.json", "--output", "other.html").returncode == 0


@pytest.mark.parametrize("word", ["show", "html"])
def test_files_that_are_no_reports_are_refused_in_one_line(here: Run, kept: Path, tmp_path: Path, word: str) -> None:
    newer = {**json.loads(kept.read_text()), "version": 99}
    contents = {
        "empty.json": "",
        "cut.json": kept.read_text()[:200],
        "other.json": '{"a": 1}',
        "newer.json": json.dumps(newer),
        "binary.json": "\x00\x01\x02",
    }
    for name, text in contents.items():
        (tmp_path / name).write_text(text)
        ran = here(word, name)
        assert (ran.returncode, ran.stdout) == (2, "")
        assert _one_line(ran.stderr).startswith(f"sherlorch {word}: error: {name}: This ")
    assert "upgrade sherlorch" in here(word, "newer.json").stderr
    assert _one_line(here(word, "missing.json").stderr).endswith("there is no file 'missing.json'; check the name")
    assert "can't read" in _one_line(here(word, ".").stderr)


def test_doctor_finds_this_installation_well(command: Run) -> None:
    ran = command("doctor")
    assert ran.returncode == 0, ran.stdout
    for word in ("sherlorch", "torch here", "forward", "backward", "trap", "dtypes"):
        assert word in ran.stdout
    ran = command("doctor", "--json")
    assert all(entry["ok"] for entry in json.loads(ran.stdout))


def test_the_words_of_the_command_itself(command: Run) -> None:
    ran = command()
    assert ran.returncode == 2
    assert ran.stderr.startswith("usage: sherlorch")
    ran = command("--version")
    assert ran.returncode == 0
    assert ran.stdout.startswith(f"sherlorch {sherlorch.__version__} (torch ")
    for words in (["nonsense"], ["show"], ["html"], ["show", "--nonsense", "x"], ["doctor", "extra"]):
        ran = command(*words)
        assert ran.returncode == 2, words
        assert "error:" in ran.stderr
        assert "Traceback" not in ran.stderr
        assert ran.stdout == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name a script or -m MODULE"),
        (["--json"], "name a script or -m MODULE"),
        (["--"], "name a script or -m MODULE"),
        (["missing.py"], "there is no file 'missing.py'"),
        (["json"], "to run a module: sherlorch run -m json"),
        (["folder"], "'folder' is a folder without a __main__.py"),
        (["-m"], "-m needs the name of a module"),
        (["-m", "no_such_module"], "there is no module 'no_such_module'"),
        (["-m", "no_such_package.part"], "there is no module 'no_such_package.part'"),
        (["-m", "json"], "'json' is a package without a __main__ module"),
        (["-m", ".relative"], "relative module name"),
        (["--bogus", "ok.py"], "unrecognized arguments: --bogus"),
        (["--compile", "never", "ok.py"], "invalid choice: 'never'"),
        (["--keep-going", "--pdb", "ok.py"], "not allowed with argument"),
        (["--ignore", "modul:x", "ok.py"], "'modul:x' that names nothing"),
        (["--output", "taken.txt", "ok.py"], "--output taken.txt exists already; pass --force"),
        (["--output", "no/where.txt", "ok.py"], "lies in a folder that does not exist"),
        (["--output", "folder", "ok.py"], "is a folder; name a file"),
        (["--report", "taken.json", "ok.py"], "--report taken.json exists already"),
        (["--report", "report.txt", "ok.py"], "does not end in .json"),
        (["--output"], "expected one argument"),
    ],
)
def test_wrong_uses_of_run_are_said_and_nothing_is_run(
    command: Run, tmp_path: Path, words: list[str], message: str
) -> None:
    (tmp_path / "ok.py").write_text("open('was_run', 'w')\n")
    (tmp_path / "folder").mkdir()
    for name in ("taken.txt", "taken.json"):
        (tmp_path / name).write_text("mine")
    ran = command("run", *words)
    assert ran.returncode == 2, ran.stderr
    assert message in ran.stderr
    assert "Traceback" not in ran.stderr
    assert ran.stdout == ""
    assert not (tmp_path / "was_run").exists()
    assert (tmp_path / "taken.txt").read_text() == "mine"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_closed_folder_is_said_before_anything_is_run(command: Run, tmp_path: Path) -> None:
    (tmp_path / "ok.py").write_text("open('was_run', 'w')\n")
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    ran = command("run", "--output", "closed/out.txt", "ok.py")
    assert ran.returncode == 2
    assert "permission denied" in ran.stderr
