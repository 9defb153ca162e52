// The part of the CUDA driver API that Tenon calls, declared here so that a build needs no toolkit.
//
// Types and numbers are those of cuda.h (tests/cuda/test_driver_api.cpp compares them where a
// toolkit is present). Nothing here is a function: driver.h loads them by name at run time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon::cuda {

using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphNode = struct CUgraphNode_st*;
using CUgraphExec = struct CUgraphExec_st*;
using CUarray = struct CUarray_st*;

// As in C, an enumeration is an int: values that are not listed are legal.
enum CUresult : int {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_INITIALIZED = 3,
  CUDA_ERROR_DEINITIALIZED = 4,
  CUDA_ERROR_DEVICE_UNAVAILABLE = 46,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_INVALID_DEVICE = 101,
  CUDA_ERROR_INVALID_IMAGE = 200,
  CUDA_ERROR_INVALID_CONTEXT = 201,
  CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
  CUDA_ERROR_ECC_UNCORRECTABLE = 214,
  CUDA_ERROR_INVALID_PTX = 218,
  CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
  CUDA_ERROR_NOT_FOUND = 500,
  CUDA_ERROR_NOT_READY = 600,
  CUDA_ERROR_ILLEGAL_ADDRESS = 700,
  CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
  CUDA_ERROR_LAUNCH_TIMEOUT = 702,
  CUDA_ERROR_ASSERT = 710,
  CUDA_ERROR_ILLEGAL_INSTRUCTION = 715,
  CUDA_ERROR_MISALIGNED_ADDRESS = 716,
  CUDA_ERROR_LAUNCH_FAILED = 719,
  CUDA_ERROR_NOT_SUPPORTED = 801,
  CUDA_ERROR_SYSTEM_NOT_READY = 802,
  CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
  CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
  CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
  CUDA_ERROR_UNKNOWN = 999,
};

enum CUdevice_attribute : int {
  CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13,
  CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
  CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE = 36,
  CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH = 37,
  CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
};

enum CUfunction_attribute : int {
  CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
  CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
  CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
  CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
};

enum CUstreamCaptureMode : int {
  CU_STREAM_CAPTURE_MODE_GLOBAL = 0,
  CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
  CU_STREAM_CAPTURE_MODE_RELAXED = 2,
};

enum CUstreamCaptureStatus : int {
  CU_STREAM_CAPTURE_STATUS_NONE = 0,
  CU_STREAM_CAPTURE_STATUS_ACTIVE = 1,
  CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2,
};

enum CUgraphNodeType : int {
  CU_GRAPH_NODE_TYPE_KERNEL = 0,
  CU_GRAPH_NODE_TYPE_MEMCPY = 1,
  CU_GRAPH_NODE_TYPE_MEMSET = 2,
  CU_GRAPH_NODE_TYPE_HOST = 3,
  CU_GRAPH_NODE_TYPE_GRAPH = 4,
  CU_GRAPH_NODE_TYPE_EMPTY = 5,
};

enum CUmemorytype : int {
  CU_MEMORYTYPE_HOST = 1,
  CU_MEMORYTYPE_DEVICE = 2,
  CU_MEMORYTYPE_ARRAY = 3,
  CU_MEMORYTYPE_UNIFIED = 4,
};

/// One copy node of a graph; a flat copy of n bytes is WidthInBytes = n, Height = Depth = 1.
struct CUDA_MEMCPY3D {
  std::size_t srcXInBytes = 0, srcY = 0, srcZ = 0, srcLOD = 0;
  CUmemorytype srcMemoryType = CU_MEMORYTYPE_DEVICE;
  const void* srcHost = nullptr;
  CUdeviceptr srcDevice = 0;
  CUarray srcArray = nullptr;
  void* reserved0 = nullptr;
  std::size_t srcPitch = 0, srcHeight = 0;
  std::size_t dstXInBytes = 0, dstY = 0, dstZ = 0, dstLOD = 0;
  CUmemorytype dstMemoryType = CU_MEMORYTYPE_DEVICE;
  void* dstHost = nullptr;
  CUdeviceptr dstDevice = 0;
  CUarray dstArray = nullptr;
  void* reserved1 = nullptr;
  std::size_t dstPitch = 0, dstHeight = 0;
  std::size_t WidthInBytes = 0, Height = 1, Depth = 1;
};

/// How a node of a graph waits for another: all zeros mean waiting for its end.
struct CUgraphEdgeData {
  unsigned char from_port = 0, to_port = 0, type = 0, reserved[5] = {};
};
inline constexpr unsigned char CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC = 1;
inline constexpr unsigned char CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC = 1;

