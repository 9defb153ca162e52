// The memory that checkpoint() saves in plans for both backends: chains of blocks and transformers.
#include <doctest/doctest.h>

#include <tenon/function.h>
#include <tenon/generator.h>
#include <tenon/grad.h>
#include <tenon/precision.h>
#include <tenon/transformer.h>

#include "planning.h"

using namespace tenon;
using namespace tenon::test;

namespace {

constexpr int kBlocks = 8;

/// The arena of a training step over blocks, with or without recomputation.
std::int64_t arena(const std::vector<nn::TransformerEncoderLayer>& blocks, const Tensor& x,
                   bool recomputes, const Settings& settings) {
  Tensor y = x;
  std::vector<Tensor> weights;
  for (const nn::TransformerEncoderLayer& block : blocks) {
    for (const Tensor& w : block.parameters()) weights.push_back(w);
    const auto run = [&block](const Tensor& v) { return block(v); };
    y = recomputes ? checkpoint(run, y) : run(y);
  }
  const Tensor loss = mean(square(y));
  return planned(grad(loss, weights), settings)->arena_bytes;
}

}  // namespace

TEST_CASE("checkpoint: the arena of a transformer's training step on both backends") {
  for (const Precision precision : {Precision::Fp32, Precision::Bf16}) {
    const PrecisionScope scope(precision);
    manual_seed(1);
    std::vector<nn::TransformerEncoderLayer> blocks;
    for (int k = 0; k < kBlocks; ++k)
      blocks.emplace_back(256, 4,
                          nn::TransformerOptions{.dim_feedforward = 1024, .batch_first = true});
    const Tensor x = leaf({32, 256, 256});
    for (const Device::Kind kind : {Device::Kind::Cpu, Device::Kind::Cuda})
      for (const bool library : {false, true}) {
        const Settings settings{.kind = kind, .has_product_library = library};
        const std::int64_t kept = arena(blocks, x, false, settings),
                           recomputed = arena(blocks, x, true, settings);
        INFO("CUDA " << (kind == Device::Kind::Cuda) << ", library " << library << ": " << kept
                     << " bytes, with checkpoint " << recomputed);
        CHECK(recomputed < kept / 3);
      }
  }
}
