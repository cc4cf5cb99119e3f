"""What is not scanned is left out for a reason; here each reason is tried on the real ops over the extremes of dtypes.

- Views and other outputs in memory that came in: nothing was written there.
- Integer outputs, and every type that cannot hold a NaN or an infinity.
- Memory that is handed out unwritten (empty), and ops that change what a tensor is, not its bytes (set_, t_).
- What an op overwrites without reading it (copy_, zero_): what was there before does not matter.
- Ops nested in an op: what they make either comes out of the outer one, or is gone.
"""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sherlorch
import torch
from sherlorch import _native
from torch.utils._pytree import tree_leaves, tree_map

TRAITS = (Path(__file__).resolve().parents[2] / "core/operators/traits.cpp").read_text()


def table(name: str) -> set[str]:
    """The names in one table of core/operators/traits.cpp."""
    found = re.search(rf"const Names {name} = \{{(.*?)\}};", TRAITS, re.DOTALL)
    assert found is not None
    return set(re.findall(r'"(\w+)"', found.group(1)))


def extremes(dtype: torch.dtype) -> list[float]:
    info = torch.finfo(dtype)
    small = [info.tiny, info.smallest_normal / 2, info.eps]
    return [info.max, -info.max, 0.0, -0.0, 1.0, -1.0, *small, *(-value for value in small), info.max / 2, 0.5]


def filled(shape: Any, dtype: torch.dtype, first: int = 0) -> torch.Tensor:
    """The extremes one after the other, from the `first` on."""
    values = extremes(torch.empty((), dtype=dtype).real.dtype if dtype.is_complex else dtype)
    count = torch.Size(shape).numel()
    return torch.tensor([values[(first + at) % len(values)] for at in range(count)], dtype=dtype).reshape(shape)


# --- every operator that torch has samples of --------------------------------------------------------------------------

DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.complex64)
SAMPLES = 6  # of each operator and dtype
# Not tried: they hand out memory that nobody has written, which is judged at its first reader.
UNWRITTEN = {
    "empty",
    "empty_like",
    "empty_strided",
    "empty_permuted",
    "new_empty",
    "new_empty_strided",
    "resize_",
    "resize_as_",
}


def op_infos() -> list[Any]:
    pytest.importorskip("expecttest")  # torch's own list of operators needs it
    from torch.testing._internal.common_methods_invocations import op_db

    return [op for op in op_db if op.name not in UNWRITTEN and not op.name.startswith("jiterator")]  # GPU only


