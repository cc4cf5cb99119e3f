"""Sparse, nested, complex and opaque tensors: their values are read where there are any, and else the report says so."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import sherlorch
import torch


def coo() -> torch.Tensor:
    values = torch.log(torch.tensor([0.0, 2.0]))
    matrix = torch.sparse_coo_tensor(torch.tensor([[0, 1], [1, 0]]), values, (2, 2))
    return torch.sparse.mm(matrix, torch.ones(2, 2)).sum()


def csr() -> torch.Tensor:
    values = torch.log(torch.tensor([0.0, 1.0]))
    matrix = torch.sparse_csr_tensor(torch.tensor([0, 1, 2]), torch.tensor([1, 0]), values, (2, 2))
    return (matrix @ torch.ones(2, 1)).sum()


def sparse_op() -> torch.Tensor:
    vector = torch.sparse_coo_tensor(torch.tensor([[0, 1]]), torch.tensor([-1.0, 2.0]), (2,)).coalesce()
    return torch.sqrt(vector).to_dense().sum()


def jagged() -> torch.Tensor:
    rows = [torch.tensor([1.0, 0.0]), torch.tensor([2.0])]
    return torch.log(torch.nested.nested_tensor(rows, layout=torch.jagged)).values().sum()


def padded() -> torch.Tensor:
    rows = torch.nested.nested_tensor([torch.tensor([1.0, 0.0]), torch.tensor([2.0])])
    return torch.log(rows.to_padded_tensor(1.0)).sum()


def complex_division() -> torch.Tensor:
    return (torch.complex(torch.zeros(2), torch.ones(2)) / torch.zeros(2)).abs().sum()


@pytest.mark.parametrize(
    ("program", "op_name"),
    [(coo, "log"), (csr, "log"), (sparse_op, "sqrt"), (jagged, "log"), (padded, "log"), (complex_division, "div")],
)
@pytest.mark.filterwarnings("ignore")
def test_the_op_is_named(program: Callable[[], torch.Tensor], op_name: str) -> None:
    with sherlorch.trace() as tracker:
        target = program()
    assert [culprit.op_name for culprit in tracker.diagnose(target).culprits] == [op_name]


def test_what_opaque_memory_hides_is_not_claimed_for_certain() -> None:
    if not torch.backends.mkldnn.is_available():
        pytest.skip("this torch has no mkldnn")
    with sherlorch.trace() as tracker:
        bad = (torch.zeros(2, 2) / 0).to_mkldnn()
        target = (torch.ones(2, 2).to_mkldnn() + bad).to_dense().sum()
    report = tracker.diagnose(target)
    (culprit,) = report.culprits
    assert not culprit.certain
    assert "not certain" in report.to_text()
    assert any(spot.kind == "no_storage" for spot in report.blind_spots)
