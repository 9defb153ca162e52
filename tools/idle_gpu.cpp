// A driver whose GPUs do nothing, used instead of libcuda.so.1 (TENON_CUDA_DRIVER). Programs are
// planned and their kernels are compiled for GPUs that are not present.
//
// The GPUs are one of each kind that kernels are compiled ahead for: cuda:0 is an A100, cuda:1 an
// H200, cuda:2 a B200, which is newer than the stores' cubins. Memory has addresses and no bytes:
// copies from a GPU give zeros. There are no CUDA graphs, so every call is queued.
#include "cuda/device/opening/driver_api.h"

#include <atomic>
#include <cstdlib>
#include <cstring>

#define TENON_EXPORT extern "C" __attribute__((visibility("default")))

using namespace tenon::cuda;

namespace {

struct Kind {
  const char* name;
  int arch, multiprocessors;
  int shared_kib, cache_mib, memory_gib;
};
constexpr Kind kGpus[] = {{"NVIDIA A100-SXM4-80GB", 80, 108, 163, 40, 80},
                          {"NVIDIA H200", 90, 132, 227, 60, 140},
                          {"NVIDIA B200", 100, 148, 227, 126, 180}};
constexpr int kCount = sizeof kGpus / sizeof kGpus[0];
constexpr int kVersion = 13000;  // of CUDA

// The target of all handles; never read.
char object;
template <class T>
CUresult give(T** handle) {
  *handle = reinterpret_cast<T*>(&object);
  return CUDA_SUCCESS;
}

std::size_t total_memory(int device) {
  return static_cast<std::size_t>(kGpus[device].memory_gib) << 30;
}

}  // namespace

TENON_EXPORT CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
TENON_EXPORT CUresult cuDriverGetVersion(int* version) {
  *version = kVersion;
  return CUDA_SUCCESS;
}
TENON_EXPORT CUresult cuDeviceGetCount(int* count) {
  *count = kCount;
  return CUDA_SUCCESS;
}
TENON_EXPORT CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return ordinal >= 0 && ordinal < kCount ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
TENON_EXPORT CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  std::strncpy(name, kGpus[device].name, static_cast<std::size_t>(length));
  return CUDA_SUCCESS;
}
TENON_EXPORT CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute,
                                           CUdevice device) {
  const Kind& gpu = kGpus[device];
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
      *value = 1980000;
      return CUDA_SUCCESS;
    // The value of an H100; the library knows the models of these GPUs by name.
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
      *value = 2619000;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
      *value = 5120;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = gpu.multiprocessors;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
      *value = gpu.cache_mib << 20;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = gpu.arch / 10;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = gpu.arch % 10;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      *value = gpu.shared_kib << 10;
      return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}
TENON_EXPORT CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice device) {
  *bytes = total_memory(device);
  return CUDA_SUCCESS;
}

TENON_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  return give(context);
}
TENON_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) { return CUDA_SUCCESS; }
TENON_EXPORT CUresult cuCtxSetCurrent(CUcontext) { return CUDA_SUCCESS; }
TENON_EXPORT CUresult cuCtxGetCurrent(CUcontext* context) { return give(context); }
TENON_EXPORT CUresult cuCtxSynchronize() { return CUDA_SUCCESS; }

TENON_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* pointer, std::size_t bytes) {
  constexpr std::size_t kPage = std::size_t{2} << 20;
  static std::atomic<CUdeviceptr> next{CUdeviceptr{1} << 44};
  *pointer = next.fetch_add((bytes + kPage - 1) / kPage * kPage);
  return CUDA_SUCCESS;
}
TENON_EXPORT CUresult cuMemFree_v2(CUdeviceptr) { return CUDA_SUCCESS; }
TENON_EXPORT CUresult cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total_bytes) {
  *free_bytes = *total_bytes = total_memory(0);
  return CUDA_SUCCESS;
}
TENON_EXPORT CUresult cuMemHostAlloc(void** pointer, std::size_t bytes, unsigned) {
  *pointer = std::calloc(1, bytes);
  return *pointer != nullptr ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
TENON_EXPORT CUresult cuMemFreeHost(void* pointer) {
  std::free(pointer);
  return CUDA_SUCCESS;
}
TENON_EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr, const void*, std::size_t, CUstream) {
  return CUDA_SUCCESS;
}
TENON_EXPORT CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr, std::size_t bytes, CUstream) {
  std::memset(to, 0, bytes);
  return CUDA_SUCCESS;
}
TENON_EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr, CUdeviceptr, std::size_t, CUstream) {
  return CUDA_SUCCESS;
}
TENON_EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, std::size_t,
                                        CUstream) {
  return CUDA_SUCCESS;
}
TENON_EXPORT CUresult cuMemsetD8Async(CUdeviceptr, unsigned char, std::size_t, CUstream) {
  return CUDA_SUCCESS;
}
TENON_EXPORT CUresult cuMemsetD32Async(CUdeviceptr, unsigned, std::size_t, CUstream) {
  return CUDA_SUCCESS;
}

