"""torch.compile inside of a trace."""

from __future__ import annotations

from conftest import Run

_STANCE = """
import sys, torch
import sherlorch
{before}
def stance():
    frames = sys.modules.get("torch._dynamo.eval_frame")
    return frames and frames._stance.stance
def finders():
    return [f for f in sys.meta_path if type(f).__module__ == "sherlorch._eager"]
{body}
assert len(finders()) <= 1, "an import hook too many"
assert not finders() or "torch._dynamo" not in sys.modules, "an import hook was left behind"
print("done")
"""


def _run(python: Run, before: str, body: str) -> None:
    ran = python("-c", _STANCE.format(before=before, body=body))
    assert ran.stdout.endswith("done\n"), ran.stdout + ran.stderr


def test_the_stance_is_set_inside_and_restored_also_nested(python: Run) -> None:
    _run(
        python,
        "import torch._dynamo",
        """
assert stance() == "default"
a, b = sherlorch.trace(), sherlorch.trace()
with a:
    assert stance() == "force_eager"
    with b:
        assert stance() == "force_eager"
    assert stance() == "force_eager"
assert stance() == "default"
a.__enter__(); b.__enter__(); a.__exit__(None, None, None)   # not nested
assert stance() == "force_eager"
b.__exit__(None, None, None)
assert stance() == "default"
with sherlorch.trace(compile="trace_opaque"):
    assert stance() == "default"
with sherlorch.trace():
    torch.compiler.set_stance("fail_on_recompile")  # the program's own wish, for good
assert stance() == "fail_on_recompile"
torch.compiler.set_stance("default")
try:
    with sherlorch.trace():
        raise KeyError
except KeyError:
    pass
assert stance() == "default"
""",
    )


def test_a_stance_of_the_program_is_put_back(python: Run) -> None:
    _run(
        python,
        "import torch._dynamo",
        """
torch.compiler.set_stance("force_eager")
frames = sys.modules["torch._dynamo.eval_frame"]
own = frames._stance
for _ in range(2):
    with sherlorch.trace():
        assert stance() == "force_eager"
    assert frames._stance is own
with torch.compiler.set_stance("eager_on_recompile"):
    with sherlorch.trace():
        assert stance() == "force_eager"
    assert stance() == "eager_on_recompile"
assert frames._stance is own
""",
    )


def test_a_tracker_that_is_dropped_inside_of_its_block_takes_its_wish_along(python: Run) -> None:
    _run(
        python,
        "import gc, torch._dynamo",
        """
for _ in range(2):
    tracker = sherlorch.trace()
    tracker.__enter__(); tracker.__enter__()
    assert stance() == "force_eager"
    del tracker
    gc.collect()
    assert stance() == "default"
""",
    )


def test_a_trace_that_begins_inside_of_a_compiled_function_says_what_stays_compiled(python: Run) -> None:
    _run(
        python,
        "import torch._dynamo",
        """
trackers = []
def body(value):
    torch._dynamo.graph_break()
    with sherlorch.trace() as tracker:
        trackers.append((tracker, stance()))
        return torch.log(value)

bad = torch.compile(body, backend="eager")(torch.zeros(2))
tracker, inside = trackers[0]
assert inside == stance() == "default"
assert "compiled functions stayed compiled" in str(tracker.diagnose(bad).blind_spots)
""",
    )


def test_dynamo_that_comes_inside_of_the_trace_is_noticed_and_never_imported_by_us(python: Run) -> None:
    _run(
        python,
        "",
        """
with sherlorch.trace():
    pass
assert "torch._dynamo" not in sys.modules
with sherlorch.trace() as tracker:
    assert len(finders()) == 1
    import torch._dynamo
    assert stance() == "force_eager"
    compiled = torch.compile(lambda t: torch.log(t * 0), backend="eager")
    bad = compiled(torch.ones(2))
assert stance() == "default"
assert type(torch._dynamo.__loader__).__module__ != "sherlorch._eager"
assert [c.op_name for c in tracker.diagnose(bad).culprits] == ["log"]
""",
    )


def test_traces_that_dynamo_finds_open_are_all_counted(python: Run) -> None:
    _run(
        python,
        "import threading",
        """
a, b, c = (sherlorch.trace() for _ in range(3))
opaque = sherlorch.trace(compile="trace_opaque")
a.__enter__(); b.__enter__(); opaque.__enter__()
other = threading.Thread(target=c.__enter__); other.start(); other.join()
a.__exit__(None, None, None)
import torch._dynamo
assert stance() == "force_eager"
with sherlorch.trace():
    assert stance() == "force_eager"
b.__exit__(None, None, None)
assert stance() == "force_eager"
c.__exit__(None, None, None)
assert stance() == "default"
opaque.__exit__(None, None, None)
assert stance() == "default"
with a:  # once more
    assert stance() == "force_eager"
assert stance() == "default"
""",
    )


def test_dynamo_that_comes_between_traces_finds_none_open(python: Run) -> None:
    _run(
        python,
        "",
        """
for _ in range(3):
    with sherlorch.trace():
        pass
import torch._dynamo
assert stance() == "default"
with sherlorch.trace():
    assert stance() == "force_eager"
assert stance() == "default"
""",
    )


def test_a_function_compiled_before_the_trace_is_seen_op_by_op(python: Run) -> None:
    _run(
        python,
        "import torch._dynamo",
        """
compiled = torch.compile(lambda t: torch.log(t * 0), backend="eager")
compiled(torch.ones(2))
with sherlorch.trace() as tracker:
    bad = compiled(torch.ones(2))
assert [c.op_name for c in tracker.diagnose(bad).culprits] == ["log"]
""",
    )


def test_compiled_code_that_was_left_alone_is_under_suspicion(python: Run) -> None:
    _run(
        python,
        "import numpy; from torch._dynamo.backends.common import aot_autograd; from functorch.compile import make_boxed_func",
        """
# Like a kernel of Inductor: it writes without torch's knowledge.
def compiler(graph, inputs):
    def run(value):
        out = torch.empty(value.shape)
        numpy.log(value.detach().numpy(), out=out.numpy())
        return [out, value]
    return make_boxed_func(run)

value = torch.zeros(2, requires_grad=True)
compiled = torch.compile(torch.log, backend=aot_autograd(fw_compiler=compiler))
with sherlorch.trace(compile="trace_opaque") as tracker:
    out = compiled(value) * 2
(culprit,) = tracker.diagnose(out).culprits
assert not culprit.certain
assert "compiled code ran" in culprit.explanation and "trace_opaque" in culprit.help
""",
    )


def test_a_watched_model_compiles_whole_where_compiled_code_is_left_alone(python: Run) -> None:
    _run(
        python,
        "import torch._dynamo",
        """
model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
with sherlorch.trace(compile="trace_opaque") as tracker:
    tracker.watch(model)
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    out = compiled(torch.ones(1, 2))
assert torch.equal(out, model(torch.ones(1, 2)))
assert not model._forward_pre_hooks
""",
    )
