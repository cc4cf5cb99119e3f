"""TransformerEncoderLayer in train mode: a row that is all padding gives NaN in softmax."""
import torch
OPS = {"softmax", "scaled_dot_product_attention", "_scaled_dot_product_flash_attention_for_cpu", "div", "masked_fill", "sub", "mul"}
KIND = "nan"
def build():
    torch.manual_seed(0)
    l = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    return l.train(), torch.randn(2, 4, 8), torch.tensor([[False] * 4, [True] * 4])
def step(s, watch):
    l, x, pad = s
    watch(l, "enc")
    scores = (x @ x.transpose(1, 2)).masked_fill(pad[:, None, :], float("-inf"))
    p = torch.softmax(scores, -1)  # CULPRIT
    return l(p @ x)