TENON_EXPORT CUresult cuStreamCreate(CUstream* stream, unsigned) { return give(stream); }
TENON_EXPORT CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned, int) {
  return give(stream);
}
TENON_EXPORT CUresult cuStreamDestroy_v2(CUstream) { return CUDA_SUCCESS; }
TENON_EXPORT CUresult cuStreamSynchronize(CUstream) { return CUDA_SUCCESS; }
TENON_EXPORT CUresult cuStreamQuery(CUstream) { return CUDA_SUCCESS; }
TENON_EXPORT CUresult cuStreamWaitEvent(CUstream, CUevent, unsigned) { return CUDA_SUCCESS; }
TENON_EXPORT CUresult cuEventCreate(CUevent* event, unsigned) { return give(event); }
TENON_EXPORT CUresult cuEventDestroy_v2(CUevent) { return CUDA_SUCCESS; }
TENON_EXPORT CUresult cuEventRecord(CUevent, CUstream) { return CUDA_SUCCESS; }
TENON_EXPORT CUresult cuEventSynchronize(CUevent) { return CUDA_SUCCESS; }
TENON_EXPORT CUresult cuEventQuery(CUevent) { return CUDA_SUCCESS; }
TENON_EXPORT CUresult cuEventElapsedTime(float* milliseconds, CUevent, CUevent) {
  *milliseconds = 1;
  return CUDA_SUCCESS;
}

TENON_EXPORT CUresult cuModuleLoadData(CUmodule* module, const void*) { return give(module); }
TENON_EXPORT CUresult cuModuleUnload(CUmodule) { return CUDA_SUCCESS; }
TENON_EXPORT CUresult cuModuleGetFunction(CUfunction* function, CUmodule, const char*) {
  return give(function);
}
TENON_EXPORT CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute, int) {
  return CUDA_SUCCESS;
}
TENON_EXPORT CUresult cuFuncGetAttribute(int* value, CUfunction_attribute, CUfunction) {
  *value = 0;
  return CUDA_SUCCESS;
}
TENON_EXPORT CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
                                     unsigned, unsigned, CUstream, void**, void**) {
  return CUDA_SUCCESS;
}
TENON_EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction, int,
                                                                  std::size_t) {
  *blocks = 1;
  return CUDA_SUCCESS;
}
TENON_EXPORT CUresult cuTensorMapEncodeTiled(void*, int, unsigned, void*, const std::uint64_t*,
                                             const std::uint64_t*, const unsigned*, const unsigned*,
                                             int, int, int, int) {
  return CUDA_SUCCESS;
}

TENON_EXPORT CUresult cuStreamIsCapturing(CUstream, CUstreamCaptureStatus* status) {
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}
TENON_EXPORT CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode*) {
  return CUDA_SUCCESS;
}
#define TENON_NO_GRAPHS(name, ...) \
  TENON_EXPORT CUresult name(__VA_ARGS__) { return CUDA_ERROR_NOT_SUPPORTED; }
TENON_NO_GRAPHS(cuStreamBeginCapture_v2, CUstream, CUstreamCaptureMode)
TENON_NO_GRAPHS(cuStreamEndCapture, CUstream, CUgraph*)
TENON_NO_GRAPHS(cuGraphCreate, CUgraph*, unsigned)
TENON_NO_GRAPHS(cuGraphInstantiateWithFlags, CUgraphExec*, CUgraph, unsigned long long)
TENON_NO_GRAPHS(cuGraphUpload, CUgraphExec, CUstream)
TENON_NO_GRAPHS(cuGraphLaunch, CUgraphExec, CUstream)
TENON_NO_GRAPHS(cuGraphExecDestroy, CUgraphExec)
TENON_NO_GRAPHS(cuGraphDestroy, CUgraph)
TENON_NO_GRAPHS(cuGraphAddMemcpyNode, CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t,
                const CUDA_MEMCPY3D*, CUcontext)
TENON_NO_GRAPHS(cuGraphExecMemcpyNodeSetParams, CUgraphExec, CUgraphNode, const CUDA_MEMCPY3D*,
                CUcontext)
TENON_NO_GRAPHS(cuGraphGetNodes, CUgraph, CUgraphNode*, std::size_t*)
TENON_NO_GRAPHS(cuGraphNodeGetType, CUgraphNode, CUgraphNodeType*)

TENON_EXPORT CUresult cuGetErrorName(CUresult, const char** text) {
  *text = "CUDA_ERROR";
  return CUDA_SUCCESS;
}
TENON_EXPORT CUresult cuGetErrorString(CUresult, const char** text) {
  *text = "refused by the GPU that does nothing";
  return CUDA_SUCCESS;
}
