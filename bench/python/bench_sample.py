"""What `sample=` saves on very large tensors, and which bad values it misses."""

from __future__ import annotations

from collections.abc import Callable

import sherlorch
import torch
from common import Results, Row, arguments, interleave, one_thread, rows_of
from peers import OURS

SHARES = (1.0, 1 / 4, 1 / 16, 1 / 64)
MIB = 1 << 20


def named(share: float) -> str:
    return OURS if share == 1 else f"sample=1/{round(1 / share)}"


def costs(args, results: Results) -> None:
    """Add two tensors into a third."""
    for size in (16 * MIB,) if args.quick else (16 * MIB, 64 * MIB, 256 * MIB):
        a, b, out = (torch.ones(size // 4) for _ in range(3))

        def plain(a=a, b=b, out=out) -> None:
            torch.add(a, b, out=out)

        def traced(share: float, plain: Callable[[], None] = plain) -> Callable[[], None]:
            def run() -> None:
                with sherlorch.trace(sample=share):
                    plain()

            return run

        bodies = {"untraced": plain, **{named(share): traced(share) for share in SHARES}}
        results.add(rows_of("sample_cost", size, interleave(bodies, args.rounds), unit="ms"))


def found(args, results: Results) -> None:
    """How often an op is noticed that makes so many bad elements, at random places or in one run, of 4 million."""
    count, trials = 16 * MIB // 4, 5 if args.quick else 100
    x, out = torch.ones(count), torch.empty(count)
    random = torch.Generator().manual_seed(1)
    for together in (False, True):
        for bad in (1, 16) if args.quick else (1, 4, 16, 64, 256, 1024, 4096, 16384):
            for share in SHARES[1:]:
                noticed = 0
                for _ in range(trials):
                    if together:
                        first = int(torch.randint(count - bad, (1,), generator=random))
                        at = torch.arange(first, first + bad)
                    else:
                        at = torch.randint(count, (bad,), generator=random)
                    x[at] = 0.0
                    with sherlorch.trace(sample=share, capture_stack=False) as tracker:
                        torch.reciprocal(x, out=out)
                    noticed += tracker._native.timeline(1)[0]["nonfinite"]
                    x[at] = 1.0
                    out.fill_(1.0)
                    del tracker  # with the last tracker goes what is known of `out`
                value = 100 * noticed / trials
                case = "sample_found_run" if together else "sample_found_scattered"
                results.add([Row(case, bad, named(share), trials, "%", 0.0, value, value, value)])


def main() -> None:
    args = arguments(15, __doc__ or "")
    one_thread()
    results = Results(args.out, "sample", args.append)
    if args.only in "sample_cost":
        costs(args, results)
    if args.only in "sample_found":
        found(args, results)


if __name__ == "__main__":
    main()
