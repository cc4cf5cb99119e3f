"""The ops that a diagnosis is made of, as frozen values."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_next_seq = itertools.count()


@dataclass(frozen=True, eq=False, repr=False)
class OpNode:
    """One op: one call of one operator, as far as one tensor that it wrote is concerned.

    Plain data: no tensor and no module is kept alive. Two nodes are equal if they are the same
        object; within a report
    each op has one node, shared by all paths and parents that name it.

    Attributes:
        seq: The op's number; numbers grow in the order in which ops ran, over all threads, and may
            skip values.
        op_name: The operator's name without namespace and overload: "log", "div_", "_foreach_add_".
        shape: Sizes of the tensor that the op wrote, in elements.
        dtype: Its element type, "torch.float32".
        device: Where it lies, "cpu".
        is_finite: No element was NaN or infinite when the op had written it.
        has_nan: At least one element was NaN.
        has_inf: At least one element was +Inf or -Inf.
        parents: The ops that wrote the non-finite values which this one read, where the report
            holds them.
        location: "file.py:12", the user's line that called the op; for a backward op the line of
            its forward op. None if unknown.
        module_path: Qualified name of the nn.Module that ran the op, e.g. "model.encoder.layer3".
            None if unknown.
        inherited: The op wrote nothing (a view): its finiteness is that of the memory it shows.
        extra: What else is known, by the names of docs/json.md: "operator_name", "counts", "phase",
            "transition", ...
    """

    seq: int = field(default_factory=lambda: next(_next_seq))
    op_name: str = ""
    shape: tuple[int, ...] = ()
    dtype: str = ""
    device: str = ""
    is_finite: bool = True
    has_nan: bool = False
    has_inf: bool = False
    parents: list[OpNode] = field(default_factory=list)
    location: str | None = None
    module_path: str | None = None
    inherited: bool = False
    extra: dict[str, Any] = field(default_factory=dict)

    def summary(self) -> str:
        """One line: `[10] log  shape=(4, 16) dtype=torch.float32  [model.layer1]  (train.py:27)  <-- Inf`."""
        kinds = [kind for kind, present in (("NaN", self.has_nan), ("Inf", self.has_inf)) if present]
        words = [f"[{self.seq}] {self.op_name}", f"shape={tuple(self.shape)} dtype={self.dtype}"]
        if self.module_path:
            words.append(f"[{self.module_path}]")
        if self.location:
            words.append(f"({self.location})")
        if kinds:
            words.append(f"<-- {' & '.join(kinds)}")
        return "  ".join(words)

    def __repr__(self) -> str:
        return self.summary()


@dataclass(frozen=True)
class Frame:
    """One Python frame: file, 1-based line, function."""

    file: str = ""
    line: int = 0
    function: str = ""


@dataclass(frozen=True)
class Counts:
    """How many elements of a tensor are of each class, and the coordinates of the first of each (empty if none)."""

    numel: int = 0
    nan: int = 0
    pos_inf: int = 0
    neg_inf: int = 0
    first_nan: tuple[int, ...] = ()
    first_pos_inf: tuple[int, ...] = ()
    first_neg_inf: tuple[int, ...] = ()

    @property
    def bad(self) -> int:
        """How many elements are NaN or infinite."""
        return self.nan + self.pos_inf + self.neg_inf


@dataclass(frozen=True)
class Operand:
    """One tensor or number that the culprit read, or its output.

    Attributes:
        name: The argument's name in the operator's schema ("self", "weight"), or "output".
        is_scalar: A Python number; then `value` holds it and there is no shape.
        value: The number.
        shape: Sizes of the tensor, in elements.
        dtype: Its element type.
        counts: Its elements by class.
        has_range: `min` and `max` are known.
        min: Smallest finite element.
        max: Largest finite element.
        overwritten: An in-place op has replaced what was read: its values are gone, and `min` and `max` are what the
            op that had written it before is known to have kept within.
        label: "parameter encoder.weight", "argument 0"; empty if nothing better than the name is
            known.
    """

    name: str = ""
    is_scalar: bool = False
    value: float = 0.0
    shape: tuple[int, ...] = ()
    dtype: str = ""
    counts: Counts = Counts()
    has_range: bool = False
    min: float = 0.0
    max: float = 0.0
    overwritten: bool = False
    label: str = ""


@dataclass(frozen=True)
class WitnessElement:
    """One non-finite element and the operands that gave it: `text` is "log(0.0) = -inf", `index` its coordinates."""

    index: tuple[int, ...] = ()
    value: float = 0.0
    text: str = ""
    operands: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class BlindSpot:
    """Something that the tracer did not see: a stable key, how often, and a sentence."""

    kind: str = ""
    count: int = 0
    text: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Culprit(OpNode):
    """An op that introduced a non-finite value in the target's history, or the first reader of one that was there.

    Everything of OpNode, and:

    Attributes:
        origin: What first held the value: "op", "input", "parameter", "constant" or
            "uninitialized".
        origin_label: "parameter net.4.running_var", "argument 0 of sub"; empty for "op".
        origin_detail: "buffer", "external write", ...; empty if there is nothing to add.
        cause: The numeric reason in the words of IEEE 754: "invalid operation", "division by zero",
            "overflow", ...
        phase: "forward", "backward", "recompute" or "optimizer".
        autograd_node: "SqrtBackward0" for a backward op; empty otherwise.
        stack: The Python stack at the op, outermost frame first; may be empty.
        operands: What the op read, in the order of its schema, and its output.
        witness: The first non-finite elements with the operands that gave them.
        bad_samples: Indices of dimension 0 with bad elements, at most 16; empty if dimension 0 does
            not tell.
        bad_sample_count: How many such indices there are.
        dropped_samples: Those of them whose bad elements do not reach the target, at most 16.
        dropped_sample_count: How many of them there are.
        headline: One line: "log(0.0) is -inf".
        explanation: Why it happens here, checked against the operands; may be empty.
        help: What usually helps; may be empty.
        times: How often this line did it in the target's history.
        first_call: Which call of this line in the trace was the first to do it, counted from 1; 0 where
            its calls are not all known.
        certain: False where the verdict may be wrong; `doubt` says why.
        doubt: A sentence; empty where the verdict is certain.
    """

    origin: str = "op"
    origin_label: str = ""
    origin_detail: str = ""
    cause: str = "unknown"
    phase: str = "forward"
    autograd_node: str = ""
    stack: tuple[Frame, ...] = ()
    operands: tuple[Operand, ...] = ()
    witness: tuple[WitnessElement, ...] = ()
    bad_samples: tuple[int, ...] = ()
    bad_sample_count: int = 0
    dropped_samples: tuple[int, ...] = ()
    dropped_sample_count: int = 0
    headline: str = ""
    explanation: str = ""
    help: str = ""
    times: int = 1
    first_call: int = 0
    certain: bool = True
    doubt: str = ""


_NODE_KEYS = frozenset(
    [
        "seq",
        "op_name",
        "shape",
        "dtype",
        "device",
        "parents",
        "location",
        "module_path",
        "inherited",
    ]
)


def _frame(data: Mapping[str, Any]) -> Frame:
    return Frame(data["file"], data["line"], data["function"])


def _counts(data: Mapping[str, Any]) -> Counts:
    return Counts(
        numel=data["numel"],
        nan=data["nan"],
        pos_inf=data["pos_inf"],
        neg_inf=data["neg_inf"],
        first_nan=tuple(data["first_nan"]),
        first_pos_inf=tuple(data["first_pos_inf"]),
        first_neg_inf=tuple(data["first_neg_inf"]),
    )


def _operand(data: Mapping[str, Any]) -> Operand:
    # JSON has no NaN and no infinities: they come as "nan", "inf" and "-inf", which float() reads.
    return Operand(
        name=data["name"],
        is_scalar=data["is_scalar"],
        value=float(data["value"]),
        shape=tuple(data["shape"]),
        dtype=data["dtype"],
        counts=_counts(data["counts"]),
        has_range=data["has_range"],
        min=float(data["min"]),
        max=float(data["max"]),
        overwritten=data["overwritten"],
        label=data["label"],
    )


def _witness(data: Mapping[str, Any]) -> WitnessElement:
    return WitnessElement(
        index=tuple(data["index"]),
        value=float(data["value"]),
        text=data["text"],
        operands=tuple((item["name"], float(item["value"])) for item in data["operands"]),
    )


def _node_fields(step: Mapping[str, Any]) -> dict[str, Any]:
    counts = _counts(step["counts"])
    where = step["location"]
    return {
        "seq": step["seq"],
        "op_name": step["op_name"],
        "shape": tuple(step["shape"]),
        "dtype": step["dtype"],
        "device": step["device"],
        "is_finite": counts.bad == 0,
        "has_nan": counts.nan > 0,
        "has_inf": counts.pos_inf + counts.neg_inf > 0,
        "location": f"{where['file']}:{where['line']}" if where else None,
        "module_path": step["module_path"] or None,
        "inherited": step["inherited"],
        "extra": {
            **{key: value for key, value in step.items() if key not in _NODE_KEYS},
            "counts": counts,
            "function": where["function"] if where else "",
        },
    }


def _culprit(data: Mapping[str, Any]) -> Culprit:
    step = data["step"]
    return Culprit(
        **_node_fields(step),
        origin=data["origin"],
        origin_label=data["origin_label"],
        origin_detail=data["origin_detail"],
        cause=data["cause"],
        phase=step["phase"],
        autograd_node=step["autograd_node"],
        stack=tuple(_frame(frame) for frame in data["stack"] if frame is not None),
        operands=tuple(_operand(operand) for operand in data["operands"]),
        witness=tuple(_witness(element) for element in data["witness"]),
        bad_samples=tuple(data["bad_samples"]),
        bad_sample_count=data["bad_sample_count"],
        dropped_samples=tuple(data["dropped_samples"]),
        dropped_sample_count=data["dropped_sample_count"],
        headline=data["headline"],
        explanation=data["explanation"],
        help=data["help"],
        times=data["times"],
        first_call=data["first_call"],
        certain=data["certain"],
        doubt=data["doubt"],
    )


def node_from_step(step: Mapping[str, Any]) -> OpNode:
    """One node alone, without parents."""
    return OpNode(**_node_fields(step))


def _identity(step: Mapping[str, Any]) -> tuple[Any, ...]:
    # Two outputs of one op are two nodes; one output seen from two paths is one, whatever element
    # each path followed.
    counts = step["counts"]
    sizes = tuple(step["shape"])
    return (step["seq"], sizes, step["dtype"], counts["nan"], counts["pos_inf"], counts["neg_inf"])


@dataclass(frozen=True)
class Nodes:
    """All nodes of one diagnosis, linked: what DiagnosisReport is built of."""

    target: OpNode
    culprits: list[Culprit]
    paths: dict[int, list[OpNode]]
    deliberate: list[OpNode]


def link(data: Mapping[str, Any]) -> Nodes:
    """Build the nodes of a diagnosis from its dictionary (docs/json.md), one an op, with parents linked."""
    by_identity: dict[tuple[Any, ...], OpNode] = {}
    parent_seqs: list[tuple[OpNode, Sequence[int]]] = []

    def keep(step: Mapping[str, Any], node: OpNode) -> OpNode:
        by_identity[_identity(step)] = node
        parent_seqs.append((node, step["parents"]))
        return node

    def node_of(step: Mapping[str, Any]) -> OpNode:
        known = by_identity.get(_identity(step))
        return known if known is not None else keep(step, node_from_step(step))

    culprits: list[Culprit] = []
    for entry in data["culprits"]:
        culprit = _culprit(entry)
        culprits.append(culprit)
        keep(entry["step"], culprit)
    paths: dict[int, list[OpNode]] = {}
    for culprit, entry in zip(culprits, data["culprits"], strict=True):
        steps = entry["path"]
        paths[culprit.seq] = [culprit, *(node_of(step) for step in steps[1:])]
    target = node_of(data["target"])
    deliberate = [node_of(step) for step in data["deliberate"]]
    by_seq = {node.seq: node for node, _ in reversed(parent_seqs)}
    for node, seqs in parent_seqs:
        node.parents.extend(by_seq[seq] for seq in seqs if seq in by_seq and seq != node.seq)
    return Nodes(target, culprits, paths, deliberate)
