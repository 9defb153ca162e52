// Images decoded by nvJPEG, then transformed by kernels (cuda/kernels/images/images.cuh).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "cuda/device/gpu.h"
#include "cuda/device/nvjpeg.h"
#include "cuda/kernels/images/images_args.cuh"
#include "device/image_job.h"

namespace tenon::cuda {

ImageDecoder image_decoder(int index);

/// Makes the batches of some slots on one stream. Not thread-safe.
class GpuImages {
 public:
  GpuImages(const Context& context, CUstream stream, int slots);
  /// The stream must have finished its work.
  ~GpuImages();
  GpuImages(const GpuImages&) = delete;
  GpuImages& operator=(const GpuImages&) = delete;

  /// As Uploads::make_images().
  void make(int slot, void* to, std::span<const ImageJob> jobs, int height, int width);

 private:
  struct Memory {
    CUdeviceptr data = 0;
    std::size_t bytes = 0;
  };
  struct Slot {
    nvjpegJpegState_t state = nullptr;
    int batch = 0;         // batch size for which the state was prepared
    Memory records;        // records of images, followed by their transforms
    void* host = nullptr;  // pinned memory for records, transforms, and pixels that the CPU decoded
    std::size_t host_bytes = 0;
  };
  struct Batch;
  /// Waits for the stream if the memory must grow.
  void reserve(Memory& memory, std::size_t bytes) const;
  void reserve_host(Slot& slot, std::size_t bytes) const;
  void reserve_for(Slot& slot, const Batch& batch);
  /// Writes the records to the slot's pinned memory. Returns where each image is decoded to.
  std::vector<unsigned char*> write_records(const Slot& slot, std::span<const ImageJob> jobs,
                                            const Batch& batch) const;
  void launch(const Batch& batch, ImagesArgs args) const;
  void decode(Slot& slot, std::span<const ImageJob> jobs, std::span<unsigned char* const> to,
              std::byte* pinned);

  const Context& context_;
  CUstream stream_;
  nvjpegHandle_t handle_ = nullptr;  // created for the first file
  std::vector<Slot> slots_;
  Memory room_;  // for the images of the current batch; the stream makes batches in order
};

}  // namespace tenon::cuda
