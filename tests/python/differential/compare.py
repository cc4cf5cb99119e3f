"""Tracer and oracle on the same program, and the smallest program on which they disagree."""

from __future__ import annotations

import itertools
import linecache
from dataclasses import dataclass, field
from typing import Any

import sherlorch
import torch

from .oracle import Oracle, is_values, kind
from .program import PREAMBLE, Program, register

FOLDER = "/differential/"
_numbers = itertools.count()  # a file name a program


@dataclass
class Answer:
    """What both say of one target: lines to blame."""

    target: str
    oracle: set[int]
    readers: set[int]
    tracer: set[int]
    element: tuple[int, ...] | None = None
    origins: list[str] = field(default_factory=list)
    expected: frozenset[str] = frozenset({"op"})

    @property
    def agrees(self) -> bool:
        if not self.expected.issuperset(self.origins):
            return False
        rest = self.tracer - self.oracle
        return (
            self.oracle <= self.tracer
            and rest <= self.readers
            and bool(self.tracer) == bool(self.oracle | self.readers)
        )


class Differs(Exception):
    """The two runs of the program gave different values, so there is nothing to compare."""


def lines_of(report: sherlorch.DiagnosisReport) -> set[int]:
    lines = set()
    for culprit in report.culprits:
        file, _, line = culprit.location.rpartition(":")
        lines.add(int(line) if file.startswith(FOLDER) else 0)
    return lines


def traced(program: Program, *, fast_shape_ops: bool = True) -> tuple[sherlorch.ProvenanceTracker, dict[str, Any]]:
    env: dict[str, Any] = {}
    exec(PREAMBLE, env)
    exec(program.inputs_source(), env)
    source = program.source()
    linecache.clearcache()  # of the programs before it
    filename = f"{FOLDER}{next(_numbers)}.py"
    register(source, filename)
    code = compile(source, filename, "exec")
    tracker = sherlorch.trace(fast_shape_ops=fast_shape_ops)
    with tracker:
        exec(code, env)
    return tracker, env


def bad_kinds(tensor: torch.Tensor) -> list[str]:
    return [kind(value) for value in tensor.flatten().tolist()]


def compare(program: Program, *, fast_shape_ops: bool = True, elements: bool = False) -> list[Answer]:
    """Both answers for every tensor that the program leaves; with `elements`, also for one bad element of each.

    Raises:
        Differs: The two runs did not give the same values.
        Exception: Whatever the program raises.
    """
    torch.use_deterministic_algorithms(program.deterministic)
    try:
        oracle = Oracle()
        oracle.run(program)
        tracker, env = traced(program, fast_shape_ops=fast_shape_ops)
        answers: list[Answer] = []
        expected = {"op"}
        if any("empty" in step.text for line in program.lines for step in line):
            expected.add("uninitialized")
        if any(step.literal for line in program.lines for step in line):
            expected.add("constant")
        for name, mine in oracle.env.items():
            if not is_values(mine) or mine.numel() == 0:
                continue
            theirs = env[name]
            kinds = bad_kinds(mine)
            if kinds != bad_kinds(theirs):
                raise Differs(name)
            try:
                report = tracker.diagnose(theirs)
            except sherlorch.UntrackedTensorError:
                if any(kinds):
                    raise
                continue
            lines, readers = oracle.culprits(mine)
            origins = [culprit.origin for culprit in report.culprits]
            answers.append(Answer(name, lines, readers, lines_of(report), None, origins, frozenset(expected)))
            if elements and any(kinds):
                at = max(range(len(kinds)), key=lambda k: (bool(kinds[k]), -k))
                index = tuple(int(i) for i in torch.unravel_index(torch.tensor(at), mine.shape)) if mine.dim() else ()
                lines, readers = oracle.culprits(mine[index])
                found = tracker.diagnose(theirs, index=index)
                answers.append(Answer(name, lines, readers, lines_of(found), index))
        return answers
    finally:
        torch.use_deterministic_algorithms(False)


def disagreement(program: Program, *, fast_shape_ops: bool = True, elements: bool = False) -> list[Answer]:
    """The answers on which they disagree; none if the program does not run."""
    try:
        answers = compare(program, fast_shape_ops=fast_shape_ops, elements=elements)
    except sherlorch.UntrackedTensorError:
        raise
    except Exception:
        return []
    return [answer for answer in answers if not answer.agrees]


def shrink(program: Program, *, fast_shape_ops: bool = True, elements: bool = False) -> Program:
    """Drops lines as long as there is a disagreement left."""
    size = max(1, len(program.lines) // 2)
    while size >= 1:
        start = len(program.lines) - size
        progress = False
        while start > -size:
            dropped = set(range(max(start, 0), start + size))
            smaller = program.without(dropped)
            if len(smaller.lines) < len(program.lines) and disagreement(
                smaller, fast_shape_ops=fast_shape_ops, elements=elements
            ):
                program, progress = smaller, True
                start = min(start, len(program.lines))
            start -= size
        if not progress or size > 1:
            if size == 1:
                break
            size //= 2
    return program


def describe(program: Program, *, fast_shape_ops: bool = True, elements: bool = False) -> str:
    """A disagreement as text: the program, and what both say."""
    words = [f"seed {program.seed}, fast_shape_ops={fast_shape_ops}, deterministic={program.deterministic}"]
    words += [f"  before  {line}" for line in program.inputs_source().splitlines()]
    words += [f"  {number:>6}  {line}" for number, line in enumerate(program.source().splitlines(), start=1)]
    for answer in disagreement(program, fast_shape_ops=fast_shape_ops, elements=elements):
        loose = f" or readers {sorted(answer.readers)}" if answer.readers else ""
        at = "" if answer.element is None else str(list(answer.element))
        words.append(
            f"  {answer.target}{at}: oracle {sorted(answer.oracle)}{loose}, tracer {sorted(answer.tracer)} {answer.origins}"
        )
    return "\n".join(words)


__all__ = ["Answer", "Differs", "compare", "describe", "disagreement", "shrink"]
