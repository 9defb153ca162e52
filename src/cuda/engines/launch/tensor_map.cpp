// Creates tensor maps with the driver.
#include "cuda/engines/launch/tensor_map.h"

#include "cuda/device/opening/driver.h"

namespace tenon::cuda {

TensorMap tensor_map(void* memory, std::size_t item, std::initializer_list<std::uint64_t> extents,
                     std::initializer_list<std::uint64_t> pitches,
                     std::initializer_list<unsigned> box) {
  // CU_TENSOR_MAP_DATA_TYPE_UINT16 and …_UINT32. No interleaving; promotion to 256 bytes in the L2
  // cache.
  constexpr int kUint16 = 1, kUint32 = 2, kNone = 0, kSwizzle64 = 2, kSwizzle128 = 3,
                kPromote256 = 3;
  constexpr unsigned kSteps[] = {1, 1, 1, 1};
  const int swizzle = *box.begin() * item == 64 ? kSwizzle64 : kSwizzle128;
  TensorMap map;
  check(driver().cuTensorMapEncodeTiled(&map, item == 2 ? kUint16 : kUint32,
                                        static_cast<unsigned>(extents.size()), memory,
                                        extents.begin(), pitches.begin(), box.begin(), kSteps,
                                        kNone, swizzle, kPromote256, kNone),
        "describing a tensor of ", extents.size(), " dimensions, ", *extents.begin(),
        " elements a line");
  return map;
}

}  // namespace tenon::cuda
