// Inspect a plan before anything runs: the steps, the memory, and why operations were fused.
#include <string>

#include <tenon/tenon.h>

#include "check.h"

using namespace tenon;

int main() {
  const Tensor x = randn({64, 784}), labels = randint(0, 10, {64});
  const Tensor w = variable(randn({10, 784}) * 0.01, "fc.weight"),
               b = variable(zeros({10}), "fc.bias");
  const Tensor loss = cross_entropy(linear(x, w, b), labels);
  const Tensor params[] = {w, b};
  const std::vector<Tensor> g = grad(loss, params);
  const Tensor wanted[] = {loss, assign(w, w - 0.1 * g[0]), assign(b, b - 0.1 * g[1])};

  const Plan plan = tenon::plan(wanted);
  std::printf("%s\n%s\n", plan.steps().c_str(), plan.fusion().c_str());
  std::printf("%d nodes in %d steps, planned in %.2f ms; peak %lld bytes\n", plan.node_count(),
              plan.step_count(), plan.planning_ms(), static_cast<long long>(plan.peak_bytes()));
  check(plan.steps().find("matmul+") != std::string::npos,
        "the update of W is the epilogue of the matrix product that computes its gradient");

  // Python's safetensors package can read this file, and Tenon can read files from there.
  io::save_safetensors("weights.safetensors", {{"fc.weight", w}, {"fc.bias", b}});
  const auto loaded = io::load_safetensors("weights.safetensors");
  check(loaded.tensors.at("fc.bias").shape() == Shape{10}, "the saved tensors are loaded");
}
