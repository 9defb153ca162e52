// The driver's functions for GPUs, contexts, memory, streams and events.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "objects.h"

using namespace tenon_emulator;

namespace {

CUctx_st* context_of(int gpu) {
  static CUctx_st contexts[gpu_limit];
  contexts[gpu].gpu = gpu;
  return &contexts[gpu];
}

bool is_gpu(int device) {
  return device >= 0 && device < std::min(setting("TENON_FAKE_CUDA_GPUS", 2), gpu_limit);
}

/// Values of attributes by their numbers in cuda.h; -1 for those that the emulator does not know.
int attribute_value(int attribute) {
  const int capability = setting("TENON_FAKE_CUDA_CAPABILITY", 90);
  switch (attribute) {
    case 1:
      return 1024;  // threads of a block
    case 2:
    case 3:
      return 1024;  // block, x and y
    case 4:
      return 64;  // block, z
    case 5:
      return 2147483647;  // grid, x
    case 6:
    case 7:
      return 65535;  // grid, y and z
    case 8:
      return 48 * 1024;  // shared memory of a block
    case 10:
      return 32;  // threads of a warp
    case 12:
    case 82:
      return 65536;  // registers of a block, of a multiprocessor
    case 13:
      return 1980000;  // kHz
    case 16:
      return 4;  // multiprocessors
    case 36:
      return 2619000;  // kHz of the memory
    case 37:
      return 5120;  // bits of its bus
    case 38:
      return 50 << 20;  // second-level cache
    case 39:
      return 2048;  // threads of a multiprocessor
    case 41:
      return 1;  // unified addresses
    case 75:
      return capability / 10;
    case 76:
      return capability % 10;
    case 81:
      return 228 * 1024;  // shared memory of a multiprocessor
    case 97:
      return 227 * 1024;  // shared memory that a block may ask for
    case 106:
      return 32;  // blocks of a multiprocessor
    default:
      return -1;
  }
}

Work flat_copy(CUmemorytype to_type, std::uintptr_t to, CUmemorytype from_type, std::uintptr_t from,
               std::size_t bytes) {
  Work work;
  work.type = CU_GRAPH_NODE_TYPE_MEMCPY;
  work.copy.dstMemoryType = to_type;
  work.copy.srcMemoryType = from_type;
  work.copy.dstHost = reinterpret_cast<void*>(to);
  work.copy.dstDevice = to;
  work.copy.srcHost = reinterpret_cast<const void*>(from);
  work.copy.srcDevice = from;
  work.copy.WidthInBytes = bytes;
  return work;
}

CUresult submit_to(CUstream handle, const char* function, Work work) {
  CUstream_st* stream = stream_of(handle);
  return stream == nullptr ? dead_handle(function) : submit(stream, std::move(work));
}

Work fill_of(CUdeviceptr to, unsigned value, int element, std::size_t count) {
  Work work;
  work.type = CU_GRAPH_NODE_TYPE_MEMSET;
  work.fill = {to, value, element, count};
  return work;
}

struct ErrorText {
  int code;
  const char* name;
  const char* text;
};
constexpr ErrorText errors[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA-capable device(s) is/are busy or unavailable"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for the device"},
    {214, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered"},
    {218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {716, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
     "dependency created on uncaptured work in another stream"},
    {907, "CUDA_ERROR_CAPTURED_EVENT",
     "operation not permitted on an event last recorded in a capturing stream"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

const ErrorText* error_text(int code) {
  for (const ErrorText& error : errors) {
    if (error.code == code) return &error;
  }
  return nullptr;
}

}  // namespace

TENON_EXPORT CUresult cuGetErrorName(CUresult result, const char** text) {
  const ErrorText* error = error_text(result);
  *text = error == nullptr ? nullptr : error->name;
  return error == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/// Includes the emulator's findings, which a driver would not report.
TENON_EXPORT CUresult cuGetErrorString(CUresult result, const char** text) {
  const std::lock_guard<std::recursive_mutex> held(lock());
  static std::string words;
  const ErrorText* error = error_text(result);
  *text = nullptr;
  if (error == nullptr) return CUDA_ERROR_INVALID_VALUE;
  words = error->text;
  if (result != CUDA_SUCCESS && !last_failure().empty()) words += ": " + last_failure();
  *text = words.c_str();
  return CUDA_SUCCESS;
}

TENON_EXPORT CUresult cuInit(unsigned) {
  TENON_ENTER("cuInit");
  if (setting("TENON_FAKE_CUDA_GPUS", 2) > 0) return CUDA_SUCCESS;
  return fail(CUDA_ERROR_NO_DEVICE, "");
}

TENON_EXPORT CUresult cuDriverGetVersion(int* version) {
  TENON_ENTER("cuDriverGetVersion");
  *version = setting("TENON_FAKE_CUDA_DRIVER", 13000);
  return CUDA_SUCCESS;
}

TENON_EXPORT CUresult cuDeviceGetCount(int* count) {
  TENON_ENTER("cuDeviceGetCount");
  *count = std::min(setting("TENON_FAKE_CUDA_GPUS", 2), gpu_limit);
  return CUDA_SUCCESS;
}

TENON_EXPORT CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  TENON_ENTER("cuDeviceGet");
  if (!is_gpu(ordinal)) return fail(CUDA_ERROR_INVALID_DEVICE, "");
  *device = ordinal;
  return CUDA_SUCCESS;
}

TENON_EXPORT CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  TENON_ENTER("cuDeviceGetName");
  if (!is_gpu(device) || length < 1) return fail(CUDA_ERROR_INVALID_DEVICE, "");
  std::strncpy(name, "Emulated GPU", static_cast<std::size_t>(length) - 1);
  name[length - 1] = 0;
  return CUDA_SUCCESS;
}

TENON_EXPORT CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute,
                                           CUdevice device) {
  TENON_ENTER("cuDeviceGetAttribute");
  if (!is_gpu(device)) return fail(CUDA_ERROR_INVALID_DEVICE, "");
  *value = attribute_value(attribute);
  if (*value >= 0) return CUDA_SUCCESS;
  return fail(CUDA_ERROR_INVALID_VALUE, "an attribute that the emulator does not know");
}

TENON_EXPORT CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice device) {
  TENON_ENTER("cuDeviceTotalMem_v2");
  if (!is_gpu(device)) return fail(CUDA_ERROR_INVALID_DEVICE, "");
  *bytes = static_cast<std::size_t>(setting("TENON_FAKE_CUDA_MEMORY", 16384)) << 20;
  return CUDA_SUCCESS;
}

