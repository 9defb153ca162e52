// An nvJPEG for the emulated GPU: libjpeg decodes into host memory. It refuses files that a GPU's
// JPEG engines refuse.
#include <cstdio>  // jpeglib.h needs it

#include <jpeglib.h>

#include <csetjmp>
#include <cstring>
#include <vector>

#include "cuda/device/nvjpeg.h"

#define TENON_EXPORT extern "C" __attribute__((visibility("default")))

using namespace tenon::cuda;

struct tenon::cuda::nvjpegHandle {
  int states = 0;
};
struct tenon::cuda::nvjpegJpegState {
  nvjpegHandle_t handle;
  int batch = 0;
};

namespace {

constexpr nvjpegStatus_t kInvalid = 2;

struct Decoder {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  std::jmp_buf escape;
};

// Rows of whole blocks go through a buffer: an image's planes have no more than its samples.
void read_planes(jpeg_decompress_struct& info, const nvjpegImage_t& image) {
  constexpr unsigned kMostRows = 2 * DCTSIZE;
  const unsigned rows = static_cast<unsigned>(info.max_v_samp_factor) * DCTSIZE;
  JSAMPARRAY buffers[3];
  for (int c = 0; c < 3; ++c)
    buffers[c] = (*info.mem->alloc_sarray)(
        reinterpret_cast<j_common_ptr>(&info), JPOOL_IMAGE,
        info.comp_info[c].width_in_blocks * DCTSIZE + 2 * DCTSIZE, kMostRows);
  while (info.output_scanline < info.output_height) {
    const unsigned first = info.output_scanline;
    jpeg_read_raw_data(&info, buffers, rows);
    for (int c = 0; c < 3; ++c) {
      const jpeg_component_info& plane = info.comp_info[c];
      const unsigned own = static_cast<unsigned>(plane.v_samp_factor) * DCTSIZE,
                     from = first / rows * own;
      for (unsigned y = 0; y < own && from + y < plane.downsampled_height; ++y)
        std::memcpy(image.channel[c] + image.pitch[c] * (from + y), buffers[c][y],
                    plane.downsampled_width);
    }
  }
}

nvjpegStatus_t decode(const unsigned char* file, std::size_t bytes, const nvjpegImage_t& image) {
  Decoder d;
  d.info.err = jpeg_std_error(&d.errors);
  d.info.client_data = &d;
  d.errors.error_exit = [](j_common_ptr info) {
    std::longjmp(static_cast<Decoder*>(info->client_data)->escape, 1);
  };
  d.errors.output_message = [](j_common_ptr) {};
  if (setjmp(d.escape) != 0) {
    jpeg_destroy_decompress(&d.info);
    return NVJPEG_STATUS_BAD_JPEG;
  }
  jpeg_create_decompress(&d.info);
  jpeg_mem_src(&d.info, file, static_cast<unsigned long>(bytes));
  jpeg_read_header(&d.info, TRUE);
  if (d.info.progressive_mode || d.info.num_components != 3) {
    jpeg_destroy_decompress(&d.info);
    return NVJPEG_STATUS_JPEG_NOT_SUPPORTED;
  }
  d.info.raw_data_out = TRUE;
  d.info.dct_method = JDCT_ISLOW;
  jpeg_start_decompress(&d.info);
  read_planes(d.info, image);
  // Warnings are damage: an engine says so.
  const bool damaged = d.errors.num_warnings > 0;
  jpeg_finish_decompress(&d.info);
  jpeg_destroy_decompress(&d.info);
  return damaged ? NVJPEG_STATUS_BAD_JPEG : NVJPEG_STATUS_SUCCESS;
}

}  // namespace

TENON_EXPORT nvjpegStatus_t nvjpegGetProperty(int which, int* value) {
  *value = which == 0 ? 13 : 0;
  return NVJPEG_STATUS_SUCCESS;
}

TENON_EXPORT nvjpegStatus_t nvjpegCreateEx(nvjpegBackend_t backend, void* device_memory,
                                           void* pinned_memory, unsigned flags,
                                           nvjpegHandle_t* handle) {
  if (backend != NVJPEG_BACKEND_HARDWARE || device_memory != nullptr || pinned_memory != nullptr ||
      flags != 0)
    return kInvalid;
  *handle = new nvjpegHandle;
  return NVJPEG_STATUS_SUCCESS;
}

TENON_EXPORT nvjpegStatus_t nvjpegDestroy(nvjpegHandle_t handle) {
  if (handle->states != 0) return kInvalid;
  delete handle;
  return NVJPEG_STATUS_SUCCESS;
}

TENON_EXPORT nvjpegStatus_t nvjpegJpegStateCreate(nvjpegHandle_t handle, nvjpegJpegState_t* state) {
  *state = new nvjpegJpegState{handle};
  ++handle->states;
  return NVJPEG_STATUS_SUCCESS;
}

TENON_EXPORT nvjpegStatus_t nvjpegJpegStateDestroy(nvjpegJpegState_t state) {
  --state->handle->states;
  delete state;
  return NVJPEG_STATUS_SUCCESS;
}

TENON_EXPORT nvjpegStatus_t nvjpegDecodeBatchedInitialize(nvjpegHandle_t handle,
                                                          nvjpegJpegState_t state, int batch,
                                                          int threads,
                                                          nvjpegOutputFormat_t format) {
  if (state->handle != handle || batch < 1 || threads < 1 || format != NVJPEG_OUTPUT_YUV)
    return kInvalid;
  state->batch = batch;
  return NVJPEG_STATUS_SUCCESS;
}

TENON_EXPORT nvjpegStatus_t nvjpegDecodeBatched(nvjpegHandle_t handle, nvjpegJpegState_t state,
                                                const unsigned char* const* files,
                                                const std::size_t* bytes, nvjpegImage_t* images,
                                                void* stream) {
  if (state->handle != handle || stream == nullptr) return kInvalid;
  for (int k = 0; k < state->batch; ++k)
    if (const nvjpegStatus_t status = decode(files[k], bytes[k], images[k]);
        status != NVJPEG_STATUS_SUCCESS)
      return status;
  return NVJPEG_STATUS_SUCCESS;
}
