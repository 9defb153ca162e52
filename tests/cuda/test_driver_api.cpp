// Our declarations of the driver API against NVIDIA's header, compared by the compiler where a
// toolkit is installed.
#include <cstddef>
#include <type_traits>

#include <doctest/doctest.h>

#include "cuda/device/opening/driver_api.h"

#if __has_include("/usr/local/cuda/include/cuda.h")
#include "/usr/local/cuda/include/cuda.h"
#elif __has_include("/usr/local/cuda-13.0/include/cuda.h")
#include "/usr/local/cuda-13.0/include/cuda.h"
#endif

#ifdef CUDA_VERSION
namespace tenon::cuda {
namespace {

// True for types that are passed alike and have the same constness: handles are opaque,
// enumerations are ints.
template <class A, class B>
constexpr bool alike() {
  if constexpr (std::is_pointer_v<A> && std::is_pointer_v<B>) {
    using PA = std::remove_pointer_t<A>;
    using PB = std::remove_pointer_t<B>;
    if constexpr (std::is_const_v<PA> != std::is_const_v<PB>)
      return false;
    else if constexpr (std::is_void_v<PA> || std::is_class_v<PA>)
      return std::is_void_v<PA> == std::is_void_v<PB> && std::is_class_v<PA> == std::is_class_v<PB>;
    else
      return alike<std::remove_const_t<PA>, std::remove_const_t<PB>>();
  } else {
    return sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B> &&
           std::is_enum_v<A> == std::is_enum_v<B> && std::is_signed_v<A> == std::is_signed_v<B>;
  }
}

template <class A, class B>
struct SameFunction : std::false_type {};
template <class... A, class... B>
requires(sizeof...(A) == sizeof...(B)) struct SameFunction<CUresult(A...), ::CUresult(B...)>
    : std::bool_constant<(alike<A, B>() && ...)> {
};

// cuda.h maps the plain names to the newest version of each function; the symbols of the list have
// the same parameters, except for the one that is requested in CUDA 12's version.
#define TENON_SAME(name, symbol, parameters) \
  static_assert(SameFunction<CUresult parameters, decltype(::name)>::value, symbol);
TENON_DRIVER_REQUIRED(TENON_SAME)
#undef TENON_SAME

static_assert(sizeof(CUDA_MEMCPY3D) == sizeof(::CUDA_MEMCPY3D));
#define TENON_FIELD(field) \
  static_assert(offsetof(CUDA_MEMCPY3D, field) == offsetof(::CUDA_MEMCPY3D, field));
TENON_FIELD(srcMemoryType)
TENON_FIELD(srcHost)
TENON_FIELD(srcDevice)
TENON_FIELD(srcPitch)
TENON_FIELD(dstXInBytes)
TENON_FIELD(dstMemoryType)
TENON_FIELD(dstDevice)
TENON_FIELD(WidthInBytes)
TENON_FIELD(Depth)
#undef TENON_FIELD

static_assert(sizeof(CUDA_KERNEL_NODE_PARAMS) == sizeof(::CUDA_KERNEL_NODE_PARAMS));
static_assert(offsetof(CUDA_KERNEL_NODE_PARAMS, func) == offsetof(::CUDA_KERNEL_NODE_PARAMS, func));
#if CUDA_VERSION >= 12030
static_assert(sizeof(CUgraphEdgeData) == sizeof(::CUgraphEdgeData));
static_assert(offsetof(CUgraphEdgeData, type) == offsetof(::CUgraphEdgeData, type));
static_assert(static_cast<int>(CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC) ==
              static_cast<int>(::CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC));
#endif

#define TENON_NUMBER(name) static_assert(static_cast<int>(name) == static_cast<int>(::name));
TENON_NUMBER(CUDA_ERROR_OUT_OF_MEMORY)
TENON_NUMBER(CUDA_ERROR_DEINITIALIZED)
TENON_NUMBER(CUDA_ERROR_DEVICE_UNAVAILABLE)
TENON_NUMBER(CUDA_ERROR_NO_DEVICE)
TENON_NUMBER(CUDA_ERROR_INVALID_IMAGE)
TENON_NUMBER(CUDA_ERROR_NO_BINARY_FOR_GPU)
TENON_NUMBER(CUDA_ERROR_ECC_UNCORRECTABLE)
TENON_NUMBER(CUDA_ERROR_INVALID_PTX)
TENON_NUMBER(CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
TENON_NUMBER(CUDA_ERROR_NOT_READY)
TENON_NUMBER(CUDA_ERROR_ILLEGAL_ADDRESS)
TENON_NUMBER(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)
TENON_NUMBER(CUDA_ERROR_LAUNCH_TIMEOUT)
TENON_NUMBER(CUDA_ERROR_ILLEGAL_INSTRUCTION)
TENON_NUMBER(CUDA_ERROR_MISALIGNED_ADDRESS)
TENON_NUMBER(CUDA_ERROR_LAUNCH_FAILED)
TENON_NUMBER(CUDA_ERROR_NOT_SUPPORTED)
TENON_NUMBER(CUDA_ERROR_SYSTEM_NOT_READY)
TENON_NUMBER(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH)
TENON_NUMBER(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
TENON_NUMBER(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
TENON_NUMBER(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
TENON_NUMBER(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)
TENON_NUMBER(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
TENON_NUMBER(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
TENON_NUMBER(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
TENON_NUMBER(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)
TENON_NUMBER(CU_FUNC_ATTRIBUTE_NUM_REGS)
TENON_NUMBER(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
TENON_NUMBER(CU_STREAM_CAPTURE_MODE_RELAXED)
TENON_NUMBER(CU_STREAM_CAPTURE_STATUS_ACTIVE)
TENON_NUMBER(CU_GRAPH_NODE_TYPE_MEMCPY)
TENON_NUMBER(CU_GRAPH_NODE_TYPE_EMPTY)
TENON_NUMBER(CU_MEMORYTYPE_DEVICE)
TENON_NUMBER(CU_STREAM_NON_BLOCKING)
TENON_NUMBER(CU_EVENT_DISABLE_TIMING)
#undef TENON_NUMBER

}  // namespace
}  // namespace tenon::cuda
#endif

TEST_CASE("driver api: our declarations agree with cuda.h") {
#ifndef CUDA_VERSION
  MESSAGE("skipped: no CUDA toolkit under /usr/local");
#endif
}