TENON_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  TENON_ENTER("cuDevicePrimaryCtxRetain");
  if (!is_gpu(device)) return fail(CUDA_ERROR_INVALID_DEVICE, "");
  *context = context_of(device);
  ++(*context)->users;
  return CUDA_SUCCESS;
}

TENON_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  TENON_ENTER("cuDevicePrimaryCtxRelease_v2");
  if (device < 0 || device >= gpu_limit || context_of(device)->users == 0) {
    return fail(CUDA_ERROR_INVALID_CONTEXT, "a context that is not held");
  }
  --context_of(device)->users;
  return CUDA_SUCCESS;
}

TENON_EXPORT CUresult cuCtxSetCurrent(CUcontext context) {
  TENON_ENTER("cuCtxSetCurrent");
  if (context != nullptr && context->users == 0) {
    return fail(CUDA_ERROR_INVALID_CONTEXT, "a context that is not held");
  }
  current_context() = context;
  return CUDA_SUCCESS;
}

TENON_EXPORT CUresult cuCtxGetCurrent(CUcontext* context) {
  TENON_ENTER("cuCtxGetCurrent");
  *context = current_context();
  return CUDA_SUCCESS;
}

TENON_EXPORT CUresult cuCtxSynchronize() {
  TENON_ENTER("cuCtxSynchronize");
  TENON_NEED_CONTEXT("cuCtxSynchronize");
  const CUresult result = refuse_while_capturing("cuCtxSynchronize");
  return result != CUDA_SUCCESS ? result : memory().check_guards("what ran before");
}

TENON_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* pointer, std::size_t bytes) {
  TENON_ENTER("cuMemAlloc_v2");
  TENON_NEED_CONTEXT("cuMemAlloc_v2");
  if (const CUresult result = refuse_while_capturing("cuMemAlloc"); result != CUDA_SUCCESS) {
    return result;
  }
  if (bytes == 0) return fail(CUDA_ERROR_INVALID_VALUE, "an allocation of 0 bytes");
  void* block = memory().allocate(bytes, current_context()->gpu);
  if (block == nullptr) return fail(CUDA_ERROR_OUT_OF_MEMORY, "");
  *pointer = reinterpret_cast<CUdeviceptr>(block);
  return CUDA_SUCCESS;
}

TENON_EXPORT CUresult cuMemFree_v2(CUdeviceptr pointer) {
  TENON_ENTER("cuMemFree_v2");
  TENON_NEED_CONTEXT("cuMemFree_v2");
  if (const CUresult result = refuse_while_capturing("cuMemFree"); result != CUDA_SUCCESS) {
    return result;
  }
  return pointer == 0 ? CUDA_SUCCESS : memory().release(reinterpret_cast<void*>(pointer), false);
}

