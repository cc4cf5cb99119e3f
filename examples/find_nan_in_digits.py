"""Real data, the usual mistake: scikit-learn's handwritten digits, standardised by a standard deviation of zero.

Some pixels at the rim of the 8 x 8 images are blank in every image. Their standard deviation is 0, so standardising
gives 0 / 0 there, and from the first layer on everything is NaN.

    pip install scikit-learn
    python examples/find_nan_in_digits.py
"""

import sherlorch
import torch
from sklearn.datasets import load_digits
from torch import nn


def standardise(images: torch.Tensor) -> torch.Tensor:
    return (images - images.mean(dim=0)) / images.std(dim=0)  # the bug: pixels that are always blank


def main() -> None:
    torch.manual_seed(0)
    pixels, digits = load_digits(return_X_y=True)
    labels = torch.from_numpy(digits)

    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    with sherlorch.trace() as tracker:
        tracker.watch(model, name="model")
        images = standardise(torch.from_numpy(pixels).float())
        for step in range(20):
            batch = torch.randint(0, len(images), (64,))
            loss = nn.functional.cross_entropy(model(images[batch]), labels[batch])
            if tracker.has_issue(loss):
                print(f"step {step}: loss {loss.item()}")
                print(tracker.diagnose(loss))
                return
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
