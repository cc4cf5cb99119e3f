"""CPU time under each tool over the untraced program; entering a trace, importing, diagnosing."""

from __future__ import annotations

import statistics
import time
import warnings
from itertools import pairwise

import sherlorch
import torch
from common import Results, Row, arguments, interleave, one_thread, quartiles, rows_of, run_child
from peers import FLOOR, ORIGINAL, OURS, own, tools
from workloads import WORKLOADS, body

AGAIN = "untraced, again"  # how much two runs of the same program differ here


def overheads(args, results: Results) -> None:
    known = own() if args.ours else tools()
    for workload in WORKLOADS:
        if args.only not in f"{workload.case}_{workload.size}":
            continue
        masked = workload.case == "masked_step"
        chosen = {
            name: tool
            for name, tool in known.items()
            if (workload.backward or not tool.needs_backward) and (not masked or name in (OURS, FLOOR, ORIGINAL))
        }
        if workload.ops:
            chosen = {name: tool for name, tool in chosen.items() if tool.hook is None}
        # One model for all but the hooked ones, else the caches see a different program.
        made = workload.make()
        shared = type(workload)(workload.case, workload.size, lambda made=made: made, workload.passes)
        bodies = {"untraced": body(shared, None), AGAIN: body(shared, None)}
        for name, tool in chosen.items():
            bodies[name] = body(workload if tool.hook else shared, tool)
        times = interleave(bodies, args.rounds, seldom=frozenset(chosen) - {OURS, FLOOR})
        per, unit = (workload.passes * workload.ops, "us") if workload.ops else (workload.passes, "ms")
        results.add(rows_of(workload.case, workload.size, times, per=per, unit=unit))


def single(case: str, size: float, tool: str, values: list[float], unit: str) -> Row:
    low, middle, high = quartiles(values)
    return Row(case, size, tool, len(values), unit, 0.0, middle, low, high)


def entering(args, results: Results) -> None:
    count = 500

    def enter() -> None:
        for _ in range(count):
            with sherlorch.trace():
                pass

    times = interleave({"untraced": enter}, max(args.rounds, 3))["untraced"]
    results.add([single("enter_leave", 1, OURS, [1e6 * value / count for value in times], "us")])


def diagnosing(args, results: Results) -> None:
    """One chain of ops with one operand, and one whose ops have two bad operands (no op of it can be folded).

    Then the text of the report, and its nodes as Python objects, as far as somebody asks for them.
    """
    count = 2000 if args.quick else 100_000
    for case in ("diagnose_chain", "diagnose_pairs"):
        with sherlorch.trace() as tracker:
            x = y = torch.log(torch.zeros(4))
            for _ in range(count):
                x = x + 1.0 if case == "diagnose_chain" else x + y
            times: dict[str, list[float]] = {case: [], f"{case}_text": [], f"{case}_nodes": []}
            for _ in range(args.rounds):
                marks = [time.process_time()]
                report = tracker.diagnose(x)
                marks.append(time.process_time())
                str(report)
                marks.append(time.process_time())
                assert report.culprits, case  # the nodes are made when first asked for
                marks.append(time.process_time())
                for name, (start, end) in zip(times, pairwise(marks), strict=True):
                    times[name].append(1e3 * (end - start))
        results.add([single(name, count, OURS, values, "ms") for name, values in times.items()])


IMPORT = "import torch, time; s = time.process_time(); import sherlorch; print(time.process_time() - s)"


def importing(args, results: Results) -> None:
    run_child("-c", IMPORT)  # the files are in the page cache from here on
    times = [1e3 * float(run_child("-c", IMPORT)) for _ in range(min(args.rounds, 15))]
    results.add([single("import", 1, OURS, times, "ms")])


def main() -> None:
    args = arguments(29, __doc__ or "")
    one_thread()
    warnings.filterwarnings("ignore", message="Anomaly Detection")
    results = Results(args.out, "overhead", args.append)
    overheads(args, results)
    for case, measure in (("enter_leave", entering), ("diagnose", diagnosing), ("import", importing)):
        if args.only in case:
            measure(args, results)
    again = [abs(row.ratio - 1) for row in results.rows if row.tool == AGAIN]
    if again:
        print(f"two untraced runs differ by {statistics.median(again):.3f} (median), {max(again):.3f} at most")


if __name__ == "__main__":
    main()
