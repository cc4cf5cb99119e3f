// Trains a small network whose loss is finite while its gradient is NaN, and asks who made it so.
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <sherlorch/report.h>
#include <sherlorch/tracker.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <iostream>

// Compares directions, not lengths: features are divided by their norm.
struct Net : torch::nn::Module {
  torch::nn::Linear encoder{nullptr};
  torch::nn::Linear head{nullptr};

  Net() {
    encoder = register_module("encoder", torch::nn::Linear(torch::nn::LinearOptions(8, 4).bias(false)));
    head = register_module("head", torch::nn::Linear(4, 1));
  }

  torch::Tensor forward(const torch::Tensor& x) {
    torch::Tensor features = encoder->forward(x).tanh();
    torch::Tensor norm = features.pow(2).sum(1, /*keepdim=*/true).sqrt();  // the bug: infinitely steep at 0
    return head->forward(features / (norm + 1e-6));                        // guards the division, and not the gradient
  }
};

int main() {
  torch::manual_seed(0);
  Net net;
  torch::optim::SGD optimizer(net.parameters(), /*lr=*/0.1);
  torch::Tensor x = at::rand({16, 8});
  torch::Tensor y = at::ones({16, 1});

  sherlorch::Tracker tracker;
  tracker.watch(net, "net");
  for (int step = 0; step < 5; ++step) {
    if (step == 2) x[3].zero_();  // an empty sample: padding
    optimizer.zero_grad();
    torch::Tensor loss = (net.forward(x) - y).pow(2).mean();
    loss.backward();
    std::cout << "step " << step << ": loss " << loss.item<double>() << '\n';

    const torch::Tensor& gradient = net.encoder->weight.grad();
    if (tracker.has_issue(gradient)) {
      sherlorch::Diagnosis diagnosis = tracker.diagnose(gradient);
      std::cout << sherlorch::to_text(diagnosis) << '\n';
      sherlorch::write_file("gradient.html", sherlorch::to_html(diagnosis), /*overwrite=*/true);
      std::cout << "Wrote gradient.html\n";
      return 1;
    }
    optimizer.step();
  }
}
