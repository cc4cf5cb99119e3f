"""pytest: `pytest --sherlorch` explains tests whose tensors turn non-finite.

Off unless asked for; until then it imports neither torch nor the native module. Each test's call
runs in a trace. A test that fails gets a section with the diagnosis of the non-finite tensors in
its frames, or of the first op that made such a value by accident. With --sherlorch-strict such an
op fails the test, on its own line. `@pytest.mark.nonfinite_ok` leaves a test alone. Works under
pytest-xdist: what the workers find travels with their reports.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from sherlorch._report import DiagnosisReport
    from sherlorch._tracker import ProvenanceTracker

_SECTION = "sherlorch"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add our options."""
    group = parser.getgroup("sherlorch", "where a NaN or an infinity came from")
    group.addoption(
        "--sherlorch",
        action="store_true",
        help="trace each test, and show who made its non-finite values",
    )
    group.addoption(
        "--sherlorch-strict",
        action="store_true",
        help="fail a test in which an op makes a non-finite value by accident (implies --sherlorch)",
    )
    group.addoption(
        "--sherlorch-ignore",
        action="append",
        default=[],
        metavar="WHAT",
        help="let pass: an operator (aten::log), module:PATTERN or file:PATTERN; may be repeated",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and the tracing itself if it was asked for."""
    config.addinivalue_line(
        "markers",
        "nonfinite_ok: this test makes NaN or infinities on purpose; --sherlorch leaves it alone",
    )
    strict = config.getoption("--sherlorch-strict")
    if not (strict or config.getoption("--sherlorch")):
        return
    from sherlorch import _compat
    from sherlorch._suppress import Suppressions

    try:
        _compat.require_matching_torch()
        Suppressions(config.getoption("--sherlorch-ignore"))
    except (ImportError, ValueError) as error:
        raise pytest.UsageError(f"--sherlorch: {error}") from None
    config.pluginmanager.register(_Plugin(config, strict=strict), "sherlorch-tracing")


class _Plugin:
    """Traces the tests; registered only when asked for."""

    def __init__(self, config: pytest.Config, *, strict: bool) -> None:
        self._strict = strict
        self._ignore: list[str] = config.getoption("--sherlorch-ignore")
        self._verdicts: list[tuple[str, str]] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        if item.get_closest_marker("nonfinite_ok") is not None:
            return (yield)

        from sherlorch._errors import NonFiniteError
        from sherlorch._tracker import ProvenanceTracker

        trapped: list[DiagnosisReport] = []

        def on_culprit(report: DiagnosisReport) -> None:
            if not trapped:
                trapped.append(report)
            if self._strict:
                raise NonFiniteError(report)

        failure: BaseException | None = None
        with ProvenanceTracker(on_culprit=on_culprit, ignore=self._ignore) as tracker:
            try:
                result = yield
            except BaseException as error:
                failure = error
            report = _explain(tracker, failure, trapped)
        if report is not None:
            item.add_report_section("call", _SECTION, str(report))
            item.stash[_verdict] = report.verdict()
        if failure is not None:
            raise failure
        if self._strict and trapped:
            # The test caught what was raised inside of it, or the op ran on another thread.
            raise NonFiniteError(trapped[0])
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.when == "call" and _verdict in item.stash:
            # An attribute of the report: xdist sends those from the worker.
            vars(report)["sherlorch_verdict"] = item.stash[_verdict]
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        verdict = getattr(report, "sherlorch_verdict", None)
        if verdict is not None:
            self._verdicts.append((report.nodeid, verdict))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._verdicts:
            terminalreporter.section("non-finite values", sep="-")
            for nodeid, verdict in self._verdicts:
                terminalreporter.write_line(f"{nodeid}: {verdict}")


_verdict = pytest.StashKey[str]()


def _explain(
    tracker: ProvenanceTracker, failure: BaseException | None, trapped: list[DiagnosisReport]
) -> DiagnosisReport | None:
    """The report for a test: of what its failing frames hold, else of the first accident."""
    from sherlorch._errors import NonFiniteError
    from sherlorch._targets import finding_in_traceback

    if isinstance(failure, NonFiniteError):
        return failure.report
    if failure is not None:
        found = finding_in_traceback(tracker, failure.__traceback__)
        if found is not None:
            return found[1]
    return trapped[0] if trapped else None
