"""A NaN that a DataLoader worker sends is an input of the parent."""
import torch
OPS = {"mul", "stack"}
KIND = "nan"
ORIGIN = "input"
class D(torch.utils.data.Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, i):
        return torch.tensor([1.0, 0.0 if i != 2 else float("nan")])
def build():
    return D()
def step(d, watch):
    loader = torch.utils.data.DataLoader(d, batch_size=4, num_workers=2)
    total = torch.zeros(())
    for x in loader:
        total = total + (x * 2).sum()  # CULPRIT
    return total
