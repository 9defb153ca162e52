// Times contractions on a card: every engine that claims a shape; of convolutions that the engine
// conv could take its best shares of each tile, of others every tile and number of splits of the
// native one; so that the choices of their models can be held against the best.
//
// Not part of the build. By hand, with the library in build/:
//   g++ -std=c++20 -O1 -Isrc -Iinclude bench/contraction_perf.cpp build/lib/libtenon.a -ldl
//   -lpthread
// Arguments: names of shapes (none: all). A row: engine or tile, microseconds, TFLOP/s.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <tenon/error.h>

#include "cuda/cuda.h"
#include "cuda/engines/convolutions/conv_engine.h"
#include "cuda/engines/products/native_engine.h"

using namespace tenon;

namespace {

struct Problem {
  std::string name;
  Region region;
  std::vector<Value> values;
  double flops = 0;
  bool large = false;

  ValueId add(DType dtype, const Shape& shape) {
    Value value;
    value.dtype = dtype;
    value.shape = shape;
    value.bytes = shape.numel() * static_cast<std::int64_t>(item_size(dtype));
    values.push_back(value);
    return static_cast<ValueId>(values.size()) - 1;
  }
};

View natural(const Shape& shape, bool transposed = false) {
  View view;
  std::int64_t stride = 1;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    view.stride[d] = stride;
    stride *= shape[d];
  }
  if (transposed) {
    view.stride[0] = 1;
    view.stride[1] = shape[0];
  }
  return view;
}

Problem product(const std::string& name, std::int64_t m, std::int64_t n, std::int64_t k,
                const char* layout = "nt", DType dtype = DType::Float32,
                DType compute = DType::Float32, bool tf32 = false) {
  Problem p;
  p.name = name;
  p.region.kind = RegionKind::Contraction;
  p.region.title = name;
  Contraction& c = p.region.contraction;
  c.compute = compute;
  c.tf32 = tf32;
  c.a_shape = {m, k};
  c.b_shape = {k, n};
  c.out_shape = {m, n};
  c.a = natural(c.a_shape, layout[0] == 't');
  c.b = natural(c.b_shape, layout[1] == 't');
  c.a.value = p.add(dtype, c.a_shape);
  c.b.value = p.add(dtype, c.b_shape);
  c.out = p.add(DType::Float32, c.out_shape);
  p.flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  p.large = p.flops > 2e10;
  return p;
}

Problem convolution(const std::string& name, Op op, std::int64_t n, std::int64_t channels,
                    std::int64_t h, std::int64_t k, std::int64_t r, std::int64_t pad,
                    DType compute) {
  const std::int64_t p = h + 2 * pad - r + 1;
  const Shape x{n, channels, h, h}, w{k, channels, r, r}, y{n, k, p, p};
  Problem problem;
  problem.name = name + (compute == DType::BFloat16 ? " bf16" : " fp32");
  problem.region.kind = RegionKind::Contraction;
  problem.region.title = name;
  Contraction& c = problem.region.contraction;
  c.op = op;
  c.compute = compute;
  c.a_shape = op == Op::Conv2dInputGrad ? y : x;
  c.b_shape = op == Op::Conv2dWeightGrad ? y : w;
  c.out_shape = op == Op::Conv2d ? y : op == Op::Conv2dInputGrad ? x : w;
  ConvAttrs{1, 1, pad, pad, 1, 1, 1}.store(c.attrs);
  c.a = natural(c.a_shape);
  c.b = natural(c.b_shape);
  c.a.value = problem.add(DType::Float32, c.a_shape);
  c.b.value = problem.add(DType::Float32, c.b_shape);
  c.out = problem.add(DType::Float32, c.out_shape);
  problem.flops = 2.0 * static_cast<double>(y.numel() * channels * r * r);
  return problem;
}

