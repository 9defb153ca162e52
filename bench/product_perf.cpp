// Times the large products of fully connected networks on a card, with the epilogues that training
// puts behind them: every engine that claims a shape, in each of its configurations. The figures of
// docs/internals/matmul.md come from its forerunner, which timed the same products.
//
// Not part of the build. By hand, with the library in build/:
//   g++ -std=c++20 -O1 -Isrc -Iinclude bench/product_perf.cpp build/lib/libtenon.a -ldl -lpthread
// Arguments: names of shapes (none: all). A row: engine and configuration, microseconds, TFLOP/s,
// TB/s of what must be read and written at least. Operands are random and taken in turn from
// several sets, so that the second-level cache does not hold them from launch to launch.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <tenon/error.h>

#include "cuda/cuda.h"

using namespace tenon;

namespace {

constexpr DType F = DType::Float32, BF = DType::BFloat16;

/// out[m, n] = A[m, k] B[k, n] and an epilogue over it; layout "nt": B is stored transposed.
struct Problem {
  std::string name;
  std::int64_t m, n, k;
  Region region;
  std::vector<Value> values;
  double flops = 0, bytes = 0;

  Problem(std::string title, std::int64_t rows, std::int64_t columns, std::int64_t inner,
          const char* layout, bool tf32)
      : name(std::move(title)), m(rows), n(columns), k(inner) {
    name += std::string(" ") + layout + (tf32 ? " tf32" : " bf16");
    region.kind = RegionKind::Contraction;
    region.title = name;
    Contraction& c = region.contraction;
    c.compute = tf32 ? F : BF;
    c.tf32 = tf32;
    c.a_shape = {m, k}, c.b_shape = {k, n}, c.out_shape = {m, n};
    c.a.stride[0] = layout[0] == 't' ? 1 : k, c.a.stride[1] = layout[0] == 't' ? m : 1;
    c.b.stride[0] = layout[1] == 't' ? 1 : n, c.b.stride[1] = layout[1] == 't' ? k : 1;
    c.a.value = add(c.compute, c.a_shape);
    c.b.value = add(c.compute, c.b_shape);
    c.has_epilogue = true;
    region.map.space = {1, m, n};
    flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  }

  ValueId add(DType dtype, const Shape& shape) {
    Value value;
    value.dtype = dtype;
    value.shape = shape;
    value.bytes = shape.numel() * static_cast<std::int64_t>(item_size(dtype));
    bytes += static_cast<double>(value.bytes);
    values.push_back(value);
    return static_cast<ValueId>(values.size()) - 1;
  }
  int push(MapCode code, Op op, int a, int b, double number = 0, DType dtype = F) {
    MapInstr instr;
    instr.code = code;
    instr.op = op;
    instr.dtype = dtype;
    instr.args[0] = a, instr.args[1] = b;
    instr.attrs.f = number;
    region.map.instrs.push_back(instr);
    return static_cast<int>(region.map.instrs.size()) - 1;
  }
  int accumulator() { return push(MapCode::Accumulator, Op::Data, -1, -1); }
  int number(double x) { return push(MapCode::Number, Op::Data, -1, -1, x); }
  int compute(Op op, int a, int b = -1) { return push(MapCode::Compute, op, a, b); }
  int load(ValueId value, bool row) {
    const int at = push(MapCode::Load, Op::Data, -1, -1);
    View& view = region.map.instrs.back().view;
    view.value = value;
    view.stride[1] = row ? 0 : n, view.stride[2] = 1;
    return at;
  }
  void store(int source, ValueId value) {
    View view;
    view.value = value;
    view.stride[1] = n, view.stride[2] = 1;
    region.map.stores.push_back({source, view});
  }
  void store_rounded(int source) {
    store(push(MapCode::Compute, Op::Cast, source, -1, 0, BF), add(BF, {m, n}));
  }
};

/// A layer's way forward: the sigmoid, and its derivative for the way back.
Problem sigmoid(std::int64_t m, std::int64_t n, std::int64_t k, bool tf32 = false) {
  Problem p("sigmoid " + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k), m,
            n, k, "nt", tf32);
  const int sum = p.compute(Op::Add, p.accumulator(), p.load(p.add(F, {n}), true));
  const int s = p.compute(Op::Sigmoid, sum);
  p.store_rounded(s);
  p.store(p.compute(Op::Mul, s, p.compute(Op::Sub, p.number(1), s)), p.add(F, {m, n}));
  return p;
}

/// A layer's way back: the gradient times that derivative.
Problem back(std::int64_t m, std::int64_t n, std::int64_t k, bool tf32 = false) {
  Problem p("back " + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k), m, n,
            k, "nn", tf32);
  const int derivative = p.load(p.add(F, {m, n}), false);
  p.store_rounded(p.compute(Op::Mul, p.accumulator(), derivative));
  return p;
}

/// SGD with momentum and decay where a weight's gradient is made; the weight also as bfloat16.
Problem update(std::int64_t m, std::int64_t n, std::int64_t k, bool tf32 = false) {
  Problem p("update " + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k), m, n,
            k, "tn", tf32);
  const ValueId velocity = p.add(F, {m, n}), weight = p.add(F, {m, n});
  const int v = p.load(velocity, false), w = p.load(weight, false);
  const int gradient = p.compute(Op::Add, p.accumulator(), p.compute(Op::Mul, w, p.number(5e-4)));
  const int moved = p.compute(Op::Add, p.compute(Op::Mul, v, p.number(0.9)), gradient);
  const int result = p.compute(Op::Sub, w, p.compute(Op::Mul, moved, p.number(0.01)));
  p.store(moved, velocity);
  p.store(result, weight);
  p.store_rounded(result);
  p.bytes += 8.0 * static_cast<double>(m) * static_cast<double>(n);  // both read and written
  return p;
}

