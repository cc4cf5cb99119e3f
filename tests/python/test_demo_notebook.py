"""The demo notebook: its cells do what they say in a real kernel, and the one in examples/ is what the script makes."""

from __future__ import annotations

import html
import importlib.util
import json
import re
from types import ModuleType
from typing import Any

import pytest
from conftest import ROOT

for package in ("nbclient", "nbformat", "ipykernel"):
    pytest.importorskip(package, reason=f"the {package} package is not installed")

NOTEBOOK = ROOT / "examples" / "find_nan_in_notebook.ipynb"


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_demo_notebook", ROOT / "scripts" / "make_demo_notebook.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def executed(maker: ModuleType) -> dict[str, Any]:
    notebook: dict[str, Any] = json.loads(maker.settled(maker.execute(maker.written())))
    return notebook


def _code(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def _text(cell: dict[str, Any]) -> str:
    return "".join("".join(output["text"]) for output in cell["outputs"] if output["output_type"] == "stream")


def _page(cell: dict[str, Any]) -> str:
    """The page in the cell's output, out of its frame."""
    found = [output["data"]["text/html"] for output in cell["outputs"] if "text/html" in output.get("data", {})]
    assert len(found) == 1
    frame = re.match(r'<iframe srcdoc="([^"]*)"', "".join(found[0]))
    assert frame is not None
    return html.unescape(frame[1])


def _bug_line(cell: dict[str, Any]) -> int:
    lines = "".join(cell["source"]).splitlines()
    return next(number for number, text in enumerate(lines, 1) if "# the bug" in text)


def _data(cell: dict[str, Any]) -> dict[str, Any]:
    found = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', _page(cell), re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def _check_line(data: dict[str, Any], cell: dict[str, Any]) -> None:
    """The culprit's line is the cell's own, and the page has the cell's name and its source."""
    location = data["diagnosis"]["culprits"][0]["step"]["location"]
    assert location["line"] == _bug_line(cell)
    assert data["page"]["file_labels"][location["file"]] == f"In[{cell['execution_count']}]"
    assert "# the bug" in data["page"]["sources"][location["file"]][str(_bug_line(cell))]


def _check(notebook: dict[str, Any]) -> None:
    load, define, forward, backward, mended = _code(notebook)
    assert load["outputs"] == define["outputs"] == []

    place = f"In[{define['execution_count']}], line {_bug_line(define)}"
    assert f"the cell's value is non-finite: log(0.0) is -inf at {place}" in _text(forward)
    data = _data(forward)
    culprit = data["diagnosis"]["culprits"][0]["step"]
    assert (culprit["op_name"], culprit["module_path"]) == ("log", "model.attention")
    _check_line(data, define)
    assert {"path": "model.attention.query", "type": "Linear"} in data["page"]["modules"]

    data = _data(backward)
    culprit = data["diagnosis"]["culprits"][0]["step"]
    assert (culprit["op_name"], culprit["phase"]) == ("SqrtBackward0", "backward")
    _check_line(data, backward)

    assert _text(mended) == "finite\n"
    assert len(mended["outputs"]) == 1


def test_the_cells_name_the_culprit_with_the_cells_line_and_show_the_page(executed: dict[str, Any]) -> None:
    _check(executed)


def test_the_notebook_in_examples_is_the_scripts_and_was_executed(maker: ModuleType) -> None:
    kept = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert [(cell["cell_type"], "".join(cell["source"])) for cell in kept["cells"]] == maker.CELLS, (
        "run scripts/make_demo_notebook.py anew"
    )
    _check(kept)
