"""The tracker, its reports and its nodes as a program sees them."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sherlorch
import torch
from torch import nn


def _bad() -> tuple[sherlorch.ProvenanceTracker, torch.Tensor, int]:
    with sherlorch.trace() as tracker:
        x = torch.tensor([[0.0, 1.0], [2.0, 3.0]])
        line = inspect.currentframe().f_lineno + 1
        y = torch.log(x)
        total = (y * 2).sum()
    return tracker, total, line


def test_the_originals_arguments_are_accepted_by_position_and_by_keyword() -> None:
    assert list(inspect.signature(sherlorch.trace).parameters)[:3] == [
        "capture_stack",
        "check_dtypes",
        "fast_shape_ops",
    ]
    tracker = sherlorch.ProvenanceTracker(False, [torch.float32], False)
    assert tracker.capture_stack is False
    assert tracker.fast_shape_ops is False
    assert sherlorch.trace(capture_stack=True, check_dtypes=None, fast_shape_ops=True).capture_stack is True


def test_a_culprit_says_what_where_and_on_which_values() -> None:
    tracker, total, line = _bad()
    report = tracker.diagnose(total)
    (culprit,) = report.culprits
    assert isinstance(culprit, sherlorch.OpNode)
    assert isinstance(culprit, sherlorch.Culprit)
    assert culprit.op_name == "log"
    assert culprit.location == f"{__file__}:{line}"
    assert culprit.shape == (2, 2)
    assert culprit.dtype == "torch.float32"
    assert culprit.device == "cpu"
    assert (culprit.has_nan, culprit.has_inf, culprit.is_finite) == (False, True, False)
    assert (culprit.origin, culprit.phase, culprit.times) == ("op", "forward", 1)
    assert culprit.cause == "division by zero"
    assert culprit.witness[0].index == (0, 0)
    assert culprit.witness[0].value == float("-inf")
    assert "log(0" in culprit.headline
    assert culprit.stack[-1].file == __file__
    assert culprit.stack[-1].line == line
    assert culprit.extra["counts"].neg_inf == 1
    assert f"{__file__}:{line}" in str(report)
    assert "NonFinite" not in repr(report)


def test_nodes_are_shared_between_paths_parents_and_culprits() -> None:
    tracker, total, _ = _bad()
    report = tracker.diagnose(total)
    path = report.paths[report.culprits[0].seq]
    assert path[0] is report.culprits[0]
    assert path[-1] is report.target
    assert [node.op_name for node in path] == ["log", "mul", "sum"]
    assert path[1].parents == [path[0]]
    assert path[2].parents == [path[1]]
    assert len({node.seq for node in path}) == 3


def test_a_finite_target_is_ok_and_says_so() -> None:
    with sherlorch.trace() as tracker:
        total = torch.ones(3).sum()
    report = tracker.diagnose(total)
    assert report.ok
    assert report.culprits == []
    assert report.paths == {}
    assert report.total_nodes_seen == tracker.op_count
    assert "No non-finite values" in str(report)


def test_one_element_can_be_asked_about() -> None:
    with sherlorch.trace() as tracker:
        y = torch.log(torch.tensor([0.0, 1.0]))
    assert not tracker.diagnose(y, index=(0,)).ok
    assert tracker.diagnose(y, index=(1,)).ok
    assert tracker.diagnose(y, index=[-1]).ok
    for wrong in [(2,), (-3,), (0, 0), (), ("a",), 5, (0.5,)]:
        with pytest.raises(IndexError, match="index="):
            tracker.diagnose(y, index=wrong)


def test_elements_gives_the_mask_of_a_step() -> None:
    tracker, total, _ = _bad()
    report = tracker.diagnose(total)
    mask = report.elements(report.culprits[0])
    assert mask.dtype == torch.bool
    assert mask.tolist() == [[True, False], [False, False]]
    assert torch.equal(report.elements(report.culprits[0].seq), mask)
    with pytest.raises(ValueError, match="not part of this diagnosis"):
        report.elements(999_999_999)


def test_deliberate_infinities_blame_nobody_and_are_listed() -> None:
    with sherlorch.trace() as tracker:
        scores = torch.ones(2, 2).masked_fill(torch.eye(2, dtype=torch.bool), float("-inf"))
        shifted = scores + 1
    report = tracker.diagnose(shifted)
    assert report.ok
    assert [node.op_name for node in report.deliberate] == ["masked_fill"]


def test_an_untracked_tensor_is_a_key_error_with_a_plain_message() -> None:
    with sherlorch.trace() as tracker:
        pass
    with pytest.raises(KeyError) as caught:
        tracker.diagnose(torch.ones(1))
    assert isinstance(caught.value, sherlorch.UntrackedTensorError)
    text = str(caught.value)
    assert text[0] not in "'\""
    assert text.endswith(tuple(".)abcdefghijklmnopqrstuvwxyz`"))
    assert caught.value.__suppress_context__ or caught.value.__cause__ is None
    assert tracker._get_node(torch.ones(1)) is None


def test_a_tensor_made_after_the_trace_is_untracked() -> None:
    tracker, _, _ = _bad()
    with pytest.raises(sherlorch.UntrackedTensorError):
        tracker.diagnose(torch.log(torch.zeros(1)))


@pytest.mark.parametrize("method", ["diagnose", "has_issue"])
@pytest.mark.parametrize("value", [None, 1.0, [1.0], "loss"])
def test_what_is_no_tensor_is_a_type_error(method: str, value: object) -> None:
    with pytest.raises(TypeError, match=f"got {type(value).__name__}"):
        getattr(sherlorch.trace(), method)(value)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"compile": "inductor"}, ValueError, "compile='inductor' is not known"),
        ({"on_culprit": "stop"}, ValueError, "on_culprit='stop' is not known"),
        ({"on_culprit": None}, ValueError, "on_culprit=None is not known"),
        ({"check_dtypes": ["float32"]}, TypeError, "check_dtypes has an entry 'float32'"),
        ({"ignore": "aten::log"}, TypeError, r"pass a list: ignore=\['aten::log'\]"),
        ({"ignore": [3]}, TypeError, "ignore has an entry 3"),
        ({"ignore": [""]}, ValueError, "names nothing"),
        ({"ignore": ["modul:encoder"]}, ValueError, "'modul:encoder' that names nothing"),
    ],
)
def test_wrong_options_are_named(options: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        sherlorch.trace(**options)
    with pytest.raises(TypeError):
        sherlorch.trace(True, None, True, True)  # additions are keyword-only


def test_has_issue_looks_at_any_tensor() -> None:
    tracker = sherlorch.trace()
    assert tracker.has_issue(torch.tensor([1.0, float("nan")]))
    assert tracker.has_issue(torch.tensor([complex(0, float("inf"))]))
    assert not tracker.has_issue(torch.tensor([1, 2]))
    assert not tracker.has_issue(torch.empty(0))
    assert tracker.has_issue(torch.tensor([float("inf")], requires_grad=True))


def test_disable_enable_and_reset() -> None:
    with sherlorch.trace() as tracker:
        tracker.disable()
        bad = torch.zeros(1).log()
        tracker.enable()
        worse = torch.zeros(1).log()
    with pytest.raises(KeyError):
        tracker.diagnose(bad)
    assert not tracker.diagnose(worse).ok
    tracker.reset()
    assert tracker.op_count == 0
    with pytest.raises(KeyError):
        tracker.diagnose(worse)


def test_check_dtypes_leaves_other_dtypes_alone() -> None:
    with sherlorch.trace(check_dtypes=[torch.float64]) as tracker:
        single = torch.zeros(1).log()
        double = torch.zeros(1, dtype=torch.float64).log()
    assert not tracker.diagnose(double).ok
    assert tracker.diagnose(single).ok


def test_capture_stack_off_gives_no_location() -> None:
    with sherlorch.trace(capture_stack=False) as tracker:
        bad = torch.zeros(1).log()
    (culprit,) = tracker.diagnose(bad).culprits
    assert culprit.location is None
    assert culprit.stack == ()


def test_a_tracker_can_be_entered_again_and_nested() -> None:
    tracker = sherlorch.trace()
    with tracker:
        with tracker:
            first = torch.zeros(1).log()
        second = torch.zeros(1).log()
    with tracker:
        third = torch.zeros(1).log()
    for tensor in (first, second, third):
        assert not tracker.diagnose(tensor).ok
    outside = torch.zeros(1).log()
    with pytest.raises(KeyError):
        tracker.diagnose(outside)


def test_two_trackers_at_once_each_see_everything() -> None:
    with sherlorch.trace() as outer:
        a = torch.zeros(1).log()
        with sherlorch.trace() as inner:
            b = a + 1
        c = b * 2
    assert outer.diagnose(c).culprits[0].op_name == "log"
    assert not inner.diagnose(b).ok
    assert outer.op_count > inner.op_count


def test_a_tracker_records_the_ops_of_every_thread() -> None:
    made: dict[int, torch.Tensor] = {}

    def work(number: int) -> None:
        made[number] = torch.full((3,), float(number)).sub(number).log()

    with sherlorch.trace() as tracker:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for tensor in made.values():
        assert [culprit.op_name for culprit in tracker.diagnose(tensor).culprits] == ["log"]


def test_several_threads_may_enter_one_tracker() -> None:
    tracker = sherlorch.trace()
    made: list[torch.Tensor] = []
    meet = threading.Barrier(4)

    def work() -> None:
        with tracker:
            meet.wait(20)
            made.append(torch.zeros(2).log())
            meet.wait(20)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 4
    assert all(not tracker.diagnose(tensor).ok for tensor in made)
    assert "not recording" in repr(tracker)


def test_diagnose_inside_of_the_trace() -> None:
    with sherlorch.trace() as tracker:
        bad = torch.zeros(1).log()
        report = tracker.diagnose(bad)
        assert "recording" in repr(tracker)
    assert report.culprits[0].op_name == "log"


def test_gradients_and_parameters_can_be_asked_about() -> None:
    model = nn.Linear(2, 2)
    with sherlorch.trace() as tracker:
        tracker.watch(model, "net")
        (model(torch.zeros(1, 2)) * 0 + model.bias.abs().sub(model.bias.abs()).sqrt()).sum().backward()
        torch.optim.SGD(model.parameters(), lr=0.1).step()
    report = tracker.diagnose(model.bias)
    assert report.culprits[0].phase == "backward"
    assert report.culprits[0].autograd_node == "SqrtBackward0"


# --- reports ------------------------------------------------------------------------------------------------------


def test_a_report_survives_json_and_pickle(tmp_path: Path) -> None:
    tracker, total, _ = _bad()
    report = tracker.diagnose(total)
    path = tmp_path / "report.json"
    text = report.to_json(path)
    assert json.loads(path.read_text()) == json.loads(text) == report.to_dict()
    for other in (sherlorch.DiagnosisReport.from_json(text), pickle.loads(pickle.dumps(report)), copy.deepcopy(report)):
        assert str(other) == str(report)
        assert other.to_dict() == report.to_dict()
    assert list(tmp_path.iterdir()) == [path]


def test_files_are_not_overwritten_unless_asked(tmp_path: Path) -> None:
    tracker, total, _ = _bad()
    report = tracker.diagnose(total)
    for name, write in (("r.json", report.to_json), ("r.dot", report.to_dot), ("r.html", report.to_html)):
        path = tmp_path / name
        write(path)
        size = path.stat().st_size
        assert size > 0
        path.write_text("mine")
        with pytest.raises(FileExistsError, match="overwrite=True"):
            write(path)
        assert path.read_text() == "mine"
        write(path, overwrite=True)
        assert path.stat().st_size == size
    with pytest.raises(OSError, match="nowhere"):
        report.to_json(tmp_path / "nowhere" / "r.json")


def test_exports_are_what_they_say(tmp_path: Path) -> None:
    tracker, total, _ = _bad()
    report = tracker.diagnose(total)
    assert report.to_dot().startswith("digraph")
    page = report.to_html(tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.lstrip().lower().startswith("<!doctype html>")
    inline = report._repr_html_()
    assert inline.startswith("<iframe srcdoc=")
    assert inline.count("<") == 2  # everything of the page is escaped


def test_damaged_and_foreign_json_is_refused_with_a_sentence() -> None:
    tracker, total, _ = _bad()
    data = tracker.diagnose(total).to_dict()
    for text in ["", "{", "[]", "{}", json.dumps({**data, "schema": "other"}), json.dumps({**data, "culprits": 3})]:
        with pytest.raises(ValueError, match="sherlorch diagnosis"):
            sherlorch.DiagnosisReport.from_json(text)
    with pytest.raises(ValueError, match="newer sherlorch"):
        sherlorch.DiagnosisReport.from_json(json.dumps({**data, "version": data["version"] + 1}))


def test_a_report_makes_its_nodes_once_when_they_are_asked_for() -> None:
    tracker, total, _ = _bad()
    report = tracker.diagnose(total)
    assert "culprits" not in vars(report)
    assert not report.ok
    assert report.total_nodes_seen == tracker.op_count
    assert "culprits" not in vars(report), "the answer alone needs no nodes"
    with ThreadPoolExecutor(4) as pool:
        (first, *others) = pool.map(lambda _: report.culprits, range(8))
    assert all(other is first for other in others)
    assert report.paths[first[0].seq][-1] is report.target
    assert pickle.loads(pickle.dumps(tracker.diagnose(total))).verdict() == report.verdict()
    assert copy.copy(tracker.diagnose(total)).verdict() == report.verdict()
    assert not hasattr(report, "something_else")
    with pytest.raises(AttributeError, match="culprit_list"):
        report.culprit_list  # noqa: B018


def test_code_that_takes_the_place_of_other_code_has_its_own_lines() -> None:
    """Functions that are made and dropped: their code objects die, and new ones take their addresses."""
    places, x = set(), torch.zeros(2)
    with sherlorch.trace() as tracker:
        for i in range(200):
            source = "\n" * (i % 7) + "def run(x):\n    return x.log()\n"
            scope: dict[str, Any] = {}
            exec(compile(source, f"/made/{i % 3}.py", "exec"), scope)
            places.add(id(scope["run"].__code__))
            (culprit,) = tracker.diagnose(scope["run"](x)).culprits
            assert culprit.location == f"/made/{i % 3}.py:{i % 7 + 2}", i
            del scope
    assert len(places) < 200, "no address was used again, so nothing was tried"


def test_a_report_made_by_hand_reads_like_the_originals() -> None:
    culprit = sherlorch.OpNode(1, "log", (2,), "torch.float32", "cpu", False, False, True, [], "a.py:3", "net.sub")
    target = sherlorch.OpNode(2, "sum", (), "torch.float32", "cpu", False, True, True, [culprit])
    report = sherlorch.DiagnosisReport(target, [culprit], {1: [culprit, target]}, 5)
    text = str(report)
    assert "Culprit #1: [1] log  shape=(2,) dtype=torch.float32  [net.sub]  (a.py:3)  <-- Inf" in text
    assert "-> [2] sum  shape=() dtype=torch.float32  <-- NaN & Inf" in text
    assert "out of 5 traced ops" in text
    assert sherlorch.DiagnosisReport(target).ok
    with pytest.raises(ValueError, match="made by hand"):
        report.to_json()
    assert str(pickle.loads(pickle.dumps(report))) == text
    assert report._repr_html_().startswith("<pre>")


def test_nodes_are_frozen_hashable_and_numbered_by_default() -> None:
    first, second = sherlorch.OpNode(), sherlorch.OpNode()
    assert second.seq == first.seq + 1
    assert len({first, second, first}) == 2
    assert first == first
    assert first != second
    with pytest.raises(AttributeError):
        first.seq = 3
    assert first.summary() == f"[{first.seq}]   shape=() dtype="


def test_a_tracker_can_not_be_pickled_and_says_what_can() -> None:
    with pytest.raises(TypeError, match="pickle the report"):
        pickle.dumps(sherlorch.trace())


def test_a_step_that_a_grad_scaler_skips_is_said_to_be_handled() -> None:
    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**120)
    with sherlorch.trace() as tracker:
        scaler.scale((weight * 1e4).square().sum()).backward()
        scaler.step(optimizer)
    assert torch.equal(weight, torch.ones(2))
    report = tracker.diagnose(weight.grad)
    assert report.culprits
    assert "Handled: a GradScaler looked at this gradient" in report.note
    assert "Handled" in str(report)


def test_a_gradient_that_no_scaler_saw_is_not_said_to_be_handled() -> None:
    weight = torch.nn.Parameter(torch.zeros(2))
    with sherlorch.trace() as tracker:
        (weight.sqrt() * 0).sum().backward()
    report = tracker.diagnose(weight.grad)
    assert report.culprits
    assert "GradScaler" not in report.note
