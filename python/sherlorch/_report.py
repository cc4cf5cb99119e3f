"""The answer to "why is this tensor non-finite?"."""

from __future__ import annotations

import html
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from sherlorch import _native
from sherlorch._cells import cell_labels
from sherlorch._nodes import BlindSpot, Culprit, OpNode, link

# Attributes of a report that are made of the native diagnosis when one of them is first asked for.
_READ_LATER = frozenset(["target", "culprits", "paths", "_data", "_deliberate"])
_reading = threading.RLock()  # a trap may spring within, and read its own report


def also_written(text: str, path: str | os.PathLike[str] | None, *, overwrite: bool) -> str:
    """The text; written to `path` too, if one is given. Raises as `write_text`."""
    if path is not None:
        write_text(path, text, overwrite=overwrite)
    return text


def write_text(path: str | os.PathLike[str], text: str, *, overwrite: bool) -> Path:
    """Write a file whole or not at all.

    Raises:
        FileExistsError: The file is there already and `overwrite` is False.
        OSError: The file can't be written; the message has the path and the reason.
    """
    target = Path(path)
    if not overwrite and target.is_file():
        raise FileExistsError(
            f"{target} exists already; pass overwrite=True (--force on the command line) or give another name"
        )
    _native.write_file(os.fspath(target), text, overwrite)
    return target


