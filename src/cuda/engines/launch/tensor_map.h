// Tensor maps: descriptors of tensors in memory for TMA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "cuda/kernels/tensor_map.cuh"

namespace tenon::cuda {

/// A tensor of elements of `item` bytes, 2 or 4; TMA moves bits only. Extents and the box start at
/// the innermost dimension; pitches are in bytes and start at the second dimension. The lines of a
/// box, 64 or 128 bytes, are swizzled by their length. Elements outside the tensor are zero. Throws
/// if the driver refuses the map.
TensorMap tensor_map(void* memory, std::size_t item, std::initializer_list<std::uint64_t> extents,
                     std::initializer_list<std::uint64_t> pitches,
                     std::initializer_list<unsigned> box);

}  // namespace tenon::cuda
