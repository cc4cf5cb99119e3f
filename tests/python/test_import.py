"""Importing the package: quick, typed, and clear about a torch that does not fit."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
import sherlorch
from conftest import Run

PACKAGE = Path(sherlorch.__file__).parent


def _copy_built_for(folder: Path, torch_version: str | None) -> dict[str, str]:
    """A copy of the package that says it was built against another torch; the environment to import it in."""
    copy = folder / "other" / "sherlorch"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("lib", "include", "share", "*.so", "__pycache__"))
    info = copy / "_build_info.py"
    info.unlink(missing_ok=True)
    if torch_version is not None:
        info.write_text(f'version = "1.0.0"\ntorch_version = "{torch_version}"\n')
    return {"PYTHONPATH": str(copy.parent)}


def _last_line(text: str) -> str:
    return text.strip().splitlines()[-1]


def test_everything_public_is_there() -> None:
    for name in sherlorch.__all__:
        assert getattr(sherlorch, name) is not None
    assert sherlorch.__version__.count(".") == 2
    assert {"trace", "ProvenanceTracker", "OpNode", "DiagnosisReport"} <= set(dir(sherlorch))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        sherlorch.nonsense  # noqa: B018


def test_the_package_is_typed_and_has_its_cmake_files() -> None:
    assert (PACKAGE / "py.typed").exists()
    prefix = Path(sherlorch.cmake_prefix_path)
    assert list(prefix.rglob("sherlorchConfig.cmake")), f"no CMake package below {prefix}"


def test_another_torch_is_refused_in_one_sentence_with_both_versions_and_the_command(
    tmp_path: Path, python: Run
) -> None:
    env = _copy_built_for(tmp_path, "2.9.1+cpu")
    ran = python("-c", "import sherlorch", env=env)
    assert ran.returncode == 1
    line = _last_line(ran.stderr)
    assert line.startswith(
        "ImportError: sherlorch 1.0.0 was built against torch 2.9.1+cpu, but this environment has torch "
    )
    assert "-m pip install" in line
    # The command line says the same without a traceback, and doctor still runs.
    ran = python("-m", "sherlorch", "run", "x.py", env=env)
    assert ran.returncode == 2
    assert ran.stderr.startswith("sherlorch: error: sherlorch 1.0.0 was built against torch 2.9.1+cpu")
    assert "Traceback" not in ran.stderr
    ran = python("-m", "sherlorch", "doctor", env=env)
    assert ran.returncode == 1
    assert "FAULT" in ran.stdout


def test_the_same_minor_of_torch_is_accepted_whatever_its_patch_and_local_version() -> None:
    from sherlorch import _compat

    assert _compat._minor("2.13.0+cpu") == _compat._minor("2.13.4+cu126") != _compat._minor("2.1.3")


def test_a_tree_that_was_never_built_says_how_to_build_it(tmp_path: Path, python: Run) -> None:
    ran = python("-c", "import sherlorch", env=_copy_built_for(tmp_path, None))
    assert ran.returncode == 1
    assert "has no native module" in _last_line(ran.stderr)
    assert "-m pip install ." in _last_line(ran.stderr)


def test_no_torch_is_one_sentence(tmp_path: Path, python: Run) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class NoTorch:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'torch': raise ModuleNotFoundError('No module named torch', name='torch')\n"
        "sys.meta_path.insert(0, NoTorch())\n"
    )
    env = _copy_built_for(tmp_path, "2.13.0+cpu")
    env["PYTHONPATH"] = f"{tmp_path}:{env['PYTHONPATH']}"
    ran = python("-c", "import sherlorch", env=env)
    assert ran.returncode == 1
    line = _last_line(ran.stderr)
    assert "there is no torch in this environment" in line
    assert "pip install torch==2.13.0" in line


def test_import_brings_no_host_along(python: Run) -> None:
    source = (
        "import sys, torch\n"
        "import sherlorch\n"
        "sherlorch.trace\n"
        "heavy = {'rich', 'pytest', 'IPython', 'torch._dynamo', 'tensorboard', 'wandb', 'pdb'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    ran = python("-c", source)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == "[]"


def test_without_torch_loaded_the_import_does_not_load_it(python: Run) -> None:
    ran = python("-c", "import sys, sherlorch, sherlorch.integrations.pytest_plugin; print('torch' in sys.modules)")
    assert ran.stdout == "False\n", ran.stderr


def test_help_needs_no_torch(python: Run) -> None:
    ran = python("-X", "importtime", "-m", "sherlorch", "run", "--help")
    assert ran.returncode == 0
    assert "exit status:" in ran.stdout
    assert " torch\n" not in ran.stderr


def test_this_python_has_the_version_that_was_built_for() -> None:
    assert sys.version_info[:2] == (3, 11)
