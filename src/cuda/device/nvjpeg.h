// The part of nvJPEG that Tenon calls, declared here so that a build needs no toolkit.
//
// Types and numbers are those of nvjpeg.h, 12 and 13 (tests/cuda/test_vendor_api.cpp compares them
// where the header is present). The library is loaded when it is first needed.
#pragma once

#include <cstddef>
#include <string>

namespace tenon::cuda {

using nvjpegStatus_t = int;
using nvjpegHandle_t = struct nvjpegHandle*;
using nvjpegJpegState_t = struct nvjpegJpegState*;
inline constexpr nvjpegStatus_t NVJPEG_STATUS_SUCCESS = 0, NVJPEG_STATUS_BAD_JPEG = 3,
                                NVJPEG_STATUS_JPEG_NOT_SUPPORTED = 4,
                                NVJPEG_STATUS_INCOMPLETE_BITSTREAM = 10;

enum nvjpegBackend_t : int {
  NVJPEG_BACKEND_HYBRID = 1,
  NVJPEG_BACKEND_GPU_HYBRID = 2,
  NVJPEG_BACKEND_HARDWARE = 3
};
enum nvjpegOutputFormat_t : int { NVJPEG_OUTPUT_YUV = 1 };

struct nvjpegImage_t {
  unsigned char* channel[4];
  std::size_t pitch[4];
};

// Every entry point: X(name, parameters).
#define TENON_NVJPEG_FUNCTIONS(X)                                                              \
  X(nvjpegGetProperty, (int which, int* value))                                                \
  X(nvjpegCreateEx, (nvjpegBackend_t backend, void* device_memory, void* pinned_memory,        \
                     unsigned flags, nvjpegHandle_t* handle))                                  \
  X(nvjpegDestroy, (nvjpegHandle_t handle))                                                    \
  X(nvjpegJpegStateCreate, (nvjpegHandle_t handle, nvjpegJpegState_t * state))                 \
  X(nvjpegJpegStateDestroy, (nvjpegJpegState_t state))                                         \
  X(nvjpegDecodeBatchedInitialize, (nvjpegHandle_t handle, nvjpegJpegState_t state, int batch, \
                                    int threads, nvjpegOutputFormat_t format))                 \
  X(nvjpegDecodeBatched,                                                                       \
    (nvjpegHandle_t handle, nvjpegJpegState_t state, const unsigned char* const* files,        \
     const std::size_t* bytes, nvjpegImage_t* images, void* stream))

struct Nvjpeg {
#define TENON_NVJPEG_MEMBER(name, parameters) nvjpegStatus_t(*name) parameters = nullptr;
  TENON_NVJPEG_FUNCTIONS(TENON_NVJPEG_MEMBER)
#undef TENON_NVJPEG_MEMBER
  std::string path;
  std::string problem;  // why it cannot be used; empty when it can
  std::string version;
};

/// The process's nvJPEG, loaded once; never throws.
const Nvjpeg& loaded_nvjpeg();
/// Throws DeviceError unless the status is a success.
void check_nvjpeg(nvjpegStatus_t status, const char* what);

}  // namespace tenon::cuda
