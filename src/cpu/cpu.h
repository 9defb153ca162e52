// The one entry header of the CPU backend: its engines, and facts about the processor.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plan/program/engine.h"

namespace tenon {
class Backend;
}

namespace tenon::cpu {

/// The host as a backend.
Backend& backend();

/// Plain loops in float64 for every region. Tests compare the other engines with this one.
const Engine& reference_engine();
/// Map regions tile by tile in cache, vectorised.
const Engine& map_engine();
/// Blocked matrix products and implicit-GEMM convolutions with fused epilogues.
const Engine& contraction_engine();
/// Pooling and movement.
const Engine& opaque_engine();
const Engine& attention_engine();
/// Host code of the program that uses the library (tenon/host_call.h).
const Engine& host_call_engine();
/// Chains of regions that the given engines claim. These engines must outlive the returned one.
std::unique_ptr<const Engine> chain_engine(std::span<const Engine* const> engines);

/// The processor, for reports: its model, its instruction sets that kernels use, the best kernels
/// that it can run, and the kernels in use.
struct Facts {
  std::string model;
  std::vector<std::string> features;
  std::string isa_available, isa;
  std::vector<std::int64_t> caches;  ///< bytes of its data caches by level, if known
};
Facts facts();
/// FLOP/s of multiply-adds on registers (two FLOP each), measured for about 50 ms.
double peak_flops(bool bf16, int threads);

}  // namespace tenon::cpu
