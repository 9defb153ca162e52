// Times the convolutions of the cuDNN paper (Chetlur et al., arXiv 1410.0759): five layers, forward
// and both gradients, each pass as a separate program. README.md explains the figures.
//
//   lab_conv [cpu|cuda] [fp32|tf32|bf16] [batch] [milliseconds a row] [layer]
//
// Prints one JSON object a line. If a program needs more memory than operands and result, the
// object says how much.
#include <tenon/tenon.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

using namespace tenon;
using Tensors = std::vector<Tensor>;

namespace {

// No padding, stride 1.
struct Layer {
  const char* name;
  std::int64_t channels, side, filters, kernel;
  std::int64_t out() const { return side - kernel + 1; }
};
constexpr Layer kLayers[] = {{"L1", 3, 128, 96, 11},
                             {"L2", 64, 64, 128, 9},
                             {"L3", 128, 32, 128, 9},
                             {"L4", 128, 16, 128, 7},
                             {"L5", 384, 13, 384, 3}};

struct Pass {
  const char* name;
  CompiledFunction::Body body;  // of input, filters and the result's gradient
};

std::vector<Pass> passes() {
  return {{"forward", [](const Tensors& in) { return Tensors{conv2d(in[0], in[1])}; }},
          {"by input",
           [](const Tensors& in) { return Tensors{grad(conv2d(in[0], in[1]), in[0], in[2])}; }},
          {"by filters",
           [](const Tensors& in) { return Tensors{grad(conv2d(in[0], in[1]), in[1], in[2])}; }}};
}

double now_ms() {
  using namespace std::chrono;
  return duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
}

// Calls are queued for a tenth of the budget at a time, so that starting them costs nothing.
double median_ms(const CompiledFunction& f, const Tensors& in, double budget) {
  const auto run = [&](int calls) {
    const double start = now_ms();
    for (int k = 0; k < calls; ++k) f(in);
    synchronize();
    return (now_ms() - start) / calls;
  };
  run(2);
  const int calls = std::max(1, static_cast<int>(budget / 10 / run(1)));
  std::vector<double> samples;
  for (const double start = now_ms(); samples.size() < 3 || now_ms() - start < budget;)
    samples.push_back(run(calls));
  std::sort(samples.begin(), samples.end());
  return samples[samples.size() / 2];
}

// The engine of the step that has the multiply-adds.
std::string engine_of(const CompiledFunction& f, const Tensors& in) {
  std::string engine;
  double most = 0;
  for (const StepTime& step : f.profile(in, 1))
    if (step.gflop > most) most = step.gflop, engine = step.engine;
  return engine;
}

void time_row(const Layer& layer, const Pass& pass, const Tensors& in, const std::string& precision,
              double budget) {
  const CompiledFunction f = compile(pass.body);
  const double ms = median_ms(f, in, budget);
  const auto batch = static_cast<double>(in[0].size(0));
  const double gflop = 2e-9 * batch * static_cast<double>(in[1].numel()) *
                       static_cast<double>(layer.out() * layer.out());
  std::printf(
      "{\"system\": \"tenon\", \"layer\": \"%s\", \"pass\": \"%s\", \"precision\": \"%s\", "
      "\"batch\": %.0f, \"ms\": %.4f, \"tflops\": %.2f, \"extra_mb\": %.2f, "
      "\"engine\": \"%s\"}\n",
      layer.name, pass.name, precision.c_str(), batch, ms, gflop / ms,
      static_cast<double>(f.plan(in).arena_bytes()) / 1048576, engine_of(f, in).c_str());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string precision = argc > 2 ? argv[2] : "fp32";
  const std::int64_t batch = argc > 3 ? std::stoll(argv[3]) : 128;
  const double budget = argc > 4 ? std::stod(argv[4]) : 300;
  set_device(argc > 1 ? argv[1] : "cuda");
  const DType dtype = precision == "bf16" ? DType::BFloat16 : DType::Float32;
  if (precision == "tf32") set_precision(Precision::Tf32);
  for (const Layer& layer : kLayers) {
    if (argc > 5 && std::string(argv[5]) != layer.name) continue;
    const auto drawn = [&](std::int64_t a, std::int64_t b, std::int64_t side) {
      return cast(randn({a, b, side, side}), dtype).compute();
    };
    const Tensors in = {drawn(batch, layer.channels, layer.side),
                        drawn(layer.filters, layer.channels, layer.kernel),
                        drawn(batch, layer.filters, layer.out())};
    for (const Pass& pass : passes()) time_row(layer, pass, in, precision, budget);
  }
}
