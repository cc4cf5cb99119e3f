"""What a random program is: lines of steps, as Python source text and with what the oracle must know of each step."""

from __future__ import annotations

import linecache
from dataclasses import dataclass, field

PREAMBLE = "import torch\nnan = float('nan')\ninf = float('inf')\n"


@dataclass(frozen=True)
class Step:
    """One op as source text.

    `reads` are the floating-point variables that its values come from. For each tensor in `binds` (new names) and
    `writes` (expressions for memory that is written in place) there is a *skeleton* in `skeletons`: an expression over
    the same names that is linear with coefficients >= 0 and reads exactly what the op computes each element from. It is
    None for a name that holds no floating-point values or that the step only looks at through a view.
    """

    text: str
    binds: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    skeletons: tuple[str | None, ...] = ()
    others: tuple[str, ...] = ()  # masks and indices that it needs
    drops: tuple[str, ...] = ()  # names that it deletes
    literal: bool = False  # an infinity that it makes out of nothing was asked for
    unwritten: bool = False  # hands out memory as it is, or holds a literal NaN: its first reader is to blame


Line = tuple[Step, ...]


@dataclass
class Program:
    """Lines of steps; the first line of the source text that is traced is line 1."""

    lines: list[Line]
    deterministic: bool = False  # memory of empty() is filled with NaN
    seed: int = 0
    inputs: list[Line] = field(default_factory=list)  # runs before the trace

    def source(self) -> str:
        return "".join("; ".join(step.text for step in line) + "\n" for line in self.lines)

    def inputs_source(self) -> str:
        return "".join("; ".join(step.text for step in line) + "\n" for line in self.inputs)

    def without(self, dropped: set[int]) -> Program:
        """The program without these lines, and without those that need a name which is gone with them."""
        known = {name for line in self.inputs for step in line for name in step.binds}
        kept: list[Line] = []
        for number, line in enumerate(self.lines):
            if number in dropped:
                continue
            bound = set(known)
            fine = True
            for step in line:
                fine &= all(name in bound for name in step.reads + step.others + step.drops)
                bound |= set(step.binds)
                bound -= set(step.drops)
            if fine:
                known = bound
                kept.append(line)
        return Program(kept, self.deterministic, self.seed, self.inputs)


def register(source: str, filename: str) -> None:
    """Let linecache, and so every report, show the lines of this program."""
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
