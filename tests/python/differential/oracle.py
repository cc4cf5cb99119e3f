"""The true culprits of a program, found without sherlorch: the program runs op by op in plain torch.

Memory is known by address, one slot an element. For every slot that holds a bad value the oracle keeps which op wrote
it there, as which element of its output. Of each op it asks, for every bad element of the output: does it depend on an
input element that is bad? That is answered by *poking*: a skeleton of the op, an expression of sums and movements only
(`x + y` for a division, `x.sum(1)` for a product along dimension 1) runs on zeros with a single one. Where the output
is not zero, the op computes that element from the poked one.

So dependence is structural, which elements an element is computed from, and not numeric, whether the value matters: of
`0 * x` every element depends on x, and of a softmax each one on its whole line. That is what the tracer's element maps
promise, which say so in core/operators/relation.h. Values that an op does not read are no dependence: the
side that where() did not choose, what copy_ or a fill overwrites.

An op is to blame for a target if some bad element of its output depends on no bad element and reaches a bad element of
the target. An infinity that was asked for (a fill, a literal) is innocent, and stays it while ops pass it on with its
sign; a NaN or an infinity of another sign made of such ones is introduced by the op that makes it.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

import torch

from .program import PREAMBLE, Program, Step


@functools.lru_cache(maxsize=20_000)
def _expression(text: str) -> CodeType:
    return compile(text, "<skeleton>", "eval")


@functools.lru_cache(maxsize=20_000)
def _statement(text: str) -> CodeType:
    return compile(text, "<oracle>", "exec")


@functools.lru_cache(maxsize=20_000)
def _offsets(shape: tuple[int, ...], stride: tuple[int, ...]) -> list[int]:
    extent = 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True) if size > 0)
    return torch.arange(extent).as_strided(shape, stride).flatten().tolist()


def addresses(tensor: torch.Tensor) -> list[int]:
    """The address of each element, in the order of the elements."""
    start, size = tensor.data_ptr(), tensor.element_size()
    return [start + size * offset for offset in _offsets(tuple(tensor.shape), tensor.stride())]


def kind(value: float) -> str:
    """n, + or - for what is bad; empty for a finite value."""
    if value - value == 0:
        return ""
    return "n" if math.isnan(value) else "+" if value > 0 else "-"


@dataclass
class Node:
    """One op of the run that made, or carried on, something bad. Elements are those of all its outputs, one after the other."""

    line: int
    number: int = 0  # later ops have larger ones
    unwritten: bool = False  # memory that nobody wrote; its first reader is to blame
    introduced: set[int] = field(default_factory=set)
    asked: set[int] = field(default_factory=set)  # deliberate infinities
    sources: dict[int, list[tuple[Node, int]]] = field(default_factory=dict)  # accidental ones only


def is_values(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype in (torch.float32, torch.float64, torch.float16)


class Oracle:
    """Runs steps and keeps who made what is bad."""

    def __init__(self) -> None:
        self.env: dict[str, Any] = {}
        exec(PREAMBLE, self.env)
        self.owners: dict[int, tuple[Node, int]] = {}
        self.steps = 0
        self.alive: list[torch.Tensor] = []  # so that no address is used twice

    def run(self, program: Program) -> None:
        for line in program.inputs:
            for step in line:
                self.step(step, 0)
        for number, line in enumerate(program.lines, start=1):
            for step in line:
                self.step(step, number)

    def step(self, step: Step, line: int) -> None:
        env = self.env
        read: list[tuple[str, torch.Size, list[tuple[int, str, Node, int]]]] = []
        for name in step.reads:
            tensor = env[name]
            bad: list[tuple[int, str, Node, int]] = []
            if self.owners:
                for element, address in enumerate(addresses(tensor)):
                    owner = self.owners.get(address)
                    if owner is not None:
                        bad.append((element, "", *owner))
            if bad:
                values = tensor.flatten().tolist()
                bad = [(element, kind(values[element]), node, at) for element, _, node, at in bad]
            read.append((name, tensor.shape, bad))
        before = {address for name in step.reads for address in self._blocks(env[name])}
        names = dict(env) if step.skeletons else {}
        exec(_statement(step.text), env)
        for name in step.drops:
            env.pop(name, None)
        outputs: list[tuple[torch.Tensor, str | None]] = []
        skeletons = step.skeletons + (None,) * (len(step.binds) + len(step.writes) - len(step.skeletons))
        for name, skeleton in zip(step.binds, skeletons, strict=False):
            value = env[name]
            if not is_values(value):
                continue
            self.alive.append(value)
            if not (before & set(self._blocks(value))):  # else a view
                outputs.append((value, skeleton))
        for text, skeleton in zip(step.writes, skeletons[len(step.binds) :], strict=True):
            outputs.append((eval(_expression(text), env), skeleton))
        self.steps += 1
        node = Node(line, self.steps, step.unwritten)
        first = 0
        for tensor, skeleton in outputs:
            self._written(step, node, first, tensor, skeleton, read, names)
            first += tensor.numel()

    @staticmethod
    def _blocks(tensor: torch.Tensor) -> tuple[int, ...]:
        return (tensor.untyped_storage().data_ptr(),)

    def _written(
        self,
        step: Step,
        node: Node,
        first: int,
        tensor: torch.Tensor,
        skeleton: str | None,
        read: list[tuple[str, torch.Size, list[tuple[int, str, Node, int]]]],
        names: dict[str, Any],
    ) -> None:
        values = tensor.flatten().tolist()
        kinds = {element: what for element, value in enumerate(values) if (what := kind(value))}
        where = addresses(tensor)
        if not kinds:
            for address in where:
                self.owners.pop(address, None)
            return
        reached: dict[int, list[tuple[str, Node, int]]] = {}
        if skeleton is not None:
            code = _expression(skeleton)
            zeros = {name: torch.zeros(shape, dtype=torch.float64) for name, shape, _ in read}
            names = {**names, **zeros}
            for name, shape, bad in read:
                for element, what, maker, at in bad:
                    poked = torch.zeros(math.prod(shape), dtype=torch.float64)
                    poked[element] = 1
                    names[name] = poked.view(shape)
                    answer = eval(code, names).broadcast_to(tensor.shape).flatten().tolist()
                    for k in kinds:
                        if answer[k] != 0:
                            reached.setdefault(k, []).append((what, maker, at))
                names[name] = zeros[name]
        for k, what in kinds.items():
            causes = reached.get(k, [])
            accidental = [(maker, at) for _, maker, at in causes if at not in maker.asked]
            if accidental:
                node.sources[first + k] = accidental
            elif (what != "n" and any(cause == what for cause, _, _ in causes)) or (
                what != "n" and step.literal and what in self._literals(step)
            ):
                node.asked.add(first + k)
            else:
                node.introduced.add(first + k)
        for k, address in enumerate(where):
            if k in kinds:
                self.owners[address] = (node, first + k)
            else:
                self.owners.pop(address, None)

    @staticmethod
    def _literals(step: Step) -> str:
        text = step.text.replace("-inf", "~")
        return ("+" if "inf" in text else "") + ("-" if "~" in text else "")

    def culprits(self, tensor: torch.Tensor) -> tuple[set[int], set[int]]:
        """The lines to blame for what is bad in the tensor now; and, for memory that nobody wrote, its readers.

        The second set is loose: which of them the tracer names, the first in this history, hangs on which elements it
        met together. One of them must be named if there are any, and no other.
        """
        wanted: list[tuple[Node, int, Node | None]] = [
            (*self.owners[address], None) for address in addresses(tensor) if address in self.owners
        ]
        seen: set[tuple[int, int, int]] = set()
        lines: set[int] = set()
        readers: set[int] = set()
        while wanted:
            node, element, reader = wanted.pop()
            key = (id(node), element, id(reader) if node.unwritten else 0)
            if key in seen:
                continue
            seen.add(key)
            if node.unwritten and element in node.introduced:
                readers |= {node.line if reader is None else reader.line}
            elif element in node.introduced:
                lines.add(node.line)
            wanted += [(maker, at, node) for maker, at in node.sources.get(element, [])]
        return lines, readers
