"""Property test of the element maps (core's relation.h) against torch itself.

For each call below: run it on finite inputs, poke one element of one input with NaN, Inf or -Inf, run it again under a
trace. Every output element that changed must lie in the image that the map gives for the poked element. A map may say
too much, which the table at the end shows (``pytest -s``), never too little.

What it asks of ``sherlorch._native``:

``_last_relation(output, input, elements) -> list[int] | None``
    Of the operator call that was recorded last because something non-finite went into or came out of it (of kind op: no
    views, no origins): which elements of its output ``output`` (row-major) are in the image of these elements of its
    input ``input``. Outputs are counted as in the record: written arguments in schema order, then fresh
    return values, integer ones included. Inputs are the tensor arguments that were given, lists flattened, in schema
    order. None: no such call, or no such input or output.
``_last_operator() -> str`` (optional)
    The same call's operator, ``"aten::add.Tensor"``; guards against a spec that runs another operator than it says.
``_mapped_operators() -> list[str]`` (optional)
    What the C++ function ``mapped_operators()`` returns.

Without ``_last_relation`` the tests that need it are skipped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402

try:
    import sherlorch
    from sherlorch import _native
except ImportError:
    sherlorch = None  # type: ignore[assignment]
    _native = None  # type: ignore[assignment]

needs_hook = pytest.mark.skipif(
    not hasattr(_native, "_last_relation"), reason="this build of sherlorch has no _native._last_relation"
)

# Records live as long as some tracker does.
_KEEP = sherlorch.trace() if sherlorch is not None else None

aten = torch.ops.aten
Tensor = torch.Tensor
Maker = Callable[[], Any]

# Chosen: enough pokes to meet masked, padded and overwritten places, few enough for some seconds in all.
POKED_ELEMENTS = 4
POKES = (math.nan, math.inf, -math.inf)


@dataclass(frozen=True)
class Spec:
    """One call. ``tensors`` make the tensor arguments, in schema order and flattened; ``writes`` are those written."""

    op: str
    call: Callable[..., Any]
    tensors: tuple[Maker, ...]
    writes: tuple[int, ...] = ()
    note: str = ""

    @property
    def name(self) -> str:
        return self.op + (f"[{self.note}]" if self.note else "")


def R(*shape: int) -> Maker:
    """Normally distributed."""
    return lambda: torch.randn(shape)


def P(*shape: int) -> Maker:
    """Between 0.1 and 0.9."""
    return lambda: 0.1 + 0.8 * torch.rand(shape)


def Z(*shape: int) -> Maker:
    """Zeros, for outputs and states."""
    return lambda: torch.zeros(shape)


def I(high: int, *shape: int, low: int = 0) -> Maker:  # noqa: E743
    return lambda: torch.randint(low, high, shape)


def B(*shape: int) -> Maker:
    """A mask."""
    return lambda: torch.rand(shape) < 0.5


def V(*values: Any) -> Maker:
    return lambda: torch.tensor(values)


def K(*shape: int) -> Maker:
    """Distinct indices along the last dimension."""
    return lambda: torch.argsort(torch.rand(shape), dim=-1)


def pointwise() -> Iterator[Spec]:
    unary = (
        "abs neg exp exp2 expm1 log log2 log10 log1p sqrt rsqrt square reciprocal sin cos tan asin acos atan sinh cosh "
        "tanh asinh atanh sinc ceil floor round trunc frac erf erfc erfinv lgamma digamma sigmoid logit nan_to_num "
        "relu sign deg2rad"
    )
    for name in unary.split():
        yield Spec(name, getattr(torch, name), (P(3, 4),))
    for name in ["abs_", "exp_", "log_", "sqrt_", "neg_", "sigmoid_", "tanh_", "relu_", "reciprocal_", "clamp_"]:
        args = (0.2,) if name == "clamp_" else ()
        yield Spec(name, lambda x, name=name, args=args: getattr(x, name)(*args), (P(3, 4),), writes=(0,))
    for name in [
        "silu",
        "mish",
        "softplus",
        "hardswish",
        "hardsigmoid",
        "hardtanh",
        "elu",
        "selu",
        "celu",
        "leaky_relu",
        "relu6",
        "gelu",
        "log_sigmoid",
    ]:
        yield Spec(name, getattr(F, name.replace("log_sigmoid", "logsigmoid")), (R(3, 4),))
    binary = (
        "add sub mul div pow fmod remainder atan2 maximum minimum fmax fmin hypot copysign logaddexp logaddexp2 xlogy "
        "nextafter float_power true_divide floor_divide"
    )
    for name in binary.split():
        yield Spec(name, getattr(torch, name), (P(3, 1, 4), P(5, 1)), note="broadcast")
        yield Spec(name, getattr(torch, name), (P(3, 4), P(3, 4)), note="same")
    for name in ["add_", "mul_", "sub_", "div_", "pow_"]:
        yield Spec(name, lambda x, y, name=name: getattr(x, name)(y), (P(3, 4), P(4)), writes=(0,))
    yield Spec("add", lambda x, y, out: torch.add(x, y, out=out), (R(3, 4), R(4), Z(3, 4)), writes=(2,), note="out")
    yield Spec("lerp", torch.lerp, (R(3, 4), R(3, 4), R(3, 4)))
    yield Spec("addcmul", torch.addcmul, (R(3, 4), R(4), R(3, 1)))
    yield Spec("addcdiv", torch.addcdiv, (R(3, 4), R(4), P(3, 1)))
    yield Spec("addcdiv_", lambda x, a, b: x.addcdiv_(a, b), (R(3, 4), R(4), P(3, 1)), writes=(0,))
    yield Spec("clamp", torch.clamp, (R(3, 4), P(4), P(3, 1)), note="tensors")
    yield Spec("where", torch.where, (B(3, 4), R(3, 4), R(4)))
    yield Spec("where", torch.where, (B(3, 1), R(4), R()), note="broadcast")
    yield Spec("masked_fill", lambda x, m, v: x.masked_fill(m, v), (R(3, 4), B(4), R()))
    yield Spec("masked_fill_", lambda x, m: x.masked_fill_(m, 1.0), (R(2, 3, 4), B(3, 1)), writes=(0,))
    yield Spec("prelu", F.prelu, (R(2, 3, 4), P(3)))
    yield Spec("prelu", F.prelu, (R(2, 3, 4), P(1)), note="one")
    yield Spec("dropout", lambda x: F.dropout(x, 0.4, True), (R(4, 5),))
    yield Spec("native_dropout", lambda x: torch.native_dropout(x, 0.4, True), (R(4, 5),))
    yield Spec("feature_dropout", lambda x: F.dropout2d(x, 0.4, True), (R(2, 3, 2, 2),))
    yield Spec("to", lambda x: x.to(torch.float64), (R(3, 4),))
    yield Spec("clone", lambda x: x.clone(), (R(3, 4),))
    yield Spec("clone", lambda x: x.clone(memory_format=torch.channels_last), (R(2, 3, 4, 5),), note="channels_last")
    yield Spec("contiguous", lambda x: x.contiguous(), (lambda: torch.randn(4, 3).t(),))
    yield Spec("copy_", lambda x, y: x.copy_(y), (R(3, 4), R(4)), writes=(0,))
    yield Spec("fill_", lambda x, v: x.fill_(v), (R(3, 4), R()), writes=(0,))
    yield Spec("special_entr", torch.special.entr, (P(3, 4),))
    yield Spec("polar", torch.polar, (P(3, 4), R(3, 4)))
    yield Spec("isclose", torch.isclose, (R(3), R(3)))


def shapes() -> Iterator[Spec]:
    yield Spec("reshape", lambda x: x.reshape(12), (lambda: torch.randn(4, 3).t(),), note="copies")
    yield Spec("flatten", lambda x: x.flatten(), (lambda: torch.randn(4, 3).t(),), note="copies")
    for dim in (0, 1, -1):
        yield Spec("cat", lambda *x, dim=dim: torch.cat(x, dim), (R(2, 3), R(2, 3), R(2, 3)), note=f"dim {dim}")
        yield Spec("stack", lambda *x, dim=dim: torch.stack(x, dim), (R(2, 3), R(2, 3), R(2, 3)), note=f"dim {dim}")
    yield Spec("cat", lambda *x: torch.cat(x, 1), (R(2, 1, 2), R(2, 4, 2), R(2, 2, 2)), note="uneven")
    yield Spec("cat", lambda *x: torch.cat(x, 0), (Z(0), R(2, 2), R(3, 2)), note="empty")
    yield Spec("hstack", lambda *x: torch.hstack(x), (R(2, 3), R(2, 1)))
    yield Spec("hstack", lambda *x: torch.hstack(x), (R(2), R(3)), note="1d")
    yield Spec("vstack", lambda *x: torch.vstack(x), (R(3), R(2, 3)))
    yield Spec("dstack", lambda *x: torch.dstack(x), (R(2, 3), R(2, 3, 2)))
    yield Spec("column_stack", lambda *x: torch.column_stack(x), (R(3), R(3, 2)))
    yield Spec("block_diag", lambda *x: torch.block_diag(*x), (R(2, 3), R(2), R(1, 2)))
    yield Spec("flip", lambda x: torch.flip(x, (0, -1)), (R(3, 2, 4),))
    yield Spec("fliplr", torch.fliplr, (R(3, 4),))
    yield Spec("roll", lambda x: torch.roll(x, (1, -2), (0, 1)), (R(3, 5),))
    yield Spec("roll", lambda x: torch.roll(x, 5), (R(3, 4),), note="flat")
    for k in (1, 2, 3, -1):
        yield Spec("rot90", lambda x, k=k: torch.rot90(x, k, (0, 2)), (R(3, 2, 4),), note=str(k))
    yield Spec("repeat", lambda x: x.repeat(2, 1, 3), (R(3, 4),))
    yield Spec("tile", lambda x: torch.tile(x, (2, 3)), (R(3, 4),))
    yield Spec("repeat_interleave", lambda x: torch.repeat_interleave(x, 3, 1), (R(3, 4),))
    yield Spec("repeat_interleave", lambda x: torch.repeat_interleave(x, 2), (R(3, 4),), note="flat")
    yield Spec("repeat_interleave", lambda x, n: torch.repeat_interleave(x, n, 0), (R(3, 4), V(2, 0, 3)), note="counts")
    yield Spec("tril", torch.tril, (R(2, 4, 5),))
    yield Spec("triu", lambda x: torch.triu(x, -1), (R(5, 4),))
    yield Spec("triu_", lambda x: x.triu_(1), (R(4, 4),), writes=(0,))
    yield Spec("diag", torch.diag, (R(3),), note="to matrix")
    yield Spec("diagonal_copy", lambda x: torch.diagonal_copy(x, 1, 0, 2), (R(3, 2, 4),))
    yield Spec("diag_embed", lambda x: torch.diag_embed(x, 1, 0, 2), (R(2, 3),))
    yield Spec("diagflat", lambda x: torch.diagflat(x, -1), (R(2, 2),))
    yield Spec("trace", torch.trace, (R(3, 4),))
    yield Spec("pad", lambda x: F.pad(x, (1, 2, 0, 1), value=2.0), (R(2, 3, 4),), note="constant")
    for mode in ("reflect", "replicate", "circular"):
        yield Spec("pad", lambda x, mode=mode: F.pad(x, (1, 2), mode=mode), (R(2, 3, 4),), note=mode)
    yield Spec("constant_pad_nd", lambda x: torch.constant_pad_nd(x, (1, -1, 2, 0)), (R(3, 4),))
    yield Spec("reflection_pad2d", lambda x: aten.reflection_pad2d(x, (1, 2, 2, 0)), (R(2, 3, 4, 4),))
    yield Spec("replication_pad1d", lambda x: aten.replication_pad1d(x, (2, 1)), (R(2, 3, 4),))
    yield Spec("pixel_shuffle", lambda x: F.pixel_shuffle(x, 2), (R(2, 8, 2, 3),))
    yield Spec("pixel_unshuffle", lambda x: F.pixel_unshuffle(x, 2), (R(2, 2, 4, 6),))
    yield Spec("channel_shuffle", lambda x: F.channel_shuffle(x, 3), (R(2, 6, 2, 2),))
    yield Spec("im2col", lambda x: F.unfold(x, 2), (R(2, 3, 4, 4),))
    yield Spec("col2im", lambda x: F.fold(x, (4, 4), 2), (R(2, 12, 9),))
    yield Spec("select_scatter", lambda x, s: torch.select_scatter(x, s, 1, -2), (R(3, 4, 2), R(3, 2)))
    yield Spec("slice_scatter", lambda x, s: torch.slice_scatter(x, s, 1, 1, 6, 2), (R(3, 7), R(3, 3)))
    yield Spec("diagonal_scatter", lambda x, s: torch.diagonal_scatter(x, s, 1), (R(3, 4), R(3)))
    yield Spec("permute_copy", lambda x: torch.permute_copy(x, (2, 0, 1)), (R(2, 3, 4),))
    yield Spec("transpose_copy", lambda x: torch.transpose_copy(x, 0, -1), (R(2, 3, 4),))
    yield Spec("slice_copy", lambda x: torch.slice_copy(x, 1, -5, 6, 2), (R(2, 7),))
    yield Spec("select_copy", lambda x: torch.select_copy(x, 1, -2), (R(2, 7, 2),))
    yield Spec("narrow_copy", lambda x: torch.narrow_copy(x, 1, 2, 3), (R(2, 7),))
    yield Spec("split_copy", lambda x: torch.split_copy(x, 3, 1), (R(2, 7),))
    yield Spec("unbind_copy", lambda x: torch.unbind_copy(x, 1), (R(2, 3, 2),))
    yield Spec("expand_copy", lambda x: torch.expand_copy(x, (2, 3, 4)), (R(3, 1),))
    yield Spec("unfold_copy", lambda x: torch.unfold_copy(x, 1, 3, 2), (R(2, 8, 2),))


def indexing() -> Iterator[Spec]:
    yield Spec("index", lambda x, i: x[i], (R(4, 3), I(4, 5)))
    yield Spec("index", lambda x, i: x[i], (R(4, 3), I(4, 2, 3, low=-4)), note="2d index")
    yield Spec("index", lambda x, i, j: x[i, j], (R(4, 3, 2), I(4, 5), I(3, 5)), note="two")
    yield Spec("index", lambda x, i, j: x[i, j], (R(4, 3, 2), I(4, 5, 1), I(3, 2)), note="two, broadcast")
    yield Spec("index", lambda x, i: x[:, i], (R(4, 3, 2), I(3, 5)), note="slice first")
    yield Spec("index", lambda x, i, j: x[:, i, j], (R(2, 4, 3, 2), I(4, 5), I(3, 5)), note="adjacent")
    yield Spec("index", lambda x, i, j: aten.index(x, [i, None, j]), (R(4, 3, 2), I(4, 5), I(2, 5)), note="parted")
    yield Spec(
        "index",
        lambda x, i, j: aten.index(x, [None, i, None, j]),
        (R(2, 4, 3, 2), I(4, 3, 1), I(2, 2)),
        note="parted 2",
    )
    yield Spec("index", lambda x, m: x[m], (R(4, 3), B(4)), note="row mask")
    yield Spec("index", lambda x, m: x[m], (R(4, 3), B(4, 3)), note="mask")
    yield Spec("index", lambda x, m: x[:, m], (R(2, 4, 3), B(4, 3)), note="slice, mask")
    yield Spec(
        "index",
        lambda x, m, i: aten.index(x, [m, None, i]),
        (R(3, 2, 4), V(True, False, True), I(4, 2)),
        note="mask, int",
    )
    yield Spec("index_put_", lambda x, i, v: x.index_put_((i,), v), (R(5, 3), K(5), R(5, 3)), writes=(0,))
    yield Spec(
        "index_put_", lambda x, i, v: x.index_put_((i,), v), (R(6, 3), V(4, 1), R(3)), writes=(0,), note="broadcast"
    )
    yield Spec("index_put_", lambda x, i, v: x.index_put_((i,), v), (R(6, 3), V(4, 1), R()), writes=(0,), note="one")
    yield Spec(
        "index_put_",
        lambda x, i, v: x.index_put_((i,), v, True),
        (R(4, 3), I(4, 6), R(6, 3)),
        writes=(0,),
        note="accumulate",
    )
    yield Spec(
        "index_put_",
        lambda x, i, j, v: aten.index_put_(x, [i, None, j], v, True),
        (R(4, 3, 2), I(4, 5), I(2, 5), R(5, 1)),
        writes=(0,),
        note="parted, broadcast, accumulate",
    )
    yield Spec("index_put_", lambda x, m, v: x.index_put_((m,), v), (R(4, 3), B(4, 3), R()), writes=(0,), note="mask")
    yield Spec("index_put", lambda x, i, v: torch.index_put(x, (i,), v), (R(6, 3), V(4, -5), R(2, 1)), note="new")
    yield Spec(
        "_index_put_impl_",
        lambda x, i, v: torch._index_put_impl_(x, (i,), v, True),
        (R(4, 3), I(4, 6), R(6, 3)),
        writes=(0,),
    )
    yield Spec("index_select", lambda x, i: torch.index_select(x, 1, i), (R(3, 4, 2), I(4, 5)))
    yield Spec("gather", lambda x, i: torch.gather(x, 1, i), (R(3, 4), I(4, 2, 6)))
    yield Spec("take_along_dim", lambda x, i: torch.take_along_dim(x, i, 1), (R(3, 4), I(4, 3, 2)))
    yield Spec("take_along_dim", lambda x, i: torch.take_along_dim(x, i, 1), (R(3, 4), I(4, 1, 2)), note="broadcast")
    yield Spec("take_along_dim", lambda x, i: torch.take_along_dim(x, i), (R(3, 4), I(12, 5)), note="flat")
    yield Spec("take", torch.take, (R(3, 4), I(12, 2, 3, low=-12)))
    yield Spec("masked_select", torch.masked_select, (R(3, 4), B(3, 4)))
    yield Spec("masked_select", torch.masked_select, (R(4), B(3, 1)), note="broadcast")
    yield Spec("embedding", lambda w, i: F.embedding(i, w), (R(6, 3), I(6, 2, 4)))
    yield Spec("embedding_bag", lambda w, i, o: F.embedding_bag(i, w, o, mode="sum"), (R(6, 3), I(6, 7), V(0, 3)))
    yield Spec("scatter", lambda x, i, s: torch.scatter(x, 1, i, s), (R(3, 5), K(2, 4), R(3, 4)))
    yield Spec("scatter_", lambda x, i, s: x.scatter_(1, i, s), (R(3, 5), K(2, 4), R(3, 4)), writes=(0,))
    yield Spec("scatter", lambda x, i: torch.scatter(x, 0, i, 3.0), (R(3, 5), I(3, 2, 4)), note="value")
    yield Spec(
        "scatter",
        lambda x, i, s: torch.scatter(x, 1, i, s, reduce="multiply"),
        (R(3, 5), I(5, 3, 6), R(3, 6)),
        note="reduce",
    )
    yield Spec("scatter_add", lambda x, i, s: torch.scatter_add(x, 0, i, s), (R(3, 5), I(3, 6, 4), R(7, 5)))
    yield Spec(
        "scatter_reduce", lambda x, i, s: torch.scatter_reduce(x, 1, i, s, "amax"), (R(3, 5), I(5, 3, 6), R(3, 6))
    )
    yield Spec("index_add", lambda x, i, s: torch.index_add(x, 1, i, s), (R(3, 5), I(5, 7), R(3, 7)))
    yield Spec("index_add_", lambda x, i, s: x.index_add_(0, i, s), (R(4, 3), I(4, 7), R(7, 3)), writes=(0,))
    yield Spec("index_copy", lambda x, i, s: torch.index_copy(x, 1, i, s), (R(3, 5), V(3, 0), R(3, 2)))
    yield Spec("index_fill", lambda x, i: torch.index_fill(x, 1, i, 2.0), (R(3, 5), V(3, 0)))
    yield Spec("put_", lambda x, i, s: x.put_(i, s), (R(3, 4), V(3, -2, 7), R(3)), writes=(0,))
    yield Spec("put_", lambda x, i, s: x.put_(i, s, True), (R(3, 4), I(12, 5), R(5)), writes=(0,), note="accumulate")
    yield Spec("masked_scatter", lambda x, m, s: x.masked_scatter(m, s), (R(3, 4), B(3, 4), R(12)))
    yield Spec("masked_scatter_", lambda x, m, s: x.masked_scatter_(m, s), (R(3, 4), B(4), R(4, 3)), writes=(0,))


def reductions() -> Iterator[Spec]:
    for name in ["sum", "mean", "std", "var", "logsumexp", "amax", "amin", "prod", "nansum", "argmax", "any"]:
        fn = getattr(torch, name)
        yield Spec(name, lambda x, fn=fn: fn(x, 1), (P(3, 4, 2),), note="dim 1")
        yield Spec(name, lambda x, fn=fn: fn(x, -1, keepdim=True), (P(3, 4),), note="keepdim")
        if name not in ("logsumexp", "prod", "argmax", "any"):
            yield Spec(name, lambda x, fn=fn: fn(x, (0, -1)), (P(3, 4, 2),), note="dims")
        if name != "logsumexp":
            yield Spec(name, lambda x, fn=fn: fn(x), (P(3, 4),), note="all")
    yield Spec("var_mean", lambda x: torch.var_mean(x, 1), (R(3, 4),))
    yield Spec("std_mean", lambda x: torch.std_mean(x, (0, 2), keepdim=True), (R(3, 4, 2),))
    yield Spec("linalg_vector_norm", lambda x: torch.linalg.vector_norm(x, 3.0, 1), (R(3, 4),))
    yield Spec("linalg_norm", lambda x: torch.linalg.norm(x), (R(3, 4),))
    yield Spec("norm", lambda x: aten.norm(x, 2, [1]), (R(3, 4),))
    yield Spec("linalg_matrix_norm", lambda x: torch.linalg.matrix_norm(x), (R(2, 3, 4),))
    for name in ["max", "min", "median", "kthvalue", "mode"]:
        args = (2, 1) if name == "kthvalue" else (1,)
        yield Spec(name, lambda x, name=name, args=args: getattr(torch, name)(x, *args), (R(3, 4),), note="dim")
    for name in ["max", "min", "median"]:
        yield Spec(name, lambda x, name=name: getattr(torch, name)(x), (R(3, 4),), note="all")
    yield Spec("max", torch.max, (R(3, 1), R(4)), note="two")
    yield Spec("aminmax", lambda x: torch.aminmax(x, dim=0), (R(3, 4),))
    yield Spec("quantile", lambda x, q: torch.quantile(x, q, dim=1), (R(3, 4), V(0.25, 0.5)))
    yield Spec("sort", lambda x: torch.sort(x, 0), (R(3, 4),))
    yield Spec("topk", lambda x: torch.topk(x, 2, 1), (R(3, 4),))
    yield Spec("argsort", lambda x: torch.argsort(x, 1), (R(3, 4),))
    for name in ["softmax", "log_softmax"]:
        yield Spec(name, lambda x, name=name: getattr(torch, name)(x, 1), (R(3, 4, 2),))
        yield Spec(name, lambda x, name=name: getattr(torch, name)(x, -1), (R(3, 4),), note="last")
    for name in ["cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"]:
        yield Spec(name, lambda x, name=name: getattr(torch, name)(x, 1), (R(3, 5, 2),))
    yield Spec("cumsum_", lambda x: x.cumsum_(-1), (R(3, 5),), writes=(0,))
    yield Spec("glu", lambda x: F.glu(x, 1), (R(3, 6, 2),))
    yield Spec("cosine_similarity", lambda x, y: F.cosine_similarity(x, y, 1), (R(3, 4, 2), R(4, 1)))
    yield Spec("pairwise_distance", F.pairwise_distance, (R(3, 4), R(4)))
    yield Spec("linalg_cross", lambda x, y: torch.linalg.cross(x, y), (R(2, 3), R(1, 3)))
    yield Spec("linalg_vecdot", torch.linalg.vecdot, (R(2, 3), R(3)))
    yield Spec("renorm", lambda x: torch.renorm(x, 2, 1, 0.5), (R(3, 4),))
    yield Spec("diff", lambda x: torch.diff(x, dim=1), (R(3, 4),))
    yield Spec("fft_fft", lambda x: torch.fft.fft(x, dim=0), (R(4, 3),))
    yield Spec("fft_rfft2", torch.fft.rfft2, (R(2, 4, 3),))


def norms() -> Iterator[Spec]:
    yield Spec("layer_norm", lambda x, w, b: F.layer_norm(x, (4,), w, b), (R(2, 3, 4), R(4), R(4)))
    yield Spec(
        "layer_norm", lambda x, w, b: F.layer_norm(x, (3, 4), w, b), (R(2, 3, 4), R(3, 4), R(3, 4)), note="two dims"
    )
    yield Spec(
        "native_layer_norm", lambda x, w, b: torch.native_layer_norm(x, (4,), w, b, 1e-5), (R(2, 3, 4), R(4), R(4))
    )
    yield Spec("rms_norm", lambda x, w: F.rms_norm(x, (4,), w), (R(2, 3, 4), R(4)))
    yield Spec("group_norm", lambda x, w, b: F.group_norm(x, 2, w, b), (R(2, 4, 3), R(4), R(4)))
    yield Spec(
        "native_group_norm",
        lambda x, w, b: torch.native_group_norm(x, w, b, 2, 4, 3, 2, 1e-5),
        (R(2, 4, 3), R(4), R(4)),
    )
    yield Spec(
        "batch_norm",
        lambda x, w, b, m, v: F.batch_norm(x, m, v, w, b, True),
        (R(3, 4, 2), R(4), R(4), Z(4), P(4)),
        note="training",
    )
    yield Spec(
        "batch_norm",
        lambda x, w, b, m, v: F.batch_norm(x, m, v, w, b),
        (R(3, 4, 2), R(4), R(4), R(4), P(4)),
        note="eval",
    )
    yield Spec(
        "_native_batch_norm_legit",
        lambda x, w, b, m, v: torch._native_batch_norm_legit(x, w, b, m, v, True, 0.1, 1e-5),
        (R(3, 4, 2), R(4), R(4), Z(4), P(4)),
        writes=(3, 4),
    )
    yield Spec("instance_norm", lambda x, w, b: F.instance_norm(x, None, None, w, b), (R(2, 3, 4), R(3), R(3)))
    yield Spec("_weight_norm", lambda v, g: torch._weight_norm(v, g, 0), (R(3, 4), R(3, 1)))


def products() -> Iterator[Spec]:
    for a, b in (
        ((3, 4), (4, 2)), ((4,), (4,)), ((4,), (4, 2)), ((3, 4), (4,)), ((2, 3, 4), (2, 4, 5)), ((2, 3, 4), (4, 5)),
        ((3, 4), (2, 4, 5)), ((5, 1, 3, 4), (2, 4, 3)), ((4,), (2, 4, 3)), ((2, 3, 4), (4,)),
    ):  # fmt: skip
        yield Spec("matmul", torch.matmul, (R(*a), R(*b)), note=f"{a} {b}")
    yield Spec("mm", torch.mm, (R(3, 4), R(4, 2)))
    yield Spec("mm", lambda a, b, out: torch.mm(a, b, out=out), (R(3, 4), R(4, 2), Z(3, 2)), writes=(2,), note="out")
    yield Spec("bmm", torch.bmm, (R(2, 3, 4), R(2, 4, 2)))
    yield Spec("mv", torch.mv, (R(3, 4), R(4)))
    yield Spec("dot", torch.dot, (R(4), R(4)))
    yield Spec("addmm", torch.addmm, (R(2), R(3, 4), R(4, 2)))
    yield Spec("addmm", lambda x, a, b: torch.addmm(x, a, b, beta=0), (R(3, 2), R(3, 4), R(4, 2)), note="beta 0")
    yield Spec("addmm_", lambda x, a, b: x.addmm_(a, b), (R(3, 2), R(3, 4), R(4, 2)), writes=(0,))
    yield Spec("baddbmm", torch.baddbmm, (R(2, 1, 5), R(2, 3, 4), R(2, 4, 5)))
    yield Spec("addbmm", torch.addbmm, (R(3, 5), R(2, 3, 4), R(2, 4, 5)))
    yield Spec("addmv", torch.addmv, (R(3), R(3, 4), R(4)))
    yield Spec("addr", torch.addr, (R(3, 4), R(3), R(4)))
    yield Spec("outer", torch.outer, (R(3), R(4)))
    yield Spec("inner", torch.inner, (R(2, 3, 4), R(5, 4)))
    yield Spec("tensordot", lambda a, b: torch.tensordot(a, b, ([0, 2], [1, 0])), (R(2, 3, 4), R(4, 2, 5)))
    yield Spec("kron", torch.kron, (R(2, 3), R(3, 2)))
    yield Spec("linear", F.linear, (R(2, 3, 4), R(5, 4), R(5)))
    yield Spec("linear", F.linear, (R(4), R(5, 4)), note="vector")
    yield Spec("bilinear", F.bilinear, (R(2, 3), R(2, 4), R(5, 3, 4), R(5)))
    yield Spec("cdist", lambda a, b: aten.cdist(a, b), (R(2, 3, 4), R(2, 5, 4)))
    yield Spec("einsum", lambda a, b: aten.einsum("ij,jk->ki", [a, b]), (R(2, 3), R(3, 4)))
    yield Spec("linalg_det", torch.linalg.det, (R(2, 3, 3),))
    yield Spec("linalg_inv", lambda x: torch.linalg.inv_ex(x)[0], (R(2, 3, 3),), note="ex")
    attention = F.scaled_dot_product_attention
    qkv = (R(2, 3, 4, 5), R(2, 3, 6, 5), R(2, 3, 6, 5))
    yield Spec("scaled_dot_product_attention", attention, qkv)
    yield Spec("scaled_dot_product_attention", attention, (*qkv, R(4, 6)), note="mask")
    yield Spec("scaled_dot_product_attention", lambda q, k, v: attention(q, k, v, is_causal=True), qkv, note="causal")
    yield Spec(
        "scaled_dot_product_attention",
        lambda q, k, v: attention(q, k, v, enable_gqa=True),
        (R(2, 4, 3, 5), R(2, 2, 3, 5), R(2, 2, 3, 5)),
        note="grouped",
    )
    yield Spec(
        "lstm_cell",
        lambda x, h, c, wi, wh: aten.lstm_cell(x, [h, c], wi, wh),
        (R(2, 3), R(2, 4), R(2, 4), R(16, 3), R(16, 4)),
    )


def windows() -> Iterator[Spec]:
    yield Spec("conv1d", F.conv1d, (R(2, 3, 7), R(4, 3, 3), R(4)))
    yield Spec("conv2d", lambda x, w, b: F.conv2d(x, w, b, padding=1), (R(2, 3, 6, 6), R(4, 3, 3, 3), R(4)))
    yield Spec("conv2d", lambda x, w: F.conv2d(x, w, groups=2), (R(2, 4, 6, 6), R(6, 2, 3, 3)), note="groups")
    yield Spec("conv2d", lambda x, w: F.conv2d(x, w, groups=4), (R(2, 4, 6, 6), R(4, 1, 3, 3)), note="depthwise")
    yield Spec("conv2d", F.conv2d, (R(3, 6, 6), R(4, 3, 3, 3)), note="no batch")
    yield Spec("conv3d", F.conv3d, (R(2, 2, 4, 4, 4), R(3, 2, 2, 2, 2), R(3)))
    yield Spec("conv_transpose1d", F.conv_transpose1d, (R(2, 3, 7), R(3, 4, 3), R(4)))
    yield Spec(
        "conv_transpose2d",
        lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2, groups=2),
        (R(2, 4, 3, 3), R(4, 3, 3, 3), R(6)),
        note="groups",
    )
    for nd, shape in ((1, (2, 3, 9)), (2, (2, 3, 7, 8)), (3, (1, 2, 5, 6, 5))):
        pool = getattr(F, f"avg_pool{nd}d")
        yield Spec(f"avg_pool{nd}d", lambda x, pool=pool: pool(x, 3, 2, 1), (R(*shape),))
        yield Spec(
            f"max_pool{nd}d",
            lambda x, nd=nd: getattr(aten, f"max_pool{nd}d")(x, [2] * nd, [1] * nd, [1] * nd, [2] * nd),
            (R(*shape),),
        )
        adaptive = getattr(F, f"adaptive_avg_pool{nd}d")
        yield Spec(f"adaptive_avg_pool{nd}d", lambda x, f=adaptive: f(x, 4), (R(*shape),))
    yield Spec(
        "max_pool2d_with_indices", lambda x: aten.max_pool2d_with_indices(x, [3, 2], ceil_mode=True), (R(2, 3, 7, 8),)
    )
    yield Spec("adaptive_max_pool2d", lambda x: aten.adaptive_max_pool2d(x, [3, 4]), (R(2, 3, 7, 8),))
    yield Spec("upsample_nearest1d", lambda x: F.interpolate(x, scale_factor=2.5), (R(2, 3, 20),))
    for mode in ("nearest", "bilinear", "bicubic"):
        for size in ((31, 9), (7, 40)):
            yield Spec(
                f"upsample_{mode}2d" if mode != "nearest" else "upsample_nearest2d",
                lambda x, mode=mode, size=size: F.interpolate(x, size, mode=mode),
                (R(1, 2, 16, 21),),
                note=f"{size}",
            )
    yield Spec(
        "upsample_bilinear2d",
        lambda x: F.interpolate(x, (30, 40), mode="bilinear", align_corners=True),
        (R(1, 2, 16, 21),),
        note="corners",
    )
    yield Spec(
        "_upsample_bilinear2d_aa",
        lambda x: F.interpolate(x, (5, 9), mode="bilinear", antialias=True),
        (R(1, 2, 31, 26),),
    )
    yield Spec(
        "grid_sampler",
        lambda x, g: F.grid_sample(x, g, align_corners=False),
        (R(2, 3, 4, 5), lambda: torch.rand(2, 3, 2, 2) * 2 - 1),
    )


def losses() -> Iterator[Spec]:
    for reduction in ("none", "mean", "sum"):
        for name in [
            "mse_loss",
            "l1_loss",
            "smooth_l1_loss",
            "huber_loss",
            "binary_cross_entropy_with_logits",
            "kl_div",
            "soft_margin_loss",
        ]:
            fn = getattr(F, name)
            yield Spec(
                name,
                lambda x, y, f=fn, r=reduction: f(x, y, reduction=r),
                (R(3, 4), P(3, 4)),
                note=reduction,
            )
        yield Spec(
            "binary_cross_entropy",
            lambda x, y, w, r=reduction: F.binary_cross_entropy(x, y, w, reduction=r),
            (P(3, 4), P(3, 4), P(3, 4)),
            note=reduction,
        )
        for name, op in (("nll_loss", "nll_loss_nd"), ("cross_entropy", "cross_entropy_loss")):
            fn = getattr(F, name)
            yield Spec(
                op, lambda x, t, w, f=fn, r=reduction: f(x, t, w, reduction=r), (R(5, 4), I(4, 5), P(4)), note=reduction
            )
            yield Spec(
                op,
                lambda x, t, f=fn, r=reduction: f(x, t, reduction=r, ignore_index=1),
                (R(5, 4), V(0, 1, 3, 1, 2)),
                note=f"{reduction}, ignore",
            )
            yield Spec(
                op,
                lambda x, t, f=fn, r=reduction: f(x, t, reduction=r),
                (R(2, 4, 3, 2), I(4, 2, 3, 2)),
                note=f"{reduction}, 2d",
            )
        yield Spec(
            "cross_entropy_loss",
            lambda x, t, r=reduction: F.cross_entropy(x, t, reduction=r, label_smoothing=0.1),
            (R(5, 4), P(5, 4)),
            note=f"{reduction}, probabilities",
        )
        yield Spec(
            "cosine_embedding_loss",
            lambda x, y, t, r=reduction: F.cosine_embedding_loss(x, y, t, reduction=r),
            (R(3, 4), R(3, 4), V(1.0, -1.0, 1.0)),
            note=reduction,
        )
    yield Spec(
        "ctc_loss",
        lambda x, t: aten.ctc_loss(x, t, [5, 5], [2, 2], 0, 0),
        (lambda: torch.randn(5, 2, 4).log_softmax(2), I(4, 2, 2, low=1)),
    )


def backwards() -> Iterator[Spec]:
    simple = "threshold_backward:0.1 sigmoid_backward tanh_backward gelu_backward silu_backward hardswish_backward"
    for entry in simple.split():
        name, _, number = entry.partition(":")
        args = (float(number),) if number else ()
        yield Spec(name, lambda g, x, name=name, args=args: getattr(aten, name)(g, x, *args), (R(3, 4), R(3, 4)))
    for name in ("_softmax_backward_data", "_log_softmax_backward_data"):
        yield Spec(name, lambda g, y, name=name: getattr(aten, name)(g, y, 1, torch.float32), (R(3, 4, 2), R(3, 4, 2)))
    yield Spec(
        "native_layer_norm_backward",
        lambda g, x, m, s, w, b: aten.native_layer_norm_backward(g, x, [4], m, s, w, b, [True] * 3),
        (R(2, 3, 4), R(2, 3, 4), R(2, 3, 1), R(2, 3, 1), R(4), R(4)),
    )
    yield Spec(
        "_fused_rms_norm_backward",
        lambda g, x, s, w: aten._fused_rms_norm_backward(g, x, [4], s, w, [True] * 2),
        (R(2, 3, 4), R(2, 3, 4), R(2, 3, 1), R(4)),
    )
    yield Spec(
        "native_group_norm_backward",
        lambda g, x, m, s, w: aten.native_group_norm_backward(g, x, m, s, w, 2, 4, 3, 2, [True] * 3),
        (R(2, 4, 3), R(2, 4, 3), R(2, 2), R(2, 2), R(4)),
    )
    yield Spec(
        "native_batch_norm_backward",
        lambda g, x, w, m, s: aten.native_batch_norm_backward(g, x, w, None, None, m, s, True, 1e-5, [True] * 3),
        (R(3, 4, 2), R(3, 4, 2), R(4), R(4), P(4)),
    )
    for groups, transposed in ((1, False), (2, False), (4, False), (1, True), (2, True)):
        out = 4 if groups == 4 else 6
        weight = (4, out // groups, 3, 3) if transposed else (out, 4 // groups, 3, 3)
        grad = (2, out, 8, 8) if transposed else (2, out, 4, 4)
        yield Spec(
            "convolution_backward",
            lambda g, x, w, groups=groups, transposed=transposed, out=out: aten.convolution_backward(
                g, x, w, [out], [1, 1], [0, 0], [1, 1], transposed, [0, 0], groups, [True] * 3
            ),
            (R(*grad), R(2, 4, 6, 6), R(*weight)),
            note=f"groups {groups}{', transposed' if transposed else ''}",
        )
    yield Spec("mse_loss_backward", lambda g, x, y: aten.mse_loss_backward(g, x, y, 1), (R(), R(3, 4), R(3, 4)))
    for reduction, grad in ((0, R(5)), (1, R())):
        yield Spec(
            "nll_loss_backward",
            lambda g, x, t, w, n, r=reduction: aten.nll_loss_backward(g, x, t, w, r, 1, n),
            (grad, R(5, 4), V(0, 1, 3, 1, 2), P(4), P()),
            note=f"reduction {reduction}",
        )
        yield Spec(
            "nll_loss2d_backward",
            lambda g, x, t, n, r=reduction: aten.nll_loss2d_backward(g, x, t, None, r, 1, n),
            (R(2, 3, 2) if reduction == 0 else grad, R(2, 4, 3, 2), I(4, 2, 3, 2), P()),
            note=f"reduction {reduction}",
        )
    yield Spec(
        "embedding_dense_backward",
        lambda g, i: aten.embedding_dense_backward(g, i, 5, 2, False),
        (R(2, 4, 3), I(5, 2, 4)),
    )
    yield Spec("native_dropout_backward", lambda g, m: aten.native_dropout_backward(g, m, 2.0), (R(3, 4), B(3, 4)))
    yield Spec("slice_backward", lambda g: aten.slice_backward(g, [3, 7], 1, 1, 6, 2), (R(3, 3),))
    yield Spec("select_backward", lambda g: aten.select_backward(g, [3, 4, 2], 1, -2), (R(3, 2),))
    yield Spec("diagonal_backward", lambda g: aten.diagonal_backward(g, [3, 2, 4], 1, 0, 2), (R(2, 3),))
    yield Spec("unfold_backward", lambda g: aten.unfold_backward(g, [2, 8, 2], 1, 3, 2), (R(2, 3, 2, 3),))
    for keepdim in (False, True):
        yield Spec(
            "value_selecting_reduction_backward",
            lambda g, i, keepdim=keepdim: aten.value_selecting_reduction_backward(g, 1, i, [3, 4, 2], keepdim),
            (R(3, 1, 2), I(4, 3, 1, 2)) if keepdim else (R(3, 2), I(4, 3, 2)),
            note=f"keepdim {keepdim}",
        )
    yield Spec("glu_backward", lambda g, x: aten.glu_backward(g, x, 1), (R(3, 3, 2), R(3, 6, 2)))
    yield Spec("cumprod_backward", lambda g, x, y: aten.cumprod_backward(g, x, 1, y), (R(3, 4), P(3, 4), P(3, 4)))
    yield Spec(
        "max_pool2d_with_indices_backward",
        lambda g, x, i: aten.max_pool2d_with_indices_backward(g, x, [2, 2], [2, 2], [0, 0], [1, 1], False, i),
        (R(1, 2, 2, 3), R(1, 2, 4, 6), lambda: F.max_pool2d(torch.randn(1, 2, 4, 6), 2, return_indices=True)[1]),
    )
    yield Spec(
        "avg_pool2d_backward",
        lambda g, x: aten.avg_pool2d_backward(g, x, [3, 3], [2, 2], [1, 1], False, True, None),
        (R(1, 2, 3, 4), R(1, 2, 5, 7)),
    )
    yield Spec(
        "_adaptive_avg_pool2d_backward",
        lambda g, x: aten._adaptive_avg_pool2d_backward(g, x),
        (R(1, 2, 3, 4), R(1, 2, 5, 7)),
    )
    yield Spec(
        "upsample_bilinear2d_backward",
        lambda g: aten.upsample_bilinear2d_backward(g, [31, 9], [1, 2, 16, 21], False),
        (R(1, 2, 31, 9),),
    )
    yield Spec(
        "reflection_pad1d_backward", lambda g, x: aten.reflection_pad1d_backward(g, x, [2, 1]), (R(2, 3, 7), R(2, 3, 4))
    )
    yield Spec(
        "_scaled_dot_product_flash_attention_for_cpu_backward",
        lambda g, q, k, v, o, s: aten._scaled_dot_product_flash_attention_for_cpu_backward(
            g, q, k, v, o, s, 0.0, False
        ),
        (R(2, 3, 4, 8), R(2, 3, 4, 8), R(2, 3, 6, 8), R(2, 3, 6, 8), R(2, 3, 4, 8), R(2, 3, 4)),
    )
    yield Spec(
        "linear_backward",
        lambda x, g, w: aten.linear_backward(x, g, w, [True] * 3),
        (R(3, 4), R(3, 5), R(5, 4)),
        note="mkldnn only",
    )


def optimizers() -> Iterator[Spec]:
    pair = (R(3), R(2, 2))
    yield Spec("_foreach_add_", lambda a, b, c, d: torch._foreach_add_([a, b], [c, d]), (*pair, *pair), writes=(0, 1))
    yield Spec("_foreach_mul_", lambda a, b: torch._foreach_mul_([a, b], 2.0), pair, writes=(0, 1))
    yield Spec(
        "_foreach_mul_", lambda a, b, c: torch._foreach_mul_([a, b], c), (*pair, R()), writes=(0, 1), note="tensor"
    )
    yield Spec(
        "_foreach_addcdiv_",
        lambda a, b, c, d, e, f: torch._foreach_addcdiv_([a, b], [c, d], [e, f], [0.5, 0.25]),
        (*pair, *pair, P(3), P(2, 2)),
        writes=(0, 1),
    )
    yield Spec(
        "_foreach_lerp_", lambda a, b, c, d: torch._foreach_lerp_([a, b], [c, d], 0.3), (*pair, *pair), writes=(0, 1)
    )
    yield Spec("_foreach_sqrt", lambda a, b: torch._foreach_sqrt([a, b]), (P(3), P(2, 2)))
    yield Spec("_foreach_norm", lambda a, b: torch._foreach_norm([a, b]), pair)
    yield Spec("_foreach_copy_", lambda a, b, c, d: torch._foreach_copy_([a, b], [c, d]), (*pair, *pair), writes=(0, 1))
    for name in ("_fused_adam_", "_fused_adamw_"):
        yield Spec(
            name,
            lambda p, q, g, h, m, n, v, w, s, t, name=name: getattr(torch, name)(
                [p, q], [g, h], [m, n], [v, w], [], [s, t],
                lr=0.1, beta1=0.9, beta2=0.99, weight_decay=0.1, eps=1e-8, amsgrad=False, maximize=False,
            ),
            (*pair, *pair, *pair, P(3), P(2, 2), lambda: torch.tensor(3.0), lambda: torch.tensor(3.0)),
            writes=(0, 1, 2, 3, 4, 5, 6, 7),
        )  # fmt: skip
    yield Spec(
        "_fused_sgd_",
        lambda p, q, g, h, m, n: torch._fused_sgd_(
            [p, q], [g, h], [m, n], weight_decay=0.1, momentum=0.9, lr=0.1, dampening=0.0, nesterov=True,
            maximize=False, is_first_step=False,
        ),
        (*pair, *pair, *pair),
        writes=(0, 1, 2, 3, 4, 5),
    )  # fmt: skip
    yield Spec(
        "_amp_foreach_non_finite_check_and_unscale_",
        lambda a, b, f, s: torch._amp_foreach_non_finite_check_and_unscale_([a, b], f, s),
        (*pair, Z(1), P(1)),
        writes=(0, 1, 2),
    )


SPECS = [
    spec
    for family in (
        pointwise,
        shapes,
        indexing,
        reductions,
        norms,
        products,
        windows,
        losses,
        backwards,
        optimizers,
    )
    for spec in family()
]

# Operators without a kernel for the CPU.
NO_KERNEL = {"linear_backward", "_fused_rms_norm_backward"}


def flat(result: Any) -> list[Tensor]:
    if isinstance(result, Tensor):
        return [result]
    if result is None:
        return []
    return [tensor for entry in result if entry is not None for tensor in flat(entry)]


def run(spec: Spec, tensors: Sequence[Tensor], *, traced: bool) -> list[Tensor]:
    """The outputs, in the order of the record, of a call on clones of these tensors."""
    own = [tensor.clone() for tensor in tensors]
    torch.manual_seed(1)
    if traced:
        with sherlorch.trace():
            result = spec.call(*own)
    else:
        result = spec.call(*own)
    written = [own[k] for k in spec.writes]
    fresh = [tensor for tensor in flat(result) if not any(tensor.data_ptr() == each.data_ptr() for each in written)]
    return [tensor.detach().clone() for tensor in written + fresh]


def changed(before: Tensor, after: Tensor) -> set[int]:
    if before.numel() == 0:
        return set()
    if before.is_complex():
        return changed(before.real, after.real) | changed(before.imag, after.imag)
    if not before.is_floating_point():
        differs = before != after
    else:
        differs = ~((before == after) | (before.isnan() & after.isnan()))
    return set(differs.reshape(-1).nonzero().reshape(-1).tolist())


def finite(tensor: Tensor) -> bool:
    return not (tensor.is_floating_point() or tensor.is_complex()) or bool(torch.isfinite(tensor).all())


@dataclass
class Tightness:
    said: int = 0  # elements in the images
    true: int = 0  # elements that changed under at least one of the pokes
    asked: int = 0


TABLE: dict[str, Tightness] = {}


def check(spec: Spec, generator: torch.Generator) -> None:
    tensors = [make() for make in spec.tensors]
    base = run(spec, tensors, traced=False)
    assert all(map(finite, base)), "the spec must be finite before the poke"
    row = TABLE.setdefault(spec.name, Tightness())
    for i, tensor in enumerate(tensors):
        if not tensor.is_floating_point() or tensor.numel() == 0:
            continue
        picks = torch.randperm(tensor.numel(), generator=generator)[:POKED_ELEMENTS].tolist()
        for element in picks:
            true: dict[int, set[int]] = {}
            images: dict[int, set[int]] = {}
            for poke in POKES:
                poked = [each.clone() for each in tensors]
                poked[i].reshape(-1)[element] = poke
                if poked[i].is_contiguous() is False:  # reshape copied
                    flat_copy = poked[i].reshape(-1).clone()
                    flat_copy[element] = poke
                    poked[i].copy_(flat_copy.reshape(poked[i].shape))
                try:
                    after = run(spec, poked, traced=True)
                except RuntimeError:  # LAPACK refuses some inputs
                    continue
                if all(map(finite, after)):
                    continue  # absorbed: nothing was recorded that could be asked about
                if hasattr(_native, "_last_operator"):
                    operator = _native._last_operator()
                    assert operator.split(".")[0] in (f"aten::{spec.op}", f"aten::{spec.op}_ex"), operator
                for o, (old, new) in enumerate(zip(base, after, strict=True)):
                    differs = changed(old, new)
                    image = _native._last_relation(o, i, [element])
                    assert image is not None, f"no relation of output {o} with input {i}"
                    missing = sorted(differs - set(image))
                    assert not missing, (
                        f"{spec.name}: {poke} in element {element} of input {i} {tuple(tensor.shape)} changed "
                        f"{missing} of output {o} {tuple(old.shape)}, which the map left out; it says {sorted(image)}"
                    )
                    true.setdefault(o, set()).update(differs)
                    images[o] = set(image)
            for o, image in images.items():
                row.asked += 1
                row.said += len(image)
                row.true += len(true[o])


@needs_hook
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_map_holds_every_element_that_changes(spec: Spec) -> None:
    if spec.op in NO_KERNEL:
        pytest.skip("no kernel on the CPU")
    torch.manual_seed(0)
    check(spec, torch.Generator().manual_seed(2))


@needs_hook
def test_table_of_how_much_too_much_the_maps_say(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [(row.said / row.asked, row.true / row.asked, name) for name, row in TABLE.items() if row.asked]
    rows.sort(key=lambda row: row[1] - row[0])
    with capsys.disabled():
        print(f"\n{'said':>8} {'true':>8}  operator (elements an image, averaged; the widest first)")
        for said, true, name in rows:
            if said > true:
                print(f"{said:8.1f} {true:8.1f}  {name}")
        print(f"{sum(said <= true for said, true, _ in rows)} of {len(rows)} exact")


def schema_names() -> set[str]:
    return {
        schema.name.removeprefix("aten::")
        for schema in torch._C._jit_get_all_schemas()
        if schema.name.startswith("aten::")
    }


@pytest.mark.skipif(not hasattr(_native, "_mapped_operators"), reason="no _native._mapped_operators")
def test_every_operator_in_the_tables_exists() -> None:
    names = schema_names()
    unknown = [name for name in _native._mapped_operators() if name not in names and f"{name}_" not in names]
    assert not unknown


def test_specs_name_operators_that_exist() -> None:
    names = schema_names()
    assert not [spec.name for spec in SPECS if spec.op not in names]
    assert len(SPECS) >= 150
