"""`pytest --sherlorch`, by running pytest in pytest."""

from __future__ import annotations

import importlib.util
from importlib import metadata

import pytest

pytest_plugins = ["pytester"]

_TESTS = """
    import pytest, torch

    def test_fails_on_nan():
        x = torch.zeros(3)
        y = x / x  # guilty
        total = y.sum()
        assert total == 0

    def test_passes_but_makes_inf():
        assert torch.zeros(1).log().shape == (1,)

    def test_is_fine():
        assert torch.ones(1).log() == 0

    def test_fails_for_another_reason():
        assert 1 == 2

    @pytest.mark.nonfinite_ok
    def test_means_it():
        assert torch.zeros(1).log().isinf().all()
"""


def _arguments() -> list[str]:
    """Load the plugin by hand where the package is not installed with its entry point."""
    installed = any(
        entry.value == "sherlorch.integrations.pytest_plugin" for entry in metadata.entry_points(group="pytest11")
    )
    return [] if installed else ["-p", "sherlorch.integrations.pytest_plugin"]


def _run(pytester: pytest.Pytester, *words: str) -> pytest.RunResult:
    return pytester.runpytest_subprocess(*_arguments(), "-p", "no:cacheprovider", *words)


@pytest.fixture
def tests(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(test_it=_TESTS)
    return pytester


def test_it_is_off_by_default(tests: pytest.Pytester) -> None:
    result = _run(tests)
    result.assert_outcomes(passed=3, failed=2)
    assert "sherlorch diagnosis" not in result.stdout.str()
    assert "non-finite values" not in result.stdout.str()


def test_a_failing_test_gets_the_diagnosis_of_what_its_frames_hold(tests: pytest.Pytester) -> None:
    result = _run(tests, "--sherlorch")
    result.assert_outcomes(passed=3, failed=2)
    text = result.stdout.str()
    result.stdout.fnmatch_lines(["*- Captured sherlorch call -*"])
    assert text.count("- Captured sherlorch call -") == 1  # not for the failure that has nothing to do with it
    assert "test_it.py:5" in text
    assert "div" in text
    result.stdout.fnmatch_lines(["test_it.py::test_fails_on_nan: *", "test_it.py::test_passes_but_makes_inf: *"])
    assert "test_means_it:" not in text
    assert "test_is_fine:" not in text


def test_strict_fails_a_test_on_its_guilty_line(tests: pytest.Pytester) -> None:
    result = _run(tests, "--sherlorch-strict")
    result.assert_outcomes(passed=2, failed=3)
    result.stdout.fnmatch_lines(["*NonFiniteError*", "FAILED test_it.py::test_passes_but_makes_inf*"])


def test_strict_is_not_fooled_by_a_test_that_catches(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import torch
        def test_catches():
            try:
                torch.zeros(1).log()
            except FloatingPointError:
                pass
        """
    )
    _run(pytester, "--sherlorch-strict").assert_outcomes(failed=1)


def test_ignore_lets_an_op_pass(tests: pytest.Pytester) -> None:
    result = _run(tests, "--sherlorch-strict", "--sherlorch-ignore=aten::log")
    result.assert_outcomes(passed=3, failed=2)


def test_a_wrong_ignore_is_a_usage_error(tests: pytest.Pytester) -> None:
    result = _run(tests, "--sherlorch", "--sherlorch-ignore=modul:x")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--sherlorch: ignore has an entry 'modul:x' that names nothing*"])


def test_the_marker_is_known_also_without_the_option(tests: pytest.Pytester) -> None:
    result = _run(tests, "--strict-markers", "-k", "means_it")
    result.assert_outcomes(passed=1, deselected=4)
    result = _run(tests, "--markers")
    result.stdout.fnmatch_lines(["@pytest.mark.nonfinite_ok*"])


@pytest.mark.skipif(importlib.util.find_spec("xdist") is None, reason="pytest-xdist is not installed")
def test_under_xdist_sections_and_summary_come_from_the_workers(tests: pytest.Pytester) -> None:
    result = _run(tests, "--sherlorch", "-n", "2")
    result.assert_outcomes(passed=3, failed=2)
    result.stdout.fnmatch_lines(["*- Captured sherlorch call -*"])
    result.stdout.fnmatch_lines(["test_it.py::test_passes_but_makes_inf: *"])
