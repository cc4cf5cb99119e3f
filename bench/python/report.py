"""The table of what is measured beside what must be reached, and the plots, from the CSV files in bench/results/."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from common import RESULTS, ROOT, Row, load
from peers import ANOMALY, DISPATCH, FLOOR, HOOKS, ORIGINAL, ORIGINAL_ALL, ORIGINAL_LINES, OURS

UNTRACED, AGAIN = "untraced", "untraced, again"
PEERS = [FLOOR, ORIGINAL, ORIGINAL_LINES, ORIGINAL_ALL, ANOMALY, DISPATCH, HOOKS]


@dataclass
class Line:
    what: str
    goal: float | None
    unit: str  # of the goal: x, us, ms, MiB, bytes, %
    measured: float | None
    peers: str = ""
    at_least: bool = False

    def met(self) -> str:
        if self.measured is None:
            return "not measured"
        if self.goal is None:
            return ""
        good = self.measured >= self.goal if self.at_least else self.measured <= self.goal
        return "reached" if good else "**missed**"


def number(value: float, unit: str) -> str:
    if unit == "x":
        return f"{value:.2f}x" if value < 10 else f"{value:.0f}x"
    text = f"{value:.0f}" if abs(value) >= 20 or float(value).is_integer() else f"{value:.2f}"
    return f"{text} %" if unit == "%" else f"{text} {unit}"


class Measured:
    def __init__(self, folder: Path) -> None:
        rows = [row for name in ("overhead", "memory", "scaling", "sample") for row in load(folder / f"{name}.csv")]
        self.rows = {(row.case, int(row.size), row.tool): row for row in rows}
        self.core = self._core(folder)

    @staticmethod
    def _core(folder: Path) -> dict[str, float]:
        """Bytes a second of the scan's benchmark, medians, by name."""
        path = folder / "core.json"
        if not path.exists():
            return {}
        runs = json.loads(path.read_text())["benchmarks"]
        return {
            run["run_name"]: run["bytes_per_second"]
            for run in runs
            if run.get("aggregate_name", "median") == "median" and "bytes_per_second" in run
        }

    def get(self, case: str, size: int | None = None, tool: str = OURS) -> Row | None:
        found = [row for key, row in self.rows.items() if key[0] == case and key[2] == tool and size in (None, key[1])]
        return found[0] if found else None

    def take(self, case: str, size: int | None, of: Callable[[Row], float], tool: str = OURS) -> float | None:
        row = self.get(case, size, tool)
        return None if row is None else of(row)

    def peers(self, case: str, size: int, of: Callable[[Row], float], unit: str) -> str:
        said = []
        for tool in PEERS:
            value = self.take(case, size, of, tool)
            if value is not None:
                said.append(f"{tool} {number(value, unit)}")
        return "; ".join(said)

    def scan_share(self, pattern: str) -> float | None:
        """The worst of the scans that match, over reading as many bytes, in percent."""
        shares = []
        for name, speed in self.core.items():
            read = self.core.get("read/" + name.rsplit("/", 1)[-1])
            if read and re.match(pattern, name):
                shares.append(100 * speed / read)
        return min(shares) if shares else None


