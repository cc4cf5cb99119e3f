"""An LSTM saturates, but its projection head divides by zero; the LSTM is innocent."""
import torch
OPS = {"div"}
KIND = None
MODULE = "net.head"
class Head(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(4, 4)
    def forward(self, h):
        z = self.lin(h).relu()
        return z / z.sum(-1, keepdim=True)  # CULPRIT
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = torch.nn.LSTM(3, 4, batch_first=True)
        self.head = Head()
        with torch.no_grad():
            self.head.lin.weight.zero_(); self.head.lin.bias.fill_(-1)
    def forward(self, x):
        out, _ = self.rnn(x)
        return self.head(out[:, -1])
def build():
    torch.manual_seed(0)
    return Net(), torch.randn(2, 5, 3)
def step(s, watch):
    net, x = s
    watch(net, "net")
    return net(x).mean()