std::vector<Problem> problems() {
  std::vector<Problem> all;
  for (const bool tf32 : {false, true}) {
    all.push_back(sigmoid(1024, 2048, 784, tf32));  // fcn_r
    all.push_back(sigmoid(1024, 4096, 2048, tf32));
    all.push_back(sigmoid(1024, 1024, 4096, tf32));
    all.push_back(back(1024, 2048, 4096, tf32));
    all.push_back(back(1024, 4096, 1024, tf32));
    all.push_back(update(2048, 784, 1024, tf32));
    all.push_back(update(4096, 2048, 1024, tf32));
    all.push_back(update(1024, 4096, 1024, tf32));
    all.push_back(sigmoid(64, 2048, 26752, tf32));  // fcn_s
    all.push_back(sigmoid(64, 2048, 2048, tf32));
    all.push_back(sigmoid(64, 26752, 2048, tf32));
    all.push_back(back(64, 2048, 26752, tf32));
    all.push_back(back(64, 2048, 2048, tf32));
    all.push_back(update(26752, 2048, 64, tf32));
    all.push_back(update(2048, 26752, 64, tf32));
  }
  return all;
}

/// Runs a kernel on one set of operands after the other.
class InTurn final : public Kernel {
 public:
  void run(const Binding& binding) const override {
    Binding next = binding;
    next.values = sets[turn_++ % sets.size()].data();
    kernel->run(next);
  }
  const Kernel* kernel = nullptr;
  std::vector<std::vector<std::byte*>> sets;

 private:
  mutable std::size_t turn_ = 0;
};

struct Candidate {
  std::string name;
  std::unique_ptr<Kernel> kernel;
};

/// Compilation starts here for all and goes on side by side.
std::vector<Candidate> candidates(const Problem& p, const cuda::Target& target) {
  std::vector<Candidate> all;
  for (const Engine* engine : cuda::engines(target)) {
    std::string why;
    if (!engine->claims(p.region, p.values, &why)) continue;
    std::vector<std::string> names = engine->configurations(p.region, p.values);
    names.insert(names.begin(), "");
    for (const std::string& name : names) try {
        all.push_back(
            {engine->name() + (" " + name), engine->prepare_as(name, p.region, p.values, 1)});
      } catch (const NotSupported&) {
        continue;  // a library that has fewer algorithms than names
      }
  }
  return all;
}

std::vector<std::uint32_t> random_words(std::size_t bytes, DType dtype, std::uint32_t seed) {
  std::vector<std::uint32_t> words(bytes / 4 + 1);
  std::uint32_t x = seed;
  const auto next = [&x] { return x = x * 1664525u + 1013904223u; };
  for (std::uint32_t& word : words) {
    if (dtype == F) {
      const float value = static_cast<float>(next() >> 8) / 16777216.0f - 0.5f;
      std::memcpy(&word, &value, sizeof value);
    } else {  // two bfloat16 of magnitudes between 1/8 and 1/4
      word = (next() >> 16 & 0x807fu) | 0x3e00u;
      word |= ((next() >> 16 & 0x807fu) | 0x3e00u) << 16;
    }
  }
  return words;
}

void measure(const Problem& p, const std::vector<Candidate>& all) {
  std::vector<std::pair<void*, std::size_t>> memory;
  const auto take = [&](std::size_t bytes) {
    memory.emplace_back(cuda::memory().allocate(std::max<std::size_t>(bytes, 256), 0),
                        std::max<std::size_t>(bytes, 256));
    return static_cast<std::byte*>(memory.back().first);
  };
  double resident = 0;
  for (const Value& value : p.values) resident += static_cast<double>(value.bytes);
  InTurn in_turn;
  for (std::uint32_t s = 0; s < std::clamp(3e8 / resident, 1.0, 8.0); ++s) {
    in_turn.sets.emplace_back();
    for (const Value& value : p.values) {
      const auto bytes = static_cast<std::size_t>(value.bytes);
      in_turn.sets.back().push_back(take(bytes));
      const std::vector<std::uint32_t> words = random_words(bytes, value.dtype, s + 1);
      cuda::memory().from_host(in_turn.sets.back().back(), words.data(), bytes, 0);
    }
  }
  std::size_t workspace = 0;
  for (const Candidate& one : all) workspace = std::max(workspace, one.kernel->workspace_bytes);
  const Binding binding{in_turn.sets[0].data(), take(workspace), cuda::stream(0)};
  std::printf("%s: %.1f GFLOP, %.0f MB\n", p.name.c_str(), p.flops * 1e-9, p.bytes * 1e-6);
  for (const Candidate& one : all) {
    in_turn.kernel = one.kernel.get();
    const double us = 1e3 * cuda::measure(in_turn, binding, 0, p.bytes > 3e8 ? 8 : 24);
    std::printf("  %-28s %9.2f us %8.1f TFLOP/s %6.2f TB/s\n", one.name.c_str(), us,
                p.flops / us * 1e-6, p.bytes / us * 1e-6);
  }
  std::fflush(stdout);
  for (const auto& [address, bytes] : memory) cuda::memory().release(address, bytes, 0);
}

}  // namespace

int main(int argc, char** argv) {
  if (cuda::card_count() == 0) {
    std::puts("skipped: no card");
    return 0;
  }
  const cuda::Target target = cuda::target_of(0);
  for (const Problem& p : problems()) {
    bool named = argc == 1;
    for (int i = 1; i < argc; ++i) named = named || p.name.find(argv[i]) != std::string::npos;
    if (named) measure(p, candidates(p, target));
  }
  return 0;
}
