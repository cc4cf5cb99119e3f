"""Names for modules: watch, unwatch, and that no model is disturbed by them."""

# ruff: noqa: PT012 (what is tested is which statement of the block raises)
from __future__ import annotations

import copy
import io
import pickle
import threading
import warnings
from pathlib import Path

import pytest
import sherlorch
import torch
from conftest import Run
from torch import nn


class Log(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.log(x * 0)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(2, 2)
        self.inner = nn.Sequential(nn.Linear(2, 2), Log())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(self.first(x)).sum()


def _hooks(model: nn.Module) -> int:
    return sum(len(m._forward_pre_hooks) + len(m._forward_hooks) for m in model.modules())


def _path_of(tracker: sherlorch.ProvenanceTracker, tensor: torch.Tensor) -> str | None:
    return tracker.diagnose(tensor).culprits[0].module_path


def test_ops_get_the_qualified_name_of_the_module_that_ran_them() -> None:
    model = Net()
    with sherlorch.trace() as tracker:
        assert tracker.watch(model, name="net") is tracker
        out = model(torch.ones(1, 2))
    assert _path_of(tracker, out) == "net.inner.1"
    assert _hooks(model) == 0


def test_a_shared_module_goes_by_its_first_name() -> None:
    model = Net()
    model.second = model.inner
    with sherlorch.trace() as tracker:
        out = tracker.watch(model) and model(torch.ones(1, 2))
    assert _path_of(tracker, out) == "model.inner.1"


def test_a_replaced_and_an_added_submodule_are_named_at_the_next_call() -> None:
    model = Net()
    with sherlorch.trace() as tracker:
        tracker.watch(model)
        model(torch.ones(1, 2))
        model.inner[1] = nn.Sequential(nn.Identity(), Log())
        assert _path_of(tracker, model(torch.ones(1, 2))) == "model.inner.1.1"
        model.inner.append(nn.Identity())
        del model.inner[0]
        assert _path_of(tracker, model(torch.ones(1, 2))) == "model.inner.0.1"


def test_without_watch_the_path_is_given_from_the_outermost_module() -> None:
    with sherlorch.trace() as tracker:
        out = Net()(torch.ones(1, 2))
    path = _path_of(tracker, out)
    assert path is not None
    assert path.endswith("inner.1")
    with sherlorch.trace(module_paths=False) as tracker:
        out = Net()(torch.ones(1, 2))
    assert _path_of(tracker, out) is None


def test_unwatch_takes_hooks_and_paths_away_and_watch_brings_them_back() -> None:
    model = Net()
    with sherlorch.trace() as tracker:
        tracker.watch(model)
        assert _hooks(model) == 1
        tracker.unwatch()
        assert _hooks(model) == 0
        assert _path_of(tracker, model(torch.ones(1, 2))) is None
        tracker.watch(model)
        assert _path_of(tracker, model(torch.ones(1, 2))) == "model.inner.1"


def test_hooks_are_gone_after_an_exception() -> None:
    model = Net()
    with pytest.raises(RuntimeError), sherlorch.trace() as tracker:
        tracker.watch(model)
        model(torch.ones(3, 5))
    assert _hooks(model) == 0


def test_hooks_stay_until_the_outermost_block_is_left() -> None:
    model = Net()
    tracker = sherlorch.trace()
    with tracker:
        tracker.watch(model)
        with tracker:
            pass
        assert _hooks(model) == 1
    assert _hooks(model) == 0


def test_a_deep_copy_made_while_watched_works_and_sheds_its_hook() -> None:
    model = Net()
    with sherlorch.trace() as tracker:
        tracker.watch(model)
        twin = copy.deepcopy(model)
    assert _hooks(model) == 0
    twin(torch.ones(1, 2))
    assert _hooks(twin) == 0


def test_a_pickle_made_while_watched_loads_without_sherlorch(tmp_path: Path, python: Run) -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    with sherlorch.trace() as tracker:
        tracker.watch(model)
        (tmp_path / "model.pkl").write_bytes(pickle.dumps(model))
        torch.save(model, io.BytesIO())
        state = model.state_dict()
    assert set(state) == {"0.weight", "0.bias"}
    ran = python(
        "-c",
        "import pickle, sys, torch\n"
        "model = pickle.load(open('model.pkl', 'rb'))\n"
        "print(model(torch.ones(3, 2)).shape, 'sherlorch' in sys.modules)\n",
    )
    assert ran.stdout == "torch.Size([3, 2]) False\n", ran.stderr


def test_a_model_of_torch_jit_can_be_watched() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scripted = torch.jit.script(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    with sherlorch.trace() as tracker:
        tracker.watch(scripted)
        out = scripted(torch.ones(1, 2))
    assert tracker.diagnose(out).ok


def test_names_survive_a_wrapper_of_torch_compile() -> None:
    from sherlorch._watch import qualified_names

    class Wrapper(nn.Module):
        def __init__(self, inner: nn.Module) -> None:
            super().__init__()
            self._orig_mod = inner

    names = [name for _, name in qualified_names(Wrapper(Net()), "model")]
    assert names == ["model", "model", "model.first", "model.inner", "model.inner.0", "model.inner.1"]


@pytest.mark.parametrize("value", [None, torch.ones(1), Net])
def test_what_is_no_module_is_a_type_error(value: object) -> None:
    with pytest.raises(TypeError, match=r"watch\(\) takes a torch\.nn\.Module"):
        sherlorch.trace().watch(value)


class Swaps(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner: nn.Module = nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.inner = Log()
        return self.inner(x)


def test_a_submodule_replaced_inside_of_forward_has_its_name() -> None:
    model = nn.Sequential(Swaps())
    with sherlorch.trace() as tracker:
        tracker.watch(model)
        y = model(torch.zeros(1))
    assert _path_of(tracker, y) == "model.0.inner"


def test_a_bad_gradient_from_before_the_trace_is_named_by_its_parameter() -> None:
    model = nn.ModuleDict({"a": nn.Linear(2, 2), "b": nn.Linear(2, 2)})
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    model["b"].weight.grad = torch.full((2, 2), float("nan"))
    with sherlorch.trace() as tracker:
        tracker.watch(model)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    report = tracker.diagnose(model["a"].weight.grad)
    (culprit,) = report.culprits
    assert culprit.origin_label == "gradient model.b.weight.grad"
    assert culprit.origin_label in report.verdict()


def test_a_freed_and_reused_address_does_not_get_a_wrong_name() -> None:
    model = nn.Linear(2, 2, bias=False)
    with sherlorch.trace() as tracker:
        tracker.watch(model, "net")
        addresses = set()
        reports = []
        for _ in range(200):
            # The parameter's old memory goes, and the next tensors of this size are likely to get it.
            model.weight = nn.Parameter(torch.ones(2, 2))
            tracker._name_all()
            model.weight = nn.Parameter(torch.ones(3, 3))
            others = [torch.zeros(2, 2) for _ in range(3)]
            addresses.update(other.untyped_storage()._cdata for other in others)
            reports += [str(tracker.diagnose(other.log())) for other in others]
    assert len(addresses) > 1
    assert not any("net.weight" in report for report in reports)


def test_what_an_older_op_read_is_not_called_by_a_younger_gradients_name() -> None:
    model = nn.Linear(4, 4, bias=False)
    with sherlorch.trace() as tracker:
        tracker.watch(model, "net")
        bad = []
        for _ in range(50):
            temporaries = [torch.zeros(4, 4) for _ in range(4)]
            bad.append(torch.stack([temporary.log() for temporary in temporaries]))
            del temporaries
            model.weight.grad = torch.full((4, 4), float("nan"))
            assert "net.weight.grad" not in str(tracker.diagnose(bad[-1]))
            model.weight.grad = None


def test_a_thread_goes_by_its_python_name() -> None:
    made: list[torch.Tensor] = []
    with sherlorch.trace() as tracker:
        thread = threading.Thread(target=lambda: made.append(torch.zeros(1).log()), name="loader-7")
        thread.start()
        thread.join()
    report = tracker.diagnose(made[0])
    assert report.culprits[0].extra["thread_name"] == "loader-7"
    assert "on thread loader-7" in str(report)
