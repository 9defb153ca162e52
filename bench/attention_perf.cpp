// Times causal scaled-dot-product attention: forward, and forward with all gradients.
//
//   c++ -std=c++20 -O2 -Iinclude bench/attention_perf.cpp build/lib/libtenon.a -lz -lpng -ljpeg
//   -ldl -lpthread attention_perf [cpu|cuda] [fp32|bf16] [batch heads length size]...
//
// Operands are stored as [batch, length, heads, size], as in the layers. One line per shape: times
// in milliseconds (median and minimum of 15). bench/peer_attention.py times PyTorch on the same
// work.
#include <tenon/tenon.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

using namespace tenon;
using Tensors = std::vector<Tensor>;

namespace {

double now() {
  using namespace std::chrono;
  return duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
}

struct Times {
  double median = 0, least = 0;
};

Times timed(const CompiledFunction& f, const Tensors& in) {
  std::vector<double> ms;
  for (int k = 0; k < 18; ++k) {
    const double start = now();
    const Tensors out = f(in);
    synchronize();
    if (k >= 3) ms.push_back(now() - start);
  }
  std::sort(ms.begin(), ms.end());
  return {ms[ms.size() / 2], ms.front()};
}

}  // namespace

int main(int argc, char** argv) {
  set_device(argc > 1 ? argv[1] : "cpu");
  const DType dtype = argc > 2 && std::string(argv[2]) == "bf16" ? DType::BFloat16 : DType::Float32;
  std::vector<std::array<std::int64_t, 4>> shapes;
  for (int k = 3; k + 3 < argc; k += 4)
    shapes.push_back({std::stoll(argv[k]), std::stoll(argv[k + 1]), std::stoll(argv[k + 2]),
                      std::stoll(argv[k + 3])});
  if (shapes.empty())
    shapes = {{4, 12, 64, 64}, {2, 12, 512, 64}, {1, 12, 1024, 64}, {1, 2, 4096, 64}};
  AttentionOptions causal;
  causal.causal = true;
  const auto forward = compile([&](const Tensors& x) {
    return Tensors{scaled_dot_product_attention(x[0], x[1], x[2], {}, causal)};
  });
  const auto both = compile([&](const Tensors& x) {
    const Tensors in = {x[0], x[1], x[2]};
    return grad(scaled_dot_product_attention(x[0], x[1], x[2], {}, causal), in, x[3]);
  });
  for (const auto& [batch, heads, length, size] : shapes) {
    Tensors in;
    for (int k = 0; k < 4; ++k)
      in.push_back(transpose(cast(randn({batch, length, heads, size}), dtype).compute(), 1, 2));
    const Times one = timed(forward, in), two = timed(both, in);
    std::printf("[%lld, %lld, %lld, %lld] %s: forward %.3f (%.3f), with gradients %.3f (%.3f)\n",
                static_cast<long long>(batch), static_cast<long long>(heads),
                static_cast<long long>(length), static_cast<long long>(size),
                dtype == DType::Float32 ? "fp32" : "bf16", one.median, one.least, two.median,
                two.least);
  }
}
