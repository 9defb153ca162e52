// What the tensor copy engine is told of a tensor in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "cuda/kernels/tensor_map.cuh"

namespace tenon::cuda {

/// Tensors of elements of `item` bytes, 2 or 4, of which only bits are moved: extents and the box
/// from the innermost dimension on, pitches in bytes from the second on; all are read as dimensions
/// of the extents. Lines of a box, 64 or 128 bytes, are swizzled by their length; what lies outside
/// is zero. Throws as the driver refuses it.
TensorMap tensor_map(void* memory, std::size_t item, std::initializer_list<std::uint64_t> extents,
                     std::initializer_list<std::uint64_t> pitches,
                     std::initializer_list<unsigned> box);

}  // namespace tenon::cuda
