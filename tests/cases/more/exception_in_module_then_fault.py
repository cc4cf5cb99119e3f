"""A module raises in forward, is caught, and another module makes the fault."""
import torch
OPS = {"log"}
KIND = "-inf"
MODULE = "net.good"
class Bad(torch.nn.Module):
    def forward(self, x):
        raise RuntimeError("no")
class Good(torch.nn.Module):
    def forward(self, x):
        return torch.log(x * 0)  # CULPRIT
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bad, self.good = Bad(), Good()
    def forward(self, x):
        try:
            x = self.bad(x)
        except RuntimeError:
            pass
        return self.good(x)
def build():
    return Net()
def step(n, watch):
    watch(n, "net")
    return n(torch.ones(2))
