// Indices that kernels found outside their axis. A kernel cannot throw: it leaves a record in host
// memory that the GPU sees, at no cost where all is well, captured steps included; the next read
// of a value throws.
//
// One record a GPU: of several indices one is told. Reading it needs no copy and no wait of its
// own, as what reads a value has waited for the work before.
#pragma once

#include <cstdint>
#include <string>

#include "cuda/kernels/movement_args.cuh"

namespace tenon::cuda {

/// Where the kernels of a GPU leave it. Pins it when it is first asked for.
Outside* outside_record(int index);
/// A number for the op, with its layer, and the axis that it indexes: equal ones have the same.
std::int64_t outside_site(const std::string& op, std::int64_t axis, std::int64_t size);
/// After a wait for the GPU's work: throws the ValueError for what was left, once.
void throw_outside(int index);

}  // namespace tenon::cuda
