"""How the cost grows with ops, live tensors, bytes of a tensor, depth and threads: it should stay flat an op."""

from __future__ import annotations

import contextlib
import gc
import itertools
import os
import random
import threading
import time
from collections.abc import Callable, Iterator

import sherlorch
import torch
from common import Results, arguments, interleave, one_thread, rows_of
from peers import OURS
from torch import nn


def traced(one: Callable[[], object]) -> Callable[[], None]:
    def run() -> None:
        with sherlorch.trace():
            one()

    return run


def pair(one: Callable[[], object]) -> dict[str, Callable[[], object]]:
    return {"untraced": one, OURS: traced(one)}


def multiply(count: int) -> Callable[[], None]:
    a, b = torch.ones(4), torch.ones(4)

    def run() -> None:
        for _ in range(count):
            a * b

    return run


def ops(args) -> Iterator[tuple]:
    for count in (10**3, 10**4) if args.quick else (10**3, 10**4, 10**5, 10**6, 10**7):
        rounds = min(args.rounds, max(1, 3 * 10**6 // count))
        yield count, interleave(pair(multiply(count)), rounds, warm=int(count < 10**6)), count


def live(args, bad: bool) -> Iterator[tuple]:
    """Finite ops while many tensors live that were made in the trace: finite ones, or bad ones with a shadow each."""
    for count in (10, 10**3) if args.quick else (10, 10**2, 10**3, 10**4, 10**5, 10**6):
        with sherlorch.trace() as keeper:  # left before anything is measured; while it lives, its records stay
            kept = [torch.log(torch.zeros(4)) if bad else torch.ones(4) for _ in range(count)]
        used = itertools.cycle([torch.ones(4)] if bad else kept)

        def run(used=used) -> None:
            for x in itertools.islice(used, 1000):
                x * x

        yield count, interleave(pair(run), args.rounds), 1000
        del keeper, kept, used, run
        gc.collect()


def sizes(args) -> Iterator[tuple]:
    """Add two tensors into a third; a float is the smallest."""
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for size in (4, 1 << 16) if args.quick else (4, 1 << 10, 1 << 14, 1 << 18, 1 << 22, 1 << 26, 1 << 30):
        if 4 * size > free:
            print(f"tensor_bytes {size}: left out, {free >> 20} MiB are free")
            continue
        a, b, out = (torch.ones(size // 4) for _ in range(3))
        repeat = max(1, min(500, (1 << 24) // size))
        rounds = min(args.rounds, 7 if size < 1 << 30 else 3) if size >= 1 << 26 else args.rounds

        def run(a=a, b=b, out=out, repeat=repeat) -> None:
            for _ in range(repeat):
                torch.add(a, b, out=out)

        yield size, interleave(pair(run), rounds, warm=1), repeat


class Nest(nn.Module):
    def __init__(self, depth: int) -> None:
        super().__init__()
        self.inner = Nest(depth - 1) if depth > 1 else None

    def forward(self, x):
        if self.inner is not None:
            return self.inner(x)
        for _ in range(500):
            x = x * 1.0
        return x


def modules(args) -> Iterator[tuple]:
    """Modules in modules; 500 ops in the innermost."""
    for depth in (1, 8) if args.quick else (1, 4, 16, 64, 128):
        model, x = Nest(depth), torch.ones(4)
        yield depth, interleave(pair(lambda model=model, x=x: model(x)), args.rounds), 500


def trackers(args) -> Iterator[tuple]:
    """Traces in traces."""
    for depth in (1, 4) if args.quick else (1, 4, 16, 64):
        plain = multiply(500)

        def nested(depth=depth, plain=plain) -> None:
            with contextlib.ExitStack() as stack:
                for _ in range(depth):
                    stack.enter_context(sherlorch.trace())
                plain()

        yield depth, interleave({"untraced": plain, OURS: nested}, args.rounds), 500


def threads(args) -> Iterator[tuple]:
    """Threads that multiply matrices of 64 x 64; the CPU time of all of them together."""
    x = torch.randn(64, 64)

    def work() -> None:
        for _ in range(200):
            x @ x

    for count in (1, 2) if args.quick else (1, 2, 4, 8):

        def run(count=count) -> None:
            workers = [threading.Thread(target=work) for _ in range(count)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()

        yield count, interleave(pair(run), args.rounds), 200 * count


def partial_writes(args, whole: bool) -> Iterator[tuple]:
    """Rows of a cache are written one by one with bad values: its shadow holds as many writes as rows were written.

    With `whole` the cache was bad as a whole before, and as many rows again still are.
    """
    for rows in (10, 10**3) if args.quick else (10, 10**2, 10**3, 10**4, 10**5):
        row, order = torch.log(torch.zeros(4)), list(range(rows))
        cache = torch.log(torch.zeros(2 * rows, 4)) if whole else torch.zeros(rows, 4)
        with sherlorch.trace() as keeper:  # left before anything is measured, as above
            if whole:
                cache.log_()
            for at in order:
                cache[at] = row
        random.Random(1).shuffle(order)
        used = itertools.cycle(order)

        def run(cache=cache, row=row, used=used) -> None:
            for at in itertools.islice(used, 500):
                cache[at] = row

        yield rows, interleave(pair(run), args.rounds), 500
        del keeper, run
        gc.collect()


def chunks(args) -> Iterator[tuple]:
    """One op writes a list of the chunks of one bad buffer; the cost a chunk."""
    for count in (10, 100) if args.quick else (10, 10**2, 10**3, 10**4):
        parts = torch.log(torch.zeros(4 * count)).chunk(count)
        repeat = max(1, 1000 // count)

        def run(parts=parts, repeat=repeat) -> None:
            for _ in range(repeat):
                torch._foreach_mul_(parts, 2.0)

        yield count, interleave(pair(run), min(args.rounds, 7), warm=1), count * repeat


def diagnose(args) -> Iterator[tuple]:
    for count in (10**2, 10**3) if args.quick else (10**2, 10**3, 10**4, 10**5):
        with sherlorch.trace() as tracker:
            x = torch.log(torch.zeros(4))
            for _ in range(count):
                x = x + x
            times = []
            for _ in range(args.rounds):
                start = time.process_time()
                tracker.diagnose(x)
                times.append(time.process_time() - start)
        yield count, {"untraced": [0.0] * len(times), OURS: times}, 1


CASES: dict[str, Callable[..., Iterator[tuple]]] = {
    "ops": ops,
    "live_tensors": lambda args: live(args, bad=False),
    "live_bad_tensors": lambda args: live(args, bad=True),
    "tensor_bytes": sizes,
    "nested_modules": modules,
    "nested_traces": trackers,
    "threads": threads,
    "partial_writes": lambda args: partial_writes(args, whole=False),
    "rows_of_a_bad_cache": lambda args: partial_writes(args, whole=True),
    "chunks_of_a_list": chunks,
    "diagnose": diagnose,
}


def main() -> None:
    args = arguments(15, __doc__ or "")
    one_thread()
    results = Results(args.out, "scaling", args.append)
    for case, measure in CASES.items():
        if args.only in case:
            for size, times, per in measure(args):
                results.add(rows_of(case, size, times, per=per, unit="us"))


if __name__ == "__main__":
    main()