def lines(measured: Measured) -> list[Line]:
    def ratio(row: Row) -> float:
        return row.ratio

    def added(row: Row) -> float:
        return row.value - row.plain

    def value(row: Row) -> float:
        return row.value

    table = []
    for case, label, goals in (
        ("block", "attention block, forward, a new `with` each pass", {64: 1.15, 256: 1.05, 1024: 1.03}),
        ("step", "training step of a 4-layer encoder", {64: 1.10, 256: 1.05}),
        ("masked_step", "the same with a causal mask of -inf", {64: 1.12, 256: 1.06}),
    ):
        for size, goal in goals.items():
            got, peers = measured.take(case, size, ratio), measured.peers(case, size, ratio, "x")
            table.append(Line(f"{label}, d {size}", goal, "x", got, peers))
    peers = measured.peers("tiny_op", 4, added, "us")
    table.append(Line("tiny op (4 elements), added", 0.6, "us", measured.take("tiny_op", 4, added), peers))

    scans = measured.scan_share(r"scan/(float32|bfloat16|float16|float64)/")
    table.append(Line("scan, 32 KiB to 256 MiB, of the speed of reading (worst)", 90, "%", scans, at_least=True))
    census = measured.scan_share(r"census_1%_bad/(float32|bfloat16|float16|float64)/")
    table.append(Line("census of a bad buffer, of the same (worst)", 50, "%", census, at_least=True))

    for case, label in (
        ("memory_tiny", "a million tiny ops in one trace, growth"),
        ("memory_masks", "a million ops with masks of -inf, growth"),
        ("memory_step", "a million ops of training steps, growth"),
        ("memory_masked_step", "the same with a causal mask, growth"),
    ):
        plain = measured.take(case, None, value, UNTRACED)
        said = [] if plain is None else [f"untraced {number(plain, 'MiB')}"]
        table.append(Line(label, 2, "MiB", measured.take(case, None, value), "; ".join(said)))
    steps = "memory_500_steps"
    others = [(tool, measured.take(steps, None, value, tool)) for tool in (UNTRACED, ORIGINAL)]
    said = "; ".join(f"{tool} {number(grown, 'MiB')}" for tool, grown in others if grown is not None)
    table.append(
        Line("500 steps of the encoder in a fresh trace, growth", None, "MiB", measured.take(steps, None, value), said)
    )
    table.append(Line("the recorder's fixed size", 32, "MiB", measured.take("recorder_size", None, value)))
    table.append(Line("bytes an op", 128, "bytes", measured.take("bytes_an_op", None, value)))
    for case, label in (
        ("diagnose_pairs", "diagnose in 100,000 bad ops, two bad operands each"),
        ("diagnose_chain", "diagnose in 100,000 bad ops, one bad operand each"),
    ):
        table.append(Line(label, 50, "ms", measured.take(case, 100_000, value)))
    for part, label in (("text", "the text of the report on the latter"), ("nodes", "its nodes")):
        table.append(
            Line(f"{label}, when asked for", None, "ms", measured.take(f"diagnose_chain_{part}", 100_000, value))
        )
    few, many = (measured.take("partial_writes", rows, added) for rows in (10, 10_000))
    table.append(
        Line(
            "a write into a storage with 10,000 bad writes, over one with 10 (their logarithms: 4x)",
            4,
            "x",
            None if few is None or many is None else many / few,
        )
    )
    table.append(Line("entering and leaving a trace", 20, "us", measured.take("enter_leave", None, value)))
    table.append(Line("import after torch", 50, "ms", measured.take("import", None, value)))
    return table


def markdown(table: list[Line], folder: Path) -> str:
    rows = ["| what | goal | measured | | the others, in the same run |", "| --- | --- | --- | --- | --- |"]
    for line in table:
        goal = "-" if line.goal is None else ("at least " if line.at_least else "") + number(line.goal, line.unit)
        got = "-" if line.measured is None else number(line.measured, line.unit)
        rows.append(f"| {line.what} | {goal} | {got} | {line.met()} | {line.peers or '-'} |")
    return "\n\n".join([where(folder), "\n".join(rows), growth(folder), PLOTS])


def growth(folder: Path) -> str:
    """How the cost of one op changes as work grows: at the smallest and at the largest size."""
    rows = [
        "| as this grows | from | to | added an op at first | at last |",
        "| --- | --- | --- | --- | --- |",
    ]
    scaling = [row for row in load(folder / "scaling.csv") if row.tool == OURS]
    for case in dict.fromkeys(row.case for row in scaling):
        found = sorted((row for row in scaling if row.case == case), key=lambda row: row.size)
        first, last = found[0], found[-1]
        # What is asked once is told by the unit of work: a byte of a tensor, an op of a history.
        cost = [
            number((row.value - row.plain) * (1e3 / row.size if case in BY_SIZE else 1), BY_SIZE.get(case, "us"))
            for row in (first, last)
        ]
        rows.append(f"| {case.replace('_', ' ')} | {first.size:,.0f} | {last.size:,.0f} | {cost[0]} | {cost[1]} |")
    return "\n".join(rows) if len(rows) > 2 else ""


BY_SIZE = {"tensor_bytes": "ns a byte", "diagnose": "ns an op"}

PLOTS = """![Overhead by model size](bench/results/overhead_by_size.png)
![Overhead by tool](bench/results/overhead_by_tool.png)
![Cost as work grows](bench/results/scaling.png)
![sample=: cost, and what is found](bench/results/sample.png)"""


def where(folder: Path) -> str:
    path = folder / "machine.json"
    about = json.loads(path.read_text()) if path.exists() else {}
    load_average = about.get("load_average_at_start", ["?"])[0]
    again = [abs(row.ratio - 1) for row in load(folder / "overhead.csv") if row.tool == AGAIN]
    noise = f"Two untraced runs of one program differ by up to {max(again):.3f} here." if again else ""
    return (
        f"CPU time over the untraced program, one torch thread, medians of interleaved samples, file:line and module\n"
        f"paths on, Python's garbage collector off. Measured on {about.get('date')} with a build of "
        f"{about.get('build_of')}:\n"
        f"{about.get('cpu')}, {about.get('cores')} cores, {about.get('vectors')}, torch {about.get('torch')}; "
        f"load average {load_average} at the start of the\nlast part. {noise}\n"
        f"{about.get('note', '')}\n"
        f"What each thing costs and why: [docs/performance.md](docs/performance.md)."
    )