/// The update of a weight matrix by SGD with momentum where its gradient is made.
Problem update(const std::string& name, std::int64_t m, std::int64_t n, std::int64_t k,
               DType dtype) {
  Problem p = product(name, m, n, k, "tn", dtype, DType::BFloat16);
  p.region.contraction.out = kNoValue;
  p.region.contraction.has_epilogue = true;
  MapProgram& map = p.region.map;
  map.space = {1, m, n};
  const auto push = [&](MapCode code, Op op, int a, int b, ValueId value, double f) {
    MapInstr instr;
    instr.code = code;
    instr.op = op;
    instr.args[0] = a;
    instr.args[1] = b;
    instr.attrs.f = f;
    instr.view.value = value;
    instr.view.stride[1] = n;
    instr.view.stride[2] = 1;
    map.instrs.push_back(instr);
    return static_cast<int>(map.instrs.size()) - 1;
  };
  const auto load = [&](ValueId value) { return push(MapCode::Load, Op::Data, -1, -1, value, 0); };
  const auto number = [&](double f) {
    return push(MapCode::Number, Op::Data, -1, -1, kNoValue, f);
  };
  const ValueId velocity = p.add(DType::Float32, {m, n}), weight = p.add(DType::Float32, {m, n});
  const auto compute = [&](Op op, int a, int b) {
    return push(MapCode::Compute, op, a, b, kNoValue, 0);
  };
  const int gradient = push(MapCode::Accumulator, Op::Data, -1, -1, kNoValue, 0);
  const int kept = compute(Op::Mul, load(velocity), number(0.9));
  const int moved = compute(Op::Add, kept, gradient);
  const int step = compute(Op::Mul, moved, number(0.01));
  const int result = compute(Op::Sub, load(weight), step);
  View view;
  view.stride[1] = n, view.stride[2] = 1;
  view.value = velocity;
  map.stores.push_back({moved, view});
  view.value = weight;
  map.stores.push_back({result, view});
  return p;
}

std::vector<Problem> problems() {
  constexpr DType F = DType::Float32, BF = DType::BFloat16;
  std::vector<Problem> all;
  all.push_back(product("lenet5 64x120x400", 64, 120, 400));
  all.push_back(product("lenet5 64x84x120", 64, 84, 120));
  all.push_back(product("lenet5 64x10x84", 64, 10, 84));
  all.push_back(product("lenet5 120x400x64 tn", 120, 400, 64, "tn"));
  all.push_back(product("keras 128x64x576", 128, 64, 576));
  for (const DType compute : {F, BF}) {
    const auto three = [&](const std::string& name, std::int64_t n, std::int64_t c, std::int64_t h,
                           std::int64_t k, std::int64_t r, std::int64_t pad) {
      all.push_back(convolution(name + " forward", Op::Conv2d, n, c, h, k, r, pad, compute));
      if (c > 1)
        all.push_back(convolution(name + " dx", Op::Conv2dInputGrad, n, c, h, k, r, pad, compute));
      all.push_back(convolution(name + " dw", Op::Conv2dWeightGrad, n, c, h, k, r, pad, compute));
    };
    three("lenet5 conv1", 64, 1, 28, 6, 5, 2);
    three("lenet5 conv2", 64, 6, 14, 16, 5, 0);
    three("keras conv1", 128, 1, 28, 32, 3, 0);
    three("keras conv2", 128, 32, 13, 64, 3, 0);
    three("keras conv3", 128, 64, 5, 64, 3, 0);
  }
  all.push_back(product("fcn_s 64x300x784", 64, 300, 784));
  all.push_back(product("fcn_r 1024x2048x2048", 1024, 2048, 2048));
  all.push_back(product("fcn_r 1024x2048x2048 tf32", 1024, 2048, 2048, "nt", F, F, true));
  all.push_back(product("fcn_r 1024x2048x2048 bf16 of fp32", 1024, 2048, 2048, "nt", F, BF));
  all.push_back(update("update 4096x2048x1024 bf16", 4096, 2048, 1024, BF));
  all.push_back(update("update 4096x2048x1024 bf16 of fp32", 4096, 2048, 1024, F));
  all.push_back(update("update 2048x26752x64 bf16", 2048, 26752, 64, BF));
  all.push_back(update("update 2048x26752x64 bf16 of fp32", 2048, 26752, 64, F));
  all.push_back(product("4096 fp32", 4096, 4096, 4096, "nn"));
  all.push_back(product("4096 tf32", 4096, 4096, 4096, "nn", F, F, true));
  all.push_back(product("4096 bf16 nn", 4096, 4096, 4096, "nn", BF, BF));
  all.push_back(product("4096 bf16 nt", 4096, 4096, 4096, "nt", BF, BF));
  all.push_back(product("4096 bf16 of fp32", 4096, 4096, 4096, "nt", F, BF));
  return all;
}

struct Candidate {
  std::string name;
  std::unique_ptr<Kernel> kernel;
  double us = 0;
};

cuda::GemmMath math_of(const Contraction& c) {
  return c.compute == DType::BFloat16 ? cuda::GemmMath::Bf16
         : c.tf32                     ? cuda::GemmMath::Tf32
                                      : cuda::GemmMath::Fp32;
}

