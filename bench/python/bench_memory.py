"""What the process grows by in one long trace, after a warm-up that fills the flight recorder. A process for each."""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import statistics
import sys
from collections.abc import Callable

import torch
from common import Results, Row, arguments, one_thread, rss, run_child
from peers import ORIGINAL, OURS, tools
from sherlorch import _native
from workloads import training_step

MIB = 1 << 20


def tiny() -> Callable[[], object]:
    a, b = torch.ones(4), torch.ones(4)

    def many() -> None:
        for _ in range(1000):
            a * b

    return many


def masks() -> Callable[[], object]:
    """Attention scores under a mask of -inf, over and over: deliberate infinities come and go."""
    scores, hidden = torch.zeros(8, 8), torch.ones(8, 8, dtype=torch.bool).triu(1)

    def many() -> None:
        for _ in range(500):
            torch.softmax(scores.masked_fill(hidden, float("-inf")), -1)

    return many


def encoder() -> Callable[[], object]:
    return training_step(64, batch=2, seq=16)[1]


def step(masked: bool) -> Callable[[], object]:
    return training_step(32, masked=masked, batch=2, seq=16)[1]


# name: what to run, how many ops it has (1: it is counted in steps), is it run under the original too
CASES: dict[str, tuple[Callable[[], Callable[[], object]], int, bool]] = {
    "memory_tiny": (tiny, 1000, False),
    "memory_masks": (masks, 1000, False),
    "memory_step": (lambda: step(False), 1000, False),
    "memory_masked_step": (lambda: step(True), 1000, False),
    "memory_500_steps": (encoder, 1, True),
}


def child(case: str, tool: str, warm: int, ops: int) -> None:
    """Prints the growth in bytes, and how many records and shadows are left."""
    one_thread()
    make, per, _ = CASES[case]
    one = make()
    for _ in range(3):
        one()
    context = contextlib.nullcontext() if tool == "untraced" else tools()[tool].context()
    with context:
        for _ in range(warm // per):
            one()
        gc.collect()
        before = rss()
        for _ in range(ops // per):
            one()
        gc.collect()
        grown = rss() - before
        facts = _native.recorder_facts()
    print(json.dumps({"grown": grown, "records": facts["records"], "shadows": facts["shadows"]}))


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        parser = argparse.ArgumentParser()
        parser.add_argument("--child", nargs=4)
        case, tool, warm, ops = parser.parse_args().child
        child(case, tool, int(warm), int(ops))
        return
    args = arguments(3, __doc__ or "")
    results = Results(args.out, "memory", args.append)
    # The ring of 262,144 slots grows into memory as it is used for the first time: that is the warm-up.
    warm = 20_000 if args.quick else 300_000
    for case, (_, _, compared) in CASES.items():
        if args.only not in case:
            continue
        ops = 50_000 if args.quick else 1_000_000
        if case == "memory_500_steps":
            ops = 20 if args.quick else 500
        for tool in ["untraced", OURS, *([ORIGINAL] if compared and not args.ours else [])]:
            # The 500 steps begin in a fresh trace, as people's runs do: the recorder's own memory is in their growth.
            count, warmed = ops, 0 if case == "memory_500_steps" else warm
            rounds = 1 if "step" in case else args.rounds
            grown = []
            for _ in range(rounds):
                answer = json.loads(run_child(__file__, "--child", case, tool, str(warmed), str(count)))
                grown.append(answer["grown"] / MIB)
            middle = statistics.median(grown)
            results.add([Row(case, count, tool, rounds, "MiB", 0.0, middle, min(grown), max(grown))])
    facts = _native.recorder_facts()
    fixed = facts["slots"] * facts["slot_bytes"] / MIB
    results.add([Row("recorder_size", facts["slots"], OURS, 1, "MiB", 0.0, fixed, fixed, fixed)])
    slot = float(facts["slot_bytes"])
    results.add([Row("bytes_an_op", 1, OURS, 1, "bytes", 0.0, slot, slot, slot)])


if __name__ == "__main__":
    main()