def plot(measured: Measured, folder: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    plt.rcParams.update({"figure.dpi": 80, "axes.spines.top": False, "axes.spines.right": False, "font.size": 10})
    rows = list(measured.rows.values())

    figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True)
    for axis, case, title in zip(axes, ("block", "step"), ("attention block, forward", "training step"), strict=True):
        for tool in [OURS, *PEERS]:
            points = sorted((row.size, row.ratio) for row in rows if row.case == case and row.tool == tool)
            if points:
                width = 2.5 if tool == OURS else 1.2
                axis.plot(*zip(*points, strict=True), marker="o", linewidth=width, label=tool)
        axis.set(xscale="log", yscale="log", xlabel="d_model", title=title)
        sizes = sorted({row.size for row in rows if row.case == case})
        axis.set_xticks(sizes, [f"{size:g}" for size in sizes], minor=False)
        axis.minorticks_off()
        axis.set_yticks([1, 2, 5, 10, 20], ["1x", "2x", "5x", "10x", "20x"])
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("CPU time over untraced")
    axes[1].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(folder / "overhead_by_size.png")
    plt.close(figure)

    shown = [("block", 64), ("block", 1024), ("step", 64), ("step", 256)]
    figure, axes = plt.subplots(1, len(shown), figsize=(13, 3.6), sharey=True)
    order = [*reversed(PEERS), OURS]
    for axis, (case, size) in zip(axes, shown, strict=True):
        for at, tool in enumerate(order):
            row = measured.get(case, size, tool)
            if row is not None:
                axis.barh(at, row.ratio, color="tab:red" if tool == OURS else "tab:gray")
                axis.text(row.ratio, at, f" {row.ratio:.2f}x", va="center", fontsize=8)
        axis.set(xscale="log", xlim=(1, 60), title=f"{case.replace('_', ' ')}, d {size}")
        axis.set_xticks([1, 3, 10, 30], ["1x", "3x", "10x", "30x"])
        axis.minorticks_off()
        axis.set_yticks(range(len(order)), order)
    figure.tight_layout()
    figure.savefig(folder / "overhead_by_tool.png")
    plt.close(figure)

    cases = list(dict.fromkeys(row.case for row in load(folder / "scaling.csv")))
    if cases:
        plot_scaling(plt, cases, rows, folder)
    if any(row.case == "sample_cost" for row in rows):
        plot_sample(plt, rows, folder)


def plot_scaling(plt, cases: list[str], rows: list[Row], folder: Path) -> None:
    figure, grid = plt.subplots(2, 6, figsize=(20, 6))
    for axis, case in zip(grid.flat, cases, strict=False):
        for tool in (UNTRACED, OURS):
            points = sorted(
                (row.size, row.value) for row in rows if row.case == case and row.tool == tool and row.value > 0
            )
            if points:
                axis.plot(*zip(*points, strict=True), marker="o", label=tool)
        axis.set(xscale="log", title=case.replace("_", " "), ylabel="us" if case == "diagnose" else "us an op")
        if case in BY_SIZE:  # what grows with the size itself
            axis.set(yscale="log")
        else:
            axis.set_ylim(bottom=0)
        if case == "threads":
            axis.set_xticks([1, 2, 4, 8], ["1", "2", "4", "8"])
            axis.minorticks_off()
        axis.grid(alpha=0.3)
    for axis in list(grid.flat)[len(cases) :]:
        axis.set_axis_off()
    grid.flat[0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(folder / "scaling.png")
    plt.close(figure)


def plot_sample(plt, rows: list[Row], folder: Path) -> None:
    figure, axes = plt.subplots(1, 3, figsize=(13, 3.6))
    panels = (
        ("sample_cost", "cost of an add", "bytes of the result", lambda row: row.ratio),
        ("sample_found_scattered", "found: bad elements here and there", "bad of 4 million", lambda row: row.value),
        ("sample_found_run", "found: bad elements in one run", "bad of 4 million", lambda row: row.value),
    )
    for axis, (case, title, label, of) in zip(axes, panels, strict=True):
        for tool in dict.fromkeys(row.tool for row in rows if row.case == case and row.tool != UNTRACED):
            points = sorted((row.size, of(row)) for row in rows if row.case == case and row.tool == tool)
            axis.plot(*zip(*points, strict=True), marker="o", label=tool)
        axis.set(xscale="log", title=title, xlabel=label)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("CPU time over untraced")
    axes[1].set_ylabel("% of the ops")
    axes[0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(folder / "sample.png")
    plt.close(figure)


def into_readme(text: str) -> None:
    path = ROOT / "README.md"
    begin, end = "<!-- bench:begin -->\n", "<!-- bench:end -->"
    before, rest = path.read_text().split(begin)
    path.write_text(before + begin + text + "\n" + end + rest.split(end)[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--readme", action="store_true", help="put the table between the marks of README.md")
    args = parser.parse_args()
    measured = Measured(args.results)
    text = markdown(lines(measured), args.results)
    print(text)
    plot(measured, args.results)
    if args.readme:
        into_readme(text)


if __name__ == "__main__":
    main()