def with_extremes(value: Any, first: int) -> Any:
    def change(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or not (leaf.is_floating_point() or leaf.is_complex()):
            return leaf
        if leaf.layout != torch.strided or leaf.numel() > 4096:
            return leaf
        return filled(leaf.shape, leaf.dtype, first)

    return tree_map(change, value)


def calls(op: Any, dtype: torch.dtype) -> Iterator[tuple[Callable[..., Any], Any, Any, Any]]:
    """The operator and its in-place form with arguments of extreme values."""
    # Not op.sample_inputs: it reads the whole stack for each sample.
    for number, sample in enumerate(op.sample_inputs_func(op, "cpu", dtype, False)):
        if number == SAMPLES:
            return
        for function in (op.op, op.inplace_variant):
            if function is None or (function is op.inplace_variant and sample.broadcasts_input):
                continue
            first, rest, named = with_extremes((sample.input, sample.args, sample.kwargs), 3 * number)
            yield function, first, rest, named


def bad_tensors(value: Any) -> list[torch.Tensor]:
    found = []
    for leaf in tree_leaves(value):
        if isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided and _native.has_issue(leaf):
            found.append(leaf)
    return found


def missed(function: Callable[..., Any], first: Any, rest: Any, named: Any) -> tuple[int, list[str]]:
    """How many results of a call are bad, and what is said of those whose making nobody noticed."""
    if bad_tensors((first, rest, named)):
        return 0, []
    try:
        with sherlorch.trace(capture_stack=False) as tracker:
            out = function(first, *rest, **named)
    except (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError):
        return 0, []
    unnoticed, bad = [], bad_tensors((out, first, rest, named))
    for tensor in bad:
        report = tracker.diagnose(tensor)
        for culprit in report.culprits:
            if culprit.origin not in ("op", "constant"):
                unnoticed.append(f"{culprit.op_name}: {culprit.origin} {culprit.origin_label} {culprit.origin_detail}")
        if not report.culprits and not report.deliberate:
            unnoticed.append("nobody is blamed")
    return len(bad), unnoticed


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_no_operator_makes_a_bad_value_unnoticed(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    unnoticed: dict[str, list[str]] = {}
    bad = 0
    for op in op_infos():
        if not op.supports_dtype(dtype, "cpu"):
            continue
        for call in calls(op, dtype):
            count, said = missed(*call)
            bad += count
            if said:
                unnoticed.setdefault(op.full_name, []).extend(said)
    assert not unnoticed
    assert bad > 200, f"too few operators overflow ({bad}): the test is too easy"


# --- the tables of traits.cpp -------------------------------------------------------------------------------------------


def bits(tensor: torch.Tensor) -> bytes:
    storage = tensor.untyped_storage()
    return bytes(torch.tensor([], dtype=torch.uint8).set_(storage).tolist())


METADATA: dict[str, Callable[[torch.Tensor], object]] = {
    "set_": lambda x: x.set_(torch.ones(3, dtype=x.dtype)),
    "t_": lambda x: x.t_(),
    "transpose_": lambda x: x.transpose_(0, 1),
    "swapaxes_": lambda x: x.swapaxes_(0, 1),
    "swapdims_": lambda x: x.swapdims_(0, 1),
    "squeeze_": lambda x: x.squeeze_(),
    "unsqueeze_": lambda x: x.unsqueeze_(0),
    "detach_": lambda x: x.detach_(),
    "as_strided_": lambda x: x.as_strided_((2,), (3,), 1),
    "requires_grad_": lambda x: x.requires_grad_(),
    "set_data": lambda x: setattr(x, "data", torch.ones(2, dtype=x.dtype)),
    "retain_grad": lambda x: x.requires_grad_() * 1,
    "resize_": lambda x: x.resize_(2, 2),
    "resize_as_": lambda x: x.resize_as_(torch.empty(2)),
    # On a sparse tensor: its values are the memory.
    "_coalesced_": lambda x: x.to_sparse()._coalesced_(True),
    "sparse_resize_": lambda x: x.to_sparse().sparse_resize_((6, 6), 2, 0),
    "sparse_resize_and_clear_": lambda x: x.to_sparse().sparse_resize_and_clear_((6, 6), 2, 0),
}
# These make a tensor of their own, with nothing in it that anybody wrote.
FRESH = {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "empty_quantized"}
FRESH |= {"resize", "resize_as"}
FRESH |= {"_resize_output_"}  # has no kernel for the CPU; other devices' memory is not read


def test_each_row_that_says_nothing_is_written_has_a_call_here() -> None:
    assert table("kMetadataOnly") | (table("kUninitialized") - FRESH) == set(METADATA)


@pytest.mark.parametrize("name", METADATA)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_what_changes_a_tensor_and_not_its_memory_leaves_every_bit(name: str, dtype: torch.dtype) -> None:
    x = filled((4, 5), dtype).clone()
    memory = x.view(-1)  # keeps the storage
    before = bits(memory)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        METADATA[name](x)
    assert bits(memory) == before


OVERWRITES: dict[str, Callable[[torch.Tensor], object]] = {
    "copy_": lambda x: x.copy_(filled((4, 5), x.dtype, 2)),
    "fill_": lambda x: x.fill_(2.0),
    "zero_": lambda x: x.zero_(),
    "normal_": lambda x: x.normal_(),
    "uniform_": lambda x: x.uniform_(),
    "random_": lambda x: x.random_(),
    "bernoulli_": lambda x: x.bernoulli_(0.5),
    "cauchy_": lambda x: x.cauchy_(),
    "geometric_": lambda x: x.geometric_(0.5),
    "exponential_": lambda x: x.exponential_(),
    "log_normal_": lambda x: x.log_normal_(),
    "copy": lambda x: x.set_(torch.ops.aten.copy(x, filled((4, 5), x.dtype, 2))),
}


def test_each_row_that_says_overwritten_has_a_call_here() -> None:
    assert table("kOverwrites") == set(OVERWRITES)


@pytest.mark.parametrize("name", OVERWRITES)
@pytest.mark.parametrize("dtype", DTYPES[:4], ids=str)
def test_what_is_overwritten_does_not_hang_on_what_was_there(name: str, dtype: torch.dtype) -> None:
    said = set()
    for before in (*extremes(dtype), float("nan"), float("inf"), -float("inf")):
        torch.manual_seed(0)
        x = torch.full((4, 5), before, dtype=dtype)
        OVERWRITES[name](x)
        said.add(bits(x))
    assert len(said) == 1


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", DTYPES[:2], ids=str)
def test_an_out_argument_is_not_read(dtype: torch.dtype) -> None:
    tried = 0
    for op in op_infos():
        if not op.supports_out or not op.supports_dtype(dtype, "cpu"):
            continue
        for sample in itertools.islice(op.sample_inputs_func(op, "cpu", dtype, False), 2):
            said = set()
            try:
                torch.manual_seed(0)
                shape = op.op(sample.input, *sample.args, **sample.kwargs)
                for before in (float("nan"), 1.0):
                    torch.manual_seed(0)
                    out = torch.full_like(shape, before) if isinstance(shape, torch.Tensor) else None
                    if out is None or not out.is_floating_point():
                        break
                    said.add(bits(op.op(sample.input, *sample.args, out=out, **sample.kwargs)))
            except (RuntimeError, TypeError, ValueError, IndexError):
                continue
            assert len(said) <= 1, op.full_name
            tried += len(said)
    assert tried > 200


# --- types ----------------------------------------------------------------------------------------------------------------


def all_dtypes() -> list[torch.dtype]:
    found = {value for value in vars(torch).values() if isinstance(value, torch.dtype)}
    return sorted(found, key=str)


# torch has no way from these to a number, or makes no tensors of them.
NO_NUMBERS = re.compile(r"quint|qint|bits|float4|\.u?int[1-7]$")


@pytest.mark.parametrize(
    "dtype", [d for d in all_dtypes() if d.itemsize <= 2 and not NO_NUMBERS.search(str(d))], ids=str
)
def test_small_types_are_judged_right_in_every_pattern(dtype: torch.dtype) -> None:
    carrier = torch.uint8 if dtype.itemsize == 1 else torch.int16
    patterns = torch.arange(256 if dtype.itemsize == 1 else 65536).to(carrier)
    if dtype == torch.bool:
        patterns = patterns[:2]
    for pattern, number in zip(
        patterns.view(dtype).split(1), patterns.view(dtype).to(torch.float32).tolist(), strict=True
    ):
        finite = number - number == 0
        assert _native.has_issue(pattern) is not finite, (number, pattern)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.uint32, torch.uint64], ids=str)
def test_integers_of_any_pattern_are_finite(dtype: torch.dtype) -> None:
    carrier = torch.float32 if dtype.itemsize == 4 else torch.float64
    bad = torch.tensor([float("nan"), float("inf"), -float("inf")], dtype=carrier)
    assert _native.has_issue(bad)
    assert not _native.has_issue(bad.view(dtype).clone())
