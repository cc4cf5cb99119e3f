"""Under autocast a linear's result feeds exp, which overflows in float32."""
import torch
OPS = {"exp"}
KIND = "+inf"
MODULE = "net"
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l = torch.nn.Linear(2, 2)
        with torch.no_grad():
            self.l.weight.fill_(500.)
    def forward(self, x):
        return self.l(x).exp()  # CULPRIT
def build():
    return Net(), torch.ones(1, 2)
def step(s, watch):
    net, x = s
    watch(net, "net")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = net(x).sum()
    return loss
