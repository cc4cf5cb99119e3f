"""What the benchmarks share: the interleaving timer, rows of results, the command line, the machine's description."""

from __future__ import annotations

import argparse
import csv
import gc
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import torch
from sherlorch import _native

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results"
QUICK_RESULTS = ROOT / "build" / "bench" / "quick"

Body = Callable[[], object]


@dataclass
class Row:
    """One measurement. `plain` and `value` are medians in `unit`; `low` and `high` are the quartiles of value."""

    case: str
    size: float
    tool: str
    rounds: int
    unit: str
    plain: float
    value: float
    low: float
    high: float

    @property
    def ratio(self) -> float:
        return self.value / self.plain if self.plain else float("nan")


def one_thread() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)


def interleave(
    bodies: dict[str, Body], rounds: int, *, seldom: frozenset[str] = frozenset(), warm: int = 2
) -> dict[str, list[float]]:
    """CPU seconds of each body, a sample a round, each round in another order.

    What is in `seldom` runs in every other round only: the slow tools. The garbage collector runs between samples and
    not within them.
    """
    order = random.Random(1)
    times: dict[str, list[float]] = {name: [] for name in bodies}
    for body in bodies.values():
        for _ in range(warm):
            body()
    gc.collect()
    was_on = gc.isenabled()
    gc.disable()
    try:
        for turn in range(rounds):
            names = [name for name in bodies if turn % 2 == 0 or name not in seldom]
            order.shuffle(names)
            for name in names:
                start = time.process_time()
                bodies[name]()
                times[name].append(time.process_time() - start)
            gc.collect(0)
    finally:
        if was_on:
            gc.enable()
    return times


def quartiles(values: list[float]) -> tuple[float, float, float]:
    if len(values) < 2:
        return values[0], values[0], values[0]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


def rows_of(
    case: str, size: float, times: dict[str, list[float]], *, per: int = 1, unit: str = "ms", plain: str = "untraced"
) -> list[Row]:
    """Rows of interleaved times; `per` is how many passes or ops a sample had."""
    scale = {"s": 1.0, "ms": 1e3, "us": 1e6}[unit] / per
    base = statistics.median(times[plain]) * scale
    rows = []
    for tool, values in times.items():
        low, middle, high = (scale * value for value in quartiles(values))
        rows.append(Row(case, size, tool, len(values), unit, base, middle, low, high))
    return rows


def show(rows: list[Row]) -> None:
    for row in rows:
        ratio = f"  {row.ratio:7.3f}x" if row.plain else ""
        print(f"{row.case:22} {row.size:>10g}  {row.tool:34} {row.value:12.4f} {row.unit}{ratio}", flush=True)


class Results:
    """A CSV file that is written anew after each case, so that an interrupted run leaves what it has."""

    def __init__(self, folder: Path, name: str, append: bool = False) -> None:
        self.path = folder / f"{name}.csv"
        self.rows: list[Row] = load(self.path) if append else []
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "machine.json").write_text(json.dumps(machine(), indent=2) + "\n")

    def add(self, rows: list[Row]) -> None:
        show(rows)
        anew = {(row.case, row.size) for row in rows if row.tool in ("untraced", "sherlorch")}
        kept = [row for row in self.rows if (row.case, row.size) not in anew or row.case.startswith("memory")]
        self.rows = kept + rows
        names = [field.name for field in fields(Row)]
        with self.path.open("w", newline="") as file:
            writer = csv.DictWriter(file, [*names, "ratio"], lineterminator="\n")
            writer.writeheader()
            for row in self.rows:
                values = asdict(row) | {"ratio": row.ratio if row.plain else ""}
                writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in values.items()})


def load(path: Path) -> list[Row]:
    if not path.exists():
        return []
    kinds = {field.name: {"str": str, "int": int, "float": float}[str(field.type)] for field in fields(Row)}
    with path.open(newline="") as file:
        return [Row(**{name: kind(line[name]) for name, kind in kinds.items()}) for line in csv.DictReader(file)]


def machine() -> dict[str, object]:
    model = platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        model = names[0] if names else model
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "load_average_at_start": [round(value, 1) for value in os.getloadavg()],
        "vectors": torch.backends.cpu.get_cpu_capability(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "checkout": commit.stdout.strip() or "unknown",  # the build that was loaded may be older
        "build_of": time.strftime("%Y-%m-%d %H:%M", time.localtime(Path(_native.__file__).stat().st_mtime)),
        "date": time.strftime("%Y-%m-%d"),
    }


def rss() -> int:
    """Bytes of the process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def arguments(rounds: int, text: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=text)
    parser.add_argument("--rounds", type=int, default=None, help=f"samples of each body; {rounds} by default")
    quick = os.environ.get("BENCH_QUICK", "0") not in ("", "0")
    parser.add_argument(
        "--quick", action="store_true", default=quick, help="few rounds and small sizes, to see that it runs"
    )
    parser.add_argument("--only", default="", help="only cases whose names contain this")
    parser.add_argument("--ours", action="store_true", help="leave the other tools out")
    parser.add_argument("--append", action="store_true", help="keep what the CSV has of other cases")
    parser.add_argument("--out", type=Path, default=None, help="folder of the CSV; a quick run's is build/bench/quick")
    args = parser.parse_args()
    args.rounds = args.rounds or (3 if args.quick else rounds)
    args.out = args.out or (QUICK_RESULTS if args.quick else RESULTS)
    return args


def run_child(*words: str) -> str:
    """Another Python process with these words; what it prints."""
    ran = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    if ran.returncode:
        raise RuntimeError(ran.stderr)
    return ran.stdout.strip()
