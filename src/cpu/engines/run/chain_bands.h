// Chains in bands (plan/merge/bands.h) on the CPU: some rows of an image at a time.
#pragma once

#include <memory>
#include <span>

#include "plan/program/engine.h"

namespace tenon::cpu {

/// Null, or the reason why the engines that claim the chain's parts cannot run it; *part is then
/// the part.
const char* band_refusal(const Region& chain, std::span<const Value> values,
                         std::span<const Engine* const> engines, const Region** part);

std::unique_ptr<Kernel> prepare_bands(const Region& chain, std::span<const Value> values,
                                      int threads, std::span<const Engine* const> engines);

}  // namespace tenon::cpu
