"""The tests of sherlorch 0.1.0 itself, fetched from its source package and run against this build, unchanged."""

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from conftest import run_python

_OFFLINE = ("No matching distribution", "Could not find a version", "connection", "Temporary failure", "retries")


def _fetch(folder: Path) -> Path:
    words = ["download", "-q", "--no-deps", "--no-binary", "sherlorch", "sherlorch==0.1.0"]
    fetched = subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", *words, "-d", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    archives = list(folder.glob("sherlorch-0.1.0.tar.gz"))
    if archives:
        return archives[0]
    if any(sign in fetched.stderr for sign in _OFFLINE):
        pytest.skip(f"the registry can't be reached: {fetched.stderr.strip().splitlines()[-1]}")
    raise AssertionError(fetched.stderr)


def test_the_originals_own_tests_pass_unchanged(tmp_path: Path) -> None:
    archive = _fetch(tmp_path)
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path / "source", filter="data")
    # Away from its src folder, so that `import sherlorch` is ours.
    tests = tmp_path / "run"
    shutil.copytree(tmp_path / "source" / "sherlorch-0.1.0" / "tests", tests)
    ran = run_python("-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tests), str(tests), cwd=tests)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "13 passed" in ran.stdout
