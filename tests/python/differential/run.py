"""Long runs: python -m differential.run --programs 500000 --seed 0 --jobs 2   (in tests/python)."""

from __future__ import annotations

import argparse
import collections
import multiprocessing
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch

from . import compare
from .generator import Options, generate


@dataclass
class Tally:
    programs: int = 0
    targets: int = 0
    blamed: int = 0  # targets with a culprit
    skipped: collections.Counter[str] = field(default_factory=collections.Counter)
    disagreements: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.programs += other.programs
        self.targets += other.targets
        self.blamed += other.blamed
        self.skipped += other.skipped
        self.disagreements += other.disagreements

    def __str__(self) -> str:
        return (
            f"{self.programs} programs, {self.targets} targets ({self.blamed} with culprits), "
            f"{len(self.disagreements)} disagreements, skipped {dict(self.skipped)}"
        )


def run(
    seeds: range, options: Options | None = None, *, everything_each: int = 8, elements: bool = True, most: int = 20
) -> Tally:
    """Compares tracer and oracle on the programs of these seeds; every so many also with views scanned."""
    tally = Tally()
    for seed in seeds:
        if len(tally.disagreements) >= most:
            break
        try:
            program = generate(seed, options)
        except Exception as error:
            tally.skipped[f"generate: {type(error).__name__}: {error}"[:100]] += 1
            continue
        tally.programs += 1
        modes = (True, False) if everything_each and seed % everything_each == 0 else (True,)
        said = []
        for fast in modes:
            try:
                answers = compare.compare(program, fast_shape_ops=fast, elements=elements)
            except Exception as error:
                tally.skipped[f"{type(error).__name__}: {error}"[:100]] += 1
                continue
            said.append([(a.target, a.element, a.tracer) for a in answers])
            tally.targets += len(answers)
            tally.blamed += sum(bool(a.tracer) for a in answers)
            if not all(a.agrees for a in answers):
                small = compare.shrink(program, fast_shape_ops=fast, elements=elements)
                tally.disagreements.append(compare.describe(small, fast_shape_ops=fast, elements=elements))
                break
        if len(said) == 2 and said[0] != said[1]:
            tally.disagreements.append(f"seed {seed}: fast_shape_ops changes the answer\n{program.source()}")
    return tally


def _start() -> None:
    torch.set_num_threads(1)


def chunks(seed: int, programs: int, size: int = 250) -> Iterator[range]:
    for start in range(seed, seed + programs, size):
        yield range(start, min(start + size, seed + programs))


def run_many(programs: int, seed: int = 0, jobs: int = 1, progress: bool = False, most: int = 20) -> Tally:
    total = Tally()
    started = time.monotonic()
    with multiprocessing.get_context("spawn").Pool(jobs, _start) as pool:
        for tally in pool.imap_unordered(run, chunks(seed, programs)):
            total.add(tally)
            if progress:
                for text in tally.disagreements:
                    print(text, flush=True)
                if total.programs % 5000 < 250:
                    print(f"{time.monotonic() - started:7.1f} s  {total}", flush=True)
            if len(total.disagreements) >= most:
                pool.terminate()
                break
    return total


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--most", type=int, default=20, help="stop after so many disagreements")
    chosen = parser.parse_args(arguments)
    started = time.monotonic()
    total = run_many(chosen.programs, chosen.seed, chosen.jobs, progress=True, most=chosen.most)
    print(f"{time.monotonic() - started:7.1f} s  {total}")
    return 1 if total.disagreements else 0


if __name__ == "__main__":
    sys.exit(main())
