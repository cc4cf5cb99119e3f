#!/usr/bin/env python3
"""Makes examples/find_nan_in_notebook.ipynb: writes its cells, runs them in a real kernel, keeps what they show.

    python scripts/make_demo_notebook.py [FILE]

Needs sherlorch installed for the Python that runs this, and ipykernel, nbclient and nbformat (requirements/dev.txt).
"""

from __future__ import annotations

import argparse
import json
import pathlib
import re
import sys
import tempfile

import nbclient
import nbformat
from jupyter_client import KernelManager
from jupyter_client.kernelspec import KernelSpec

ROOT = pathlib.Path(__file__).resolve().parents[1]
TARGET = ROOT / "examples" / "find_nan_in_notebook.ipynb"
LIMIT_S = 300  # for one cell; the first import of torch is slow on a busy machine

# (type, text). What a culprit's line is to be is marked "the bug"; the test finds it there.
CELLS = [
    (
        "markdown",
        """# Which cell made the NaN?

`%load_ext sherlorch`, then `%%sherlorch` on top of a cell: the cell runs as ever, and if something that it leaves is
NaN or infinite, the diagnosis is shown below it. This notebook is made by `scripts/make_demo_notebook.py`.""",
    ),
    ("code", "%load_ext sherlorch\nimport torch\nfrom torch import nn"),
    ("markdown", "A small encoder. `Attention` takes the logarithm of scores that a ReLU has cut off at zero."),
    (
        "code",
        """class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, words):
        scores = self.query(words) @ self.key(words).transpose(-1, -2)
        return torch.log(torch.relu(scores))  # the bug: a score of zero


class Encoder(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.embedding = nn.Embedding(50, width)
        self.attention = Attention(width)
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens):
        words = self.embedding(tokens)
        return self.norm(words + self.attention(words).mean(dim=-1, keepdim=True))


torch.manual_seed(0)
model = Encoder()
tokens = torch.randint(0, 50, (4, 12))""",
    ),
    (
        "markdown",
        """The loss is NaN. The page names the cell and the line that did it, not the layer norm where the NaN appeared;
walk its path with the arrow keys.""",
    ),
    ("code", "%%sherlorch --watch model\nloss = model(tokens).square().mean()\nloss"),
    (
        "markdown",
        """Without the magic, a report at the end of a cell shows itself. The loss of this cell is finite,
its gradient is not: the slope of the square root at 0 is infinite.""",
    ),
    (
        "code",
        """import sherlorch

points = torch.zeros(3, 2, requires_grad=True)
with sherlorch.trace() as tracker:
    distance = points.square().sum(dim=1).sqrt()  # the bug: its slope at a distance of 0
    (0 * distance).sum().backward()
tracker.diagnose(points.grad)""",
    ),
    ("markdown", "Mended: nothing is non-finite, and the magic says nothing."),
    (
        "code",
        """%%sherlorch --watch model
Attention.forward = lambda self, words: torch.log_softmax(
    self.query(words) @ self.key(words).transpose(-1, -2), dim=-1
)
loss = model(tokens).square().mean()
print("finite" if loss.isfinite() else "not finite")""",
    ),
]


def written() -> nbformat.NotebookNode:
    """The notebook with no output yet."""
    notebook = nbformat.v4.new_notebook()
    make = {"markdown": nbformat.v4.new_markdown_cell, "code": nbformat.v4.new_code_cell}
    for number, (kind, text) in enumerate(CELLS):
        cell = make[kind](text)
        cell["id"] = f"cell-{number}"
        notebook.cells.append(cell)
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook.metadata["language_info"] = {"name": "python"}
    return notebook


def execute(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Runs it in a kernel of this Python, whatever kernels are installed.

    Raises:
        nbclient.exceptions.CellExecutionError: A cell raised an exception.
    """
    with tempfile.TemporaryDirectory() as folder:
        manager = KernelManager()
        manager._kernel_spec = KernelSpec(
            argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"], language="python"
        )
        client = nbclient.NotebookClient(
            notebook, km=manager, timeout=LIMIT_S, resources={"metadata": {"path": folder}}, record_timing=False
        )
        client.execute()
    return notebook


def settled(notebook: nbformat.NotebookNode) -> str:
    """As text, without what differs from one run to the next: process numbers and memory addresses."""
    text = nbformat.writes(notebook)
    text = re.sub(r"ipykernel_\d+/", "ipykernel/", text)
    return json.dumps(json.loads(text), indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", type=pathlib.Path, default=TARGET)
    file = parser.parse_args().file
    file.write_text(settled(execute(written())), encoding="utf-8")
    print(f"Wrote {file}")


if __name__ == "__main__":
    main()