TENON_EXPORT CUresult cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total_bytes) {
  TENON_ENTER("cuMemGetInfo_v2");
  TENON_NEED_CONTEXT("cuMemGetInfo_v2");
  *total_bytes = static_cast<std::size_t>(setting("TENON_FAKE_CUDA_MEMORY", 16384)) << 20;
  *free_bytes = *total_bytes - std::min(*total_bytes, memory().used(current_context()->gpu));
  return CUDA_SUCCESS;
}

TENON_EXPORT CUresult cuMemHostAlloc(void** pointer, std::size_t bytes, unsigned) {
  TENON_ENTER("cuMemHostAlloc");
  TENON_NEED_CONTEXT("cuMemHostAlloc");
  if (const CUresult result = refuse_while_capturing("cuMemHostAlloc"); result != CUDA_SUCCESS) {
    return result;
  }
  if (bytes == 0) return fail(CUDA_ERROR_INVALID_VALUE, "an allocation of 0 bytes");
  *pointer = memory().allocate_host(bytes);
  return *pointer != nullptr ? CUDA_SUCCESS : fail(CUDA_ERROR_OUT_OF_MEMORY, "");
}

TENON_EXPORT CUresult cuMemFreeHost(void* pointer) {
  TENON_ENTER("cuMemFreeHost");
  if (const CUresult result = refuse_while_capturing("cuMemFreeHost"); result != CUDA_SUCCESS) {
    return result;
  }
  return pointer == nullptr ? CUDA_SUCCESS : memory().release(pointer, true);
}

TENON_EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t bytes,
                                           CUstream stream) {
  TENON_ENTER("cuMemcpyHtoDAsync_v2");
  return submit_to(stream, "cuMemcpyHtoDAsync",
                   flat_copy(CU_MEMORYTYPE_DEVICE, to, CU_MEMORYTYPE_HOST,
                             reinterpret_cast<std::uintptr_t>(from), bytes));
}

TENON_EXPORT CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t bytes,
                                           CUstream stream) {
  TENON_ENTER("cuMemcpyDtoHAsync_v2");
  return submit_to(stream, "cuMemcpyDtoHAsync",
                   flat_copy(CU_MEMORYTYPE_HOST, reinterpret_cast<std::uintptr_t>(to),
                             CU_MEMORYTYPE_DEVICE, from, bytes));
}

TENON_EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                                           CUstream stream) {
  TENON_ENTER("cuMemcpyDtoDAsync_v2");
  return submit_to(stream, "cuMemcpyDtoDAsync",
                   flat_copy(CU_MEMORYTYPE_DEVICE, to, CU_MEMORYTYPE_DEVICE, from, bytes));
}

TENON_EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                                        CUcontext from_context, std::size_t bytes,
                                        CUstream stream) {
  TENON_ENTER("cuMemcpyPeerAsync");
  const Range* target = memory().find(reinterpret_cast<void*>(to), bytes);
  const Range* source = memory().find(reinterpret_cast<void*>(from), bytes);
  if (to_context == nullptr || from_context == nullptr || target == nullptr || source == nullptr ||
      target->gpu != to_context->gpu || source->gpu != from_context->gpu) {
    return fail(CUDA_ERROR_INVALID_VALUE, "a copy between GPUs whose memory is not theirs");
  }
  return submit_to(stream, "cuMemcpyPeerAsync",
                   flat_copy(CU_MEMORYTYPE_DEVICE, to, CU_MEMORYTYPE_DEVICE, from, bytes));
}

TENON_EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t count,
                                      CUstream stream) {
  TENON_ENTER("cuMemsetD8Async");
  return submit_to(stream, "cuMemsetD8Async", fill_of(to, value, 1, count));
}

TENON_EXPORT CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, std::size_t count,
                                       CUstream stream) {
  TENON_ENTER("cuMemsetD32Async");
  return submit_to(stream, "cuMemsetD32Async", fill_of(to, value, 4, count));
}

TENON_EXPORT CUresult cuStreamCreate(CUstream* stream, unsigned) {
  TENON_ENTER("cuStreamCreate");
  TENON_NEED_CONTEXT("cuStreamCreate");
  *stream = new CUstream_st;
  (*stream)->context = current_context();
  enter(*stream);
  return CUDA_SUCCESS;
}

TENON_EXPORT CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int) {
  return cuStreamCreate(stream, flags);
}