@dataclass(frozen=True, eq=False, repr=False)
class DiagnosisReport:
    """A finished diagnosis: plain data; nothing in it keeps a tensor or a module alive.

    Its text and files are made of what `diagnose` found; the nodes below are made when one of them is first asked
    for (some 15 microseconds an op of a path). Thread-safe.

    Attributes:
        target: The op that wrote the tensor asked about.
        culprits: The ops that are to blame, in the order in which they ran; empty if the tensor is
            finite, or if its infinities were put there on purpose.
        paths: For each culprit, by its `seq`: the ops from the culprit (first) to the target
            (last).
        total_nodes_seen: How many ops the trace had recorded when the question was asked.
    """

    target: OpNode
    culprits: list[Culprit] = field(default_factory=list)
    paths: dict[int, list[OpNode]] = field(default_factory=dict)
    total_nodes_seen: int = 0
    _diagnosis: _native.Diagnosis | None = field(default=None, kw_only=True)
    _data: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    _deliberate: tuple[OpNode, ...] = field(default_factory=tuple, kw_only=True)

    @classmethod
    def _from_native(cls, diagnosis: _native.Diagnosis) -> DiagnosisReport:
        report = object.__new__(cls)
        vars(report).update(total_nodes_seen=diagnosis.total_ops, _diagnosis=diagnosis)
        return report

    def __getattr__(self, name: str) -> Any:
        # Only called for what is not there: of a report that `_from_native` made, what `_read` adds.
        if name not in _READ_LATER or self._diagnosis is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        with _reading:
            if name not in vars(self):
                self._read(self._diagnosis)
        return vars(self)[name]

    def _read(self, diagnosis: _native.Diagnosis) -> None:
        data = diagnosis.to_dict()
        nodes = link(data)
        vars(self).update(
            target=nodes.target,
            culprits=nodes.culprits,
            paths=nodes.paths,
            _data=data,
            _deliberate=tuple(nodes.deliberate),
        )

    @classmethod
    def from_json(cls, text: str) -> DiagnosisReport:
        """Read what `to_json` wrote.

        Raises:
            ValueError: The text is no report, a damaged one, or one of a newer version; the message
                says which.
        """
        return cls._from_native(_native.Diagnosis.from_json(text))

    def __reduce__(self) -> tuple[Any, ...]:
        if self._diagnosis is None:
            return type(self), (self.target, self.culprits, self.paths, self.total_nodes_seen)
        return type(self).from_json, (self.to_json(),)

    @property
    def ok(self) -> bool:
        """Nobody is to blame."""
        return self._diagnosis.ok if self._diagnosis is not None else not self.culprits

    @property
    def blind_spots(self) -> tuple[BlindSpot, ...]:
        """What the tracer did not see in this trace, by kind."""
        return tuple(
            BlindSpot(spot["kind"], spot["count"], spot["text"]) for spot in self._data.get("blind_spots") or ()
        )

    @property
    def deliberate(self) -> tuple[OpNode, ...]:
        """Ops in the target's history that put infinities there on purpose (masks): innocent, for the record."""
        return self._deliberate

    @property
    def note(self) -> str:
        """What else is worth knowing: a target of deliberate infinities only, changed since the trace, ..."""
        return str(self._data.get("note") or "")

    def verdict(self, culprit: Culprit | None = None) -> str:
        """One line on one culprit (default: the first): what, where, in which module."""
        if culprit is None:
            if not self.culprits:
                return "no non-finite value that anyone is to blame for"
            culprit = self.culprits[0]
        words = [culprit.headline or f"{culprit.op_name} made a non-finite value"]
        if culprit.phase != "forward" and f"in the {culprit.phase}" not in words[0]:
            node = f" of {culprit.autograd_node}" if culprit.autograd_node else ""
            words.append(f"in the {culprit.phase}{node}")
        if culprit.location:
            words.append(f"at {culprit.location}")
        if culprit.module_path:
            words.append(f"in {culprit.module_path}")
        return " ".join(words)

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"<DiagnosisReport: {self.verdict()}>"

    def to_text(self, *, color: bool = False, width: int = 100, show_source: bool = True) -> str:
        """The report as a person reads it in a terminal.

        Args:
            color: With ANSI escapes.
            width: Columns to which prose is wrapped; a line that names an op is never cut.
            show_source: With the culprit's source line and its neighbours.
        """
        if self._diagnosis is not None:
            return self._diagnosis.to_text(color=color, width=width, show_source=show_source)
        # A report that somebody made by hand from nodes.
        if self.ok:
            return (
                f"No non-finite values found in target tensor (node [{self.target.seq}] "
                f"{self.target.op_name}). {self.total_nodes_seen} ops were traced."
            )
        lines = [
            f"sherlorch diagnosis for [{self.target.seq}] {self.target.op_name} (shape={tuple(self.target.shape)}):",
            f"  Found {len(self.culprits)} culprit op(s) out of {self.total_nodes_seen} traced ops.",
        ]
        for number, culprit in enumerate(self.culprits, start=1):
            lines += ["", f"  Culprit #{number}: {culprit.summary()}"]
            path = self.paths.get(culprit.seq, [])
            if len(path) > 1:
                lines.append("    Path to target:")
                lines += [f"      -> {node.summary()}" for node in path]
        return "\n".join(lines)

    def _native_or_raise(self) -> _native.Diagnosis:
        if self._diagnosis is None:
            raise ValueError(
                "this report was made by hand from nodes and has no diagnosis to export; export one "
                "that tracker.diagnose() returned"
            )
        return self._diagnosis

    def to_dict(self) -> dict[str, Any]:
        """The whole diagnosis as plain dictionaries and lists, by the names of docs/json.md.

        Raises:
            ValueError: The report was made by hand.
        """
        return self._native_or_raise().to_dict()

    def to_json(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        overwrite: bool = False,
        indent: int = 2,
    ) -> str:
        """The whole diagnosis as JSON (schema: docs/json.md); written to `path` too, if one is given.

        Raises:
            FileExistsError: `path` exists and `overwrite` is False.
            OSError: `path` can't be written.
            ValueError: The report was made by hand.
        """
        text = self._native_or_raise().to_json(indent=indent)
        if path is not None:
            write_text(path, text if text.endswith("\n") else text + "\n", overwrite=overwrite)
        return text

    def to_dot(self, path: str | os.PathLike[str] | None = None, *, overwrite: bool = False) -> str:
        """The graph from culprits to target for Graphviz; written to `path` too, if one is given.

        Raises:
            FileExistsError: `path` exists and `overwrite` is False.
            OSError: `path` can't be written.
            ValueError: The report was made by hand.
        """
        return also_written(self._native_or_raise().to_dot(), path, overwrite=overwrite)

    def to_prov_json(self, path: str | os.PathLike[str] | None = None, *, overwrite: bool = False) -> str:
        """The ops and tensors from culprits to target as W3C PROV-JSON; written to `path` too, if one is given.

        Raises:
            FileExistsError: `path` exists and `overwrite` is False.
            OSError: `path` can't be written.
            ValueError: The report was made by hand.
        """
        return also_written(self._native_or_raise().to_prov_json(), path, overwrite=overwrite)

    def to_html(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the diagnosis as one self-contained page, and return where.

        Raises:
            FileExistsError: `path` exists and `overwrite` is False.
            OSError: `path` can't be written.
            ValueError: The report was made by hand.
        """
        page = self._native_or_raise().to_html(file_labels=cell_labels(self._files()))
        return write_text(path, page, overwrite=overwrite)

    def _repr_html_(self) -> str:
        if self._diagnosis is None:
            return f"<pre>{html.escape(str(self))}</pre>"
        # A page of its own inside the notebook's page: styles and scripts of the two must not meet.
        # The notebook's file holds it, so with fewer of the last ops than a file of its own.
        text = self._diagnosis.to_html(last_ops=2000, file_labels=cell_labels(self._files()))
        page = html.escape(text, quote=True)
        return (
            f'<iframe srcdoc="{page}" title="sherlorch diagnosis" '
            'style="width:100%;height:640px;border:0" sandbox="allow-scripts"></iframe>'
        )

    def _files(self) -> set[str]:
        steps = [self._data["target"]]
        for culprit in self._data["culprits"]:
            steps += [{"location": frame} for frame in culprit["stack"]] + culprit["path"]
        return {step["location"]["file"] for step in steps if step["location"]}

    def _steps(self) -> dict[int, OpNode]:
        nodes = [self.target, *self.deliberate]
        for path in self.paths.values():
            nodes += path
        return {node.seq: node for node in reversed(nodes)}

    def elements(self, step: OpNode | int) -> torch.Tensor:
        """Which elements of a step's output are NaN or infinite.

        Args:
            step: A node of this report, or its `seq`.

        Returns:
            A bool tensor on the CPU with the shape of the step's output, True where an element was
            bad when the step had written it. Where there were too many separate runs to keep each,
            neighbours of bad elements may be True as well; no bad element is ever False.

        Raises:
            ValueError: The step is not one of this report.
            LookupError: Which elements of this step were bad was not kept.
        """
        seq = step.seq if isinstance(step, OpNode) else step
        node = step if isinstance(step, OpNode) else self._steps().get(seq)
        if node is None or seq not in self._steps():
            raise ValueError(
                f"op {seq} is not part of this diagnosis; pass one of report.culprits, "
                "a node of report.paths, or its seq"
            )
        runs = self._native_or_raise().elements(seq)
        if runs is None:
            raise LookupError(
                f"which elements of [{seq}] {node.op_name} were bad was not kept; ask about a "
                "culprit or another step of its path"
            )
        numel = 1
        for size in node.shape:
            numel *= size
        mask = bytearray(numel)
        for begin, end in runs:
            mask[begin:end] = b"\1" * (end - begin)
        if not mask:
            return torch.zeros(node.shape, dtype=torch.bool)
        return torch.frombuffer(mask, dtype=torch.bool).reshape(node.shape)