struct CUDA_KERNEL_NODE_PARAMS {
  CUfunction func = nullptr;
  unsigned gridDimX = 0, gridDimY = 0, gridDimZ = 0;
  unsigned blockDimX = 0, blockDimY = 0, blockDimZ = 0, sharedMemBytes = 0;
  void** kernelParams = nullptr;
  void** extra = nullptr;
  void* kern = nullptr;
  CUcontext ctx = nullptr;
};

inline constexpr unsigned CU_STREAM_NON_BLOCKING = 1;
inline constexpr unsigned CU_EVENT_DISABLE_TIMING = 2;
inline constexpr unsigned CU_MEMHOSTALLOC_PORTABLE = 1;

}  // namespace tenon::cuda

// Every entry point: X(name, symbol in the driver, parameters).
#define TENON_DRIVER_REQUIRED(X)                                                                   \
  X(cuInit, "cuInit", (unsigned flags))                                                            \
  X(cuDriverGetVersion, "cuDriverGetVersion", (int* version))                                      \
  X(cuDeviceGetCount, "cuDeviceGetCount", (int* count))                                            \
  X(cuDeviceGet, "cuDeviceGet", (CUdevice * device, int ordinal))                                  \
  X(cuDeviceGetName, "cuDeviceGetName", (char* name, int length, CUdevice device))                 \
  X(cuDeviceGetAttribute, "cuDeviceGetAttribute",                                                  \
    (int* value, CUdevice_attribute attribute, CUdevice device))                                   \
  X(cuDeviceTotalMem, "cuDeviceTotalMem_v2", (std::size_t * bytes, CUdevice device))               \
  X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (CUcontext * context, CUdevice device))  \
  X(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (CUdevice device))                  \
  X(cuCtxSetCurrent, "cuCtxSetCurrent", (CUcontext context))                                       \
  X(cuCtxGetCurrent, "cuCtxGetCurrent", (CUcontext * context))                                     \
  X(cuCtxSynchronize, "cuCtxSynchronize", ())                                                      \
  X(cuMemAlloc, "cuMemAlloc_v2", (CUdeviceptr * pointer, std::size_t bytes))                       \
  X(cuMemFree, "cuMemFree_v2", (CUdeviceptr pointer))                                              \
  X(cuMemGetInfo, "cuMemGetInfo_v2", (std::size_t * free_bytes, std::size_t * total_bytes))        \
  X(cuMemHostAlloc, "cuMemHostAlloc", (void** pointer, std::size_t bytes, unsigned flags))         \
  X(cuMemFreeHost, "cuMemFreeHost", (void* pointer))                                               \
  X(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2",                                                     \
    (CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream))                        \
  X(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2",                                                     \
    (void* to, CUdeviceptr from, std::size_t bytes, CUstream stream))                              \
  X(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2",                                                     \
    (CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream))                        \
  X(cuMemcpyPeerAsync, "cuMemcpyPeerAsync",                                                        \
    (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,               \
     std::size_t bytes, CUstream stream))                                                          \
  X(cuMemsetD8Async, "cuMemsetD8Async",                                                            \
    (CUdeviceptr to, unsigned char value, std::size_t count, CUstream stream))                     \
  X(cuMemsetD32Async, "cuMemsetD32Async",                                                          \
    (CUdeviceptr to, unsigned value, std::size_t count, CUstream stream))                          \
  X(cuStreamCreate, "cuStreamCreate", (CUstream * stream, unsigned flags))                         \
  X(cuStreamCreateWithPriority, "cuStreamCreateWithPriority",                                      \
    (CUstream * stream, unsigned flags, int priority))                                             \
  X(cuStreamDestroy, "cuStreamDestroy_v2", (CUstream stream))                                      \
  X(cuStreamSynchronize, "cuStreamSynchronize", (CUstream stream))                                 \
  X(cuStreamQuery, "cuStreamQuery", (CUstream stream))                                             \
  X(cuStreamWaitEvent, "cuStreamWaitEvent", (CUstream stream, CUevent event, unsigned flags))      \
  X(cuEventCreate, "cuEventCreate", (CUevent * event, unsigned flags))                             \
  X(cuEventDestroy, "cuEventDestroy_v2", (CUevent event))                                          \
  X(cuEventRecord, "cuEventRecord", (CUevent event, CUstream stream))                              \
  X(cuEventSynchronize, "cuEventSynchronize", (CUevent event))                                     \
  X(cuEventQuery, "cuEventQuery", (CUevent event))                                                 \
  X(cuEventElapsedTime, "cuEventElapsedTime", (float* milliseconds, CUevent start, CUevent end))   \
  X(cuModuleLoadData, "cuModuleLoadData", (CUmodule * module, const void* image))                  \
  X(cuModuleUnload, "cuModuleUnload", (CUmodule module))                                           \
  X(cuModuleGetFunction, "cuModuleGetFunction",                                                    \
    (CUfunction * function, CUmodule module, const char* name))                                    \
  X(cuFuncSetAttribute, "cuFuncSetAttribute",                                                      \
    (CUfunction function, CUfunction_attribute attribute, int value))                              \
  X(cuFuncGetAttribute, "cuFuncGetAttribute",                                                      \
    (int* value, CUfunction_attribute attribute, CUfunction function))                             \
  X(cuLaunchKernel, "cuLaunchKernel",                                                              \
    (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,     \
     unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void** params,    \
     void** extra))                                                                                \
  X(cuStreamBeginCapture, "cuStreamBeginCapture_v2", (CUstream stream, CUstreamCaptureMode mode))  \
  X(cuStreamEndCapture, "cuStreamEndCapture", (CUstream stream, CUgraph * graph))                  \
  X(cuStreamIsCapturing, "cuStreamIsCapturing", (CUstream stream, CUstreamCaptureStatus * status)) \
  X(cuThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode",                        \
    (CUstreamCaptureMode * mode))                                                                  \
  X(cuGraphCreate, "cuGraphCreate", (CUgraph * graph, unsigned flags))                             \
  X(cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags",                                    \
    (CUgraphExec * executable, CUgraph graph, unsigned long long flags))                           \
  X(cuGraphUpload, "cuGraphUpload", (CUgraphExec executable, CUstream stream))                     \
  X(cuGraphLaunch, "cuGraphLaunch", (CUgraphExec executable, CUstream stream))                     \
  X(cuGraphExecDestroy, "cuGraphExecDestroy", (CUgraphExec executable))                            \
  X(cuGraphDestroy, "cuGraphDestroy", (CUgraph graph))                                             \
  X(cuGraphAddMemcpyNode, "cuGraphAddMemcpyNode",                                                  \
    (CUgraphNode * node, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,        \
     const CUDA_MEMCPY3D* copy, CUcontext context))                                                \
  X(cuGraphExecMemcpyNodeSetParams, "cuGraphExecMemcpyNodeSetParams",                              \
    (CUgraphExec executable, CUgraphNode node, const CUDA_MEMCPY3D* copy, CUcontext context))      \
  X(cuGraphGetNodes, "cuGraphGetNodes", (CUgraph graph, CUgraphNode * nodes, std::size_t * count)) \
  X(cuGraphNodeGetType, "cuGraphNodeGetType", (CUgraphNode node, CUgraphNodeType * type))          \
  X(cuGetErrorName, "cuGetErrorName", (CUresult error, const char** text))                         \
  X(cuGetErrorString, "cuGetErrorString", (CUresult error, const char** text))                     \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor, "cuOccupancyMaxActiveBlocksPerMultiprocessor",    \
    (int* blocks, CUfunction function, int block_size, std::size_t shared_bytes))

// Entry points that older drivers lack; null there. cuStreamGetCaptureInfo is CUDA 12's version,
// which newer drivers keep. cuTensorMapEncodeTiled takes its enumerations as ints.
#define TENON_DRIVER_OPTIONAL(X)                                                                  \
  X(cuTensorMapEncodeTiled, "cuTensorMapEncodeTiled",                                             \
    (void* map, int element, unsigned rank, void* address, const std::uint64_t* extents,          \
     const std::uint64_t* pitches, const unsigned* box, const unsigned* element_steps,            \
     int interleave, int swizzle, int promotion, int fill))                                       \
  X(cuStreamBeginCaptureToGraph, "cuStreamBeginCaptureToGraph",                                   \
    (CUstream stream, CUgraph graph, const CUgraphNode* dependencies,                             \
     const CUgraphEdgeData* edges, std::size_t count, CUstreamCaptureMode mode))                  \
  X(cuStreamGetCaptureInfo, "cuStreamGetCaptureInfo_v2",                                          \
    (CUstream stream, CUstreamCaptureStatus * status, std::uint64_t * id, CUgraph * graph,        \
     const CUgraphNode** dependencies, std::size_t* count))                                       \
  X(cuGraphGetEdges, "cuGraphGetEdges_v2",                                                        \
    (CUgraph graph, CUgraphNode * from, CUgraphNode * to, CUgraphEdgeData * edges,                \
     std::size_t * count))                                                                        \
  X(cuGraphAddDependencies, "cuGraphAddDependencies_v2",                                          \
    (CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData* edges, \
     std::size_t count))                                                                          \
  X(cuGraphRemoveDependencies, "cuGraphRemoveDependencies_v2",                                    \
    (CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData* edges, \
     std::size_t count))                                                                          \
  X(cuGraphKernelNodeGetParams, "cuGraphKernelNodeGetParams_v2",                                  \
    (CUgraphNode node, CUDA_KERNEL_NODE_PARAMS * params))