TENON_EXPORT CUresult cuStreamDestroy_v2(CUstream stream) {
  TENON_ENTER("cuStreamDestroy_v2");
  if (!alive(stream)) return dead_handle("cuStreamDestroy");
  std::vector<CUstream_st*>& under_way = captures();
  under_way.erase(std::remove(under_way.begin(), under_way.end(), stream), under_way.end());
  leave(stream);
  delete stream;
  return CUDA_SUCCESS;
}

TENON_EXPORT CUresult cuStreamSynchronize(CUstream handle) {
  TENON_ENTER("cuStreamSynchronize");
  CUstream_st* stream = stream_of(handle);
  if (stream == nullptr) return dead_handle("cuStreamSynchronize");
  if (stream->capture != nullptr) return spoil(stream, "cuStreamSynchronize");
  return memory().check_guards("what ran before");
}

TENON_EXPORT CUresult cuStreamQuery(CUstream handle) {
  TENON_ENTER("cuStreamQuery");
  CUstream_st* stream = stream_of(handle);
  if (stream == nullptr) return dead_handle("cuStreamQuery");
  return stream->capture != nullptr ? spoil(stream, "cuStreamQuery") : CUDA_SUCCESS;
}

namespace {

void add_depends(CUstream_st* stream, const CUevent_st* event) {
  for (CUgraphNode node : event->depends) {
    if (std::find(stream->depends.begin(), stream->depends.end(), node) != stream->depends.end())
      continue;
    stream->depends.push_back(node);
    stream->how.push_back({});
  }
}

}  // namespace

TENON_EXPORT CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned) {
  TENON_ENTER("cuStreamWaitEvent");
  CUstream_st* stream = stream_of(handle);
  if (stream == nullptr || !alive(event)) return dead_handle("cuStreamWaitEvent");
  if (event->capture != nullptr) {  // the stream joins the capture
    if (stream->capture == event->capture) {
      add_depends(stream, event);
      return CUDA_SUCCESS;
    }
    stream->depends.clear();
    stream->how.clear();
    stream->capture = event->capture;
    stream->origin = event->origin;
    event->origin->joined.push_back(stream);
    add_depends(stream, event);
    return CUDA_SUCCESS;
  }
  if (stream->capture == nullptr) return CUDA_SUCCESS;
  constexpr int isolation = 905;
  stream->origin->invalidated = true;
  return fail(static_cast<CUresult>(isolation), "");
}

TENON_EXPORT CUresult cuEventCreate(CUevent* event, unsigned flags) {
  TENON_ENTER("cuEventCreate");
  TENON_NEED_CONTEXT("cuEventCreate");
  *event = new CUevent_st;
  (*event)->timing = (flags & CU_EVENT_DISABLE_TIMING) == 0;
  enter(*event);
  return CUDA_SUCCESS;
}

TENON_EXPORT CUresult cuEventDestroy_v2(CUevent event) {
  TENON_ENTER("cuEventDestroy_v2");
  if (!alive(event)) return dead_handle("cuEventDestroy");
  leave(event);
  delete event;
  return CUDA_SUCCESS;
}

TENON_EXPORT CUresult cuEventRecord(CUevent event, CUstream handle) {
  TENON_ENTER("cuEventRecord");
  CUstream_st* stream = stream_of(handle);
  if (stream == nullptr || !alive(event)) return dead_handle("cuEventRecord");
  event->capture = stream->capture;
  event->origin = stream->origin;
  event->depends = stream->depends;
  event->recorded = true;
  event->time = std::chrono::steady_clock::now();
  return CUDA_SUCCESS;
}

namespace {

CUresult check_event(CUevent event, const char* function) {
  if (!alive(event)) return dead_handle(function);
  constexpr int captured_event = 907;
  return event->capture == nullptr ? CUDA_SUCCESS : fail(static_cast<CUresult>(captured_event), "");
}

}  // namespace

TENON_EXPORT CUresult cuEventSynchronize(CUevent event) {
  TENON_ENTER("cuEventSynchronize");
  return check_event(event, "cuEventSynchronize");
}

TENON_EXPORT CUresult cuEventQuery(CUevent event) {
  TENON_ENTER("cuEventQuery");
  return check_event(event, "cuEventQuery");
}

TENON_EXPORT CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  TENON_ENTER("cuEventElapsedTime");
  for (CUevent event : {start, end}) {
    const CUresult result = check_event(event, "cuEventElapsedTime");
    if (result != CUDA_SUCCESS) return result;
    if (!event->timing || !event->recorded) return dead_handle("cuEventElapsedTime");
  }
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - start->time).count();
  return CUDA_SUCCESS;
}
