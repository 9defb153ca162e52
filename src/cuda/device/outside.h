// Indices outside their axis, found by kernels. A kernel cannot throw. It stores a record in host
// memory that is mapped to the GPU; the next read of a value throws. Valid indices cost nothing, in
// captured steps too.
//
// There is one record per GPU, so of several invalid indices one is reported. Reading the record
// needs no copy and no extra wait, because the reader of a value has already waited for the work
// before.
#pragma once

#include <cstdint>
#include <string>

#include "cuda/kernels/opaque/movement_args.cuh"

namespace tenon::cuda {

/// The record of a GPU, in memory that is pinned on first use.
Outside* outside_record(int index);
/// A number for the op (with its layer) and the axis that it indexes; equal sites have equal
/// numbers.
std::int64_t outside_site(const std::string& op, std::int64_t axis, std::int64_t size);
/// Call after waiting for the GPU's work: throws ValueError for the record, once.
void throw_outside(int index);

}  // namespace tenon::cuda