std::string describe(const cuda::Tile& t, int splits) {
  return std::to_string(t.m) + "x" + std::to_string(t.n) + "x" + std::to_string(t.k) + " /" +
         std::to_string(splits);
}

/// Compilation starts here for all and goes on side by side.
std::vector<Candidate> candidates(const Problem& p, const cuda::Target& target) {
  std::vector<Candidate> all;
  for (const Engine* engine : cuda::engines(target)) {
    std::string why;
    if (!engine->claims(p.region, p.values, &why)) continue;
    Candidate one{engine->name(), nullptr};
    try {
      one.kernel = engine->prepare(p.region, p.values, 1);
    } catch (const NotSupported& e) {
      std::printf("%-40s %s: %s\n", p.name.c_str(), engine->name(), e.what());
      continue;
    }
    if (one.name == "native") {
      const auto form = cuda::contraction_form(p.region, p.values);
      const auto config = cuda::choose_config(target.model, p.region.contraction, form);
      one.name += " " + describe(config.tile, config.splits);
    }
    all.push_back(std::move(one));
  }
  cuda::ConvShape shape;
  if (cuda::conv_shape(p.region, p.values, shape) == nullptr) {
    for (const cuda::ConvConfig& config : cuda::conv_configs(target.model, shape, 4))
      all.push_back(
          {"  " + config_name(config), cuda::prepare_conv(p.region, p.values, target, config)});
    return all;
  }
  const auto form = cuda::contraction_form(p.region, p.values);
  for (const cuda::Tile& tile : cuda::gemm_tiles(math_of(p.region.contraction))) {
    const std::int64_t tiles =
        ((form.problem.m + tile.m - 1) / tile.m) * ((form.problem.n + tile.n - 1) / tile.n);
    if (p.large && tiles > 8192) continue;
    for (int splits = 1; splits <= 128; splits *= 4) {
      if (splits > 1 && (form.problem.k < 2ll * splits * tile.k || tiles * splits > 1024)) break;
      all.push_back({"  " + describe(tile, splits),
                     cuda::prepare_contraction(p.region, p.values, target, tile, splits)});
    }
  }
  return all;
}

void measure(const Problem& p, std::vector<Candidate>& all) {
  std::vector<std::byte*> pointers;
  std::vector<std::pair<void*, std::size_t>> memory;
  const auto take = [&](std::size_t bytes) {
    void* address = cuda::memory().allocate(std::max<std::size_t>(bytes, 256), 0);
    memory.emplace_back(address, std::max<std::size_t>(bytes, 256));
    return static_cast<std::byte*>(address);
  };
  for (const Value& value : p.values) {
    const auto bytes = static_cast<std::size_t>(value.bytes);
    pointers.push_back(take(bytes));
    const std::vector<unsigned char> small(bytes, 0x3c);
    cuda::memory().from_host(pointers.back(), small.data(), bytes, 0);
  }
  std::size_t workspace = 0;
  for (const Candidate& one : all) workspace = std::max(workspace, one.kernel->workspace_bytes);
  std::byte* const scratch = take(workspace);
  for (Candidate& one : all)
    one.us = 1e3 * cuda::measure(*one.kernel, {pointers.data(), scratch, cuda::stream(0)}, 0,
                                 p.large ? 5 : 30);
  for (const auto& [address, bytes] : memory) cuda::memory().release(address, bytes, 0);
}

void print(const Problem& p, std::vector<Candidate>& all) {
  std::printf("%s\n", p.name.c_str());
  std::stable_sort(all.begin(), all.end(),
                   [](const Candidate& a, const Candidate& b) { return a.us < b.us; });
  int tiles = 0;
  for (const Candidate& one : all)
    if (one.name[0] != ' ' || tiles++ < 12)
      std::printf("  %-36s %9.2f us %8.2f TFLOP/s\n", one.name.c_str(), one.us,
                  p.flops / one.us * 1e-6);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (cuda::card_count() == 0) {
    std::puts("skipped: no card");
    return 0;
  }
  const cuda::Target target = cuda::target_of(0);
  std::vector<Problem> wanted;
  for (Problem& p : problems()) {
    bool named = argc == 1;
    for (int i = 1; i < argc; ++i) named = named || p.name.find(argv[i]) != std::string::npos;
    if (named) wanted.push_back(std::move(p));
  }
  std::vector<std::vector<Candidate>> all;
  for (const Problem& p : wanted) all.push_back(candidates(p, target));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    measure(wanted[i], all[i]);
    print(wanted[i], all[i]);
  }
  return 0;
}
