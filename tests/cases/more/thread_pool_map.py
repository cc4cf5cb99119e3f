"""A thread pool: one of its tasks divides by zero."""
import torch
from concurrent.futures import ThreadPoolExecutor
OPS = {"reciprocal"}
KIND = None
def work(x):
    return 1 / x  # CULPRIT
def build():
    return [torch.full((2,), float(i)) for i in (3, 2, 0, 1)]
def step(xs, watch):
    with ThreadPoolExecutor(3) as pool:
        return torch.stack(list(pool.map(work, xs))).sum()
