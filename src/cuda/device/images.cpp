// Decodes and transforms the images of a batch. nvJPEG decodes the files, and pixels that the CPU
// decoded are copied. Then four kernels join the planes of JPEG files, scale in two steps, and
// apply the remaining transforms. Memory grows if a batch needs more and is reused otherwise.
#include "cuda/device/images.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>

#include <tenon/error.h>

#include "base/index.h"
#include "cuda/cuda.h"
#include "cuda/device/opening/driver.h"
#include "cuda/jit/jit.h"
#include "cuda/jit/nvrtc.h"
#include "cuda/kernels/images/images_args.cuh"
#include "scalar/image.h"

namespace tenon::cuda {
namespace {

// In order of preference: the GPU's JPEG engines, its multiprocessors, or the host's cores for the
// part that is hard to parallelise.
constexpr nvjpegBackend_t kBackends[] = {NVJPEG_BACKEND_HARDWARE, NVJPEG_BACKEND_GPU_HYBRID,
                                         NVJPEG_BACKEND_HYBRID};

struct Handle {
  nvjpegHandle_t handle = nullptr;
  nvjpegBackend_t backend{};
};

Handle new_handle() {
  const Nvjpeg& jpeg = loaded_nvjpeg();
  if (!jpeg.problem.empty()) throw DeviceError(cat("nvJPEG cannot be used: ", jpeg.problem));
  nvjpegStatus_t status = NVJPEG_STATUS_SUCCESS;
  for (const nvjpegBackend_t backend : kBackends) {
    Handle out{nullptr, backend};
    status = jpeg.nvjpegCreateEx(backend, nullptr, nullptr, 0, &out.handle);
    if (status == NVJPEG_STATUS_SUCCESS) return out;
  }
  check_nvjpeg(status, "starting");
  return {};
}

std::shared_ptr<const CompiledKernel> image_kernel(int index, const char* name) {
  return compile(target_of(index),
                 {cat(name, "_of_images"),
                  cat("#include \"cuda/kernels/images/images.cuh\"\n\nusing namespace "
                      "tenon::cuda;\n\nextern \"C\" __global__ void ",
                      name, "_of_images(const ImagesArgs args) {\n  ", name, "(args);\n}\n")});
}

constexpr const char* kKernels[] = {"join_colours", "scale_rows", "scale_columns",
                                    "transform_images"};

std::size_t aligned(std::int64_t bytes) { return at(round_up(bytes, 256)); }

scalar::TapRange rows_of(const ImageTransform& c) {
  return scalar::all_taps(
      scalar::resample_axis(c.numbers[1], c.numbers[3], c.top, c.top + c.height, c.to_height),
      c.to_height);
}

// Bytes of the three memory areas in which an image is transformed (ImageOnGpu).
struct ImageRoom {
  std::size_t planes = 0, pixels = 0, spare = 0, scratch = 0;
  int moves = 0;
  std::size_t all() const { return planes + pixels + spare + scratch; }
};

JpegPlanes planes_of(const ImageJob& job) {
  return jpeg_planes(job.record.width, job.record.height, job.across, job.down);
}

ImageRoom room_of(const ImageJob& job) {
  const ImageRecord& record = job.record;
  ImageRoom out;
  if (job.pixels.empty()) out.planes = aligned(planes_of(job).bytes());
  std::int64_t width = record.width, height = record.height;
  const auto grow = [](std::size_t& part, std::int64_t bytes) {
    part = std::max(part, aligned(bytes));
  };
  grow(out.pixels, 3 * width * height);
  for (const ImageTransform& change : record.changes) {
    if (!moves_pixels(change.kind)) continue;
    // Reserves room for the output of the previous transform. The output of the last transform is
    // written to the batch and needs no room here.
    if (out.moves > 0) grow(out.moves % 2 != 0 ? out.spare : out.pixels, 3 * width * height);
    ++out.moves;
    if (change.kind == ImageTransform::kBlur)
      grow(out.scratch, 3 * width * height * std::int64_t{sizeof(float)});
    width = change.to_width, height = change.to_height;
    if (change.kind == ImageTransform::kScale) {
      const scalar::TapRange rows = rows_of(change);
      grow(out.scratch, 3 * width * (rows.end - rows.first));
    }
  }
  return out;
}

}  // namespace

// What a batch needs of memory, and how large its launches are.
struct GpuImages::Batch {
  explicit Batch(std::span<const ImageJob> jobs) {
    std::size_t transforms = 0;
    for (const ImageJob& job : jobs) {
      add(job);
      transforms += job.record.changes.size();
    }
    image_bytes = aligned(std::ssize(jobs) * std::int64_t{sizeof(ImageOnGpu)});
    transform_bytes = transforms * sizeof(ImageTransform);
  }

  std::size_t record_bytes() const { return image_bytes + transform_bytes; }

  std::vector<ImageRoom> rooms{};
  std::size_t room = 0, pinned_pixels = 0;           // bytes
  std::size_t image_bytes = 0, transform_bytes = 0;  // of the records of images and transforms
  std::int64_t most_joined = 0;                      // most rows of one JPEG file's planes
  std::int64_t most_items = 0, most_rows = 0;        // over images whose first transform scales
  bool more = false;  // whether an image has transforms after the first scaling

 private:
  void add(const ImageJob& job) {
    const std::vector<ImageTransform>& list = job.record.changes;
    rooms.push_back(room_of(job));
    room += rooms.back().all(), pinned_pixels += job.pixels.size();
    if (job.pixels.empty()) most_joined = std::max<std::int64_t>(most_joined, job.record.height);
    const bool scales = !list.empty() && list[0].kind == ImageTransform::kScale;
    more = more || list.size() > (scales ? 1 : 0);
    if (!scales) return;
    const scalar::TapRange rows = rows_of(list[0]);
    most_items =
        std::max(most_items, divide_up(rows.end - rows.first, kImageRows) * list[0].to_width);
    most_rows = std::max<std::int64_t>(most_rows, list[0].to_height);
  }
};

ImageDecoder image_decoder(int index) {
  static std::mutex mutex;
  static std::map<int, ImageDecoder> known;
  const Nvjpeg& jpeg = loaded_nvjpeg();
  if (!nvrtc().problem.empty()) return {false, false, false, nvrtc().problem};
  context_of(index);
  const std::lock_guard lock(mutex);
  if (const auto found = known.find(index); found != known.end()) return found->second;
  ImageDecoder& decoder = known[index];
  // Starts the compilation, so that kernels are ready when the first batch arrives.
  for (const char* name : kKernels) image_kernel(index, name);
  try {
    const Handle trial = new_handle();
    jpeg.nvjpegDestroy(trial.handle);
    const bool engines = trial.backend == NVJPEG_BACKEND_HARDWARE;
    decoder = {true, engines, true,
               cat("nvJPEG ", jpeg.version, engines ? " on engines of its own" : "")};
  } catch (const DeviceError& error) {
    decoder = {false, false, true, error.what()};
  }
  return decoder;
}

GpuImages::GpuImages(const Context& context, CUstream stream, int slots)
    : context_(context), stream_(stream), slots_(at(slots)) {}

GpuImages::~GpuImages() {
  const Driver& api = loaded_driver().table;
  const Nvjpeg& jpeg = loaded_nvjpeg();
  for (Slot& slot : slots_) {
    if (slot.state != nullptr) jpeg.nvjpegJpegStateDestroy(slot.state);
    if (slot.records.data != 0) api.cuMemFree(slot.records.data);
    if (slot.host != nullptr) api.cuMemFreeHost(slot.host);
  }
  if (room_.data != 0) api.cuMemFree(room_.data);
  if (handle_ != nullptr) jpeg.nvjpegDestroy(handle_);
}

void GpuImages::reserve(Memory& memory, std::size_t bytes) const {
  if (memory.bytes >= bytes) return;
  const Driver& api = driver();
  const std::size_t roomy = bytes + bytes / 4;
  if (memory.data != 0) {
    check(api.cuStreamSynchronize(stream_), "waiting for images on ", context_.title());
    api.cuMemFree(memory.data);
  }
  memory = {};
  check(api.cuMemAlloc(&memory.data, roomy), "allocating ", roomy, " bytes for images on ",
        context_.title());
  memory.bytes = roomy;
}

// The stream no longer reads the slot's previous contents.
void GpuImages::reserve_host(Slot& slot, std::size_t bytes) const {
  if (slot.host_bytes >= bytes) return;
  const Driver& api = driver();
  if (slot.host != nullptr) api.cuMemFreeHost(slot.host);
  slot.host = nullptr, slot.host_bytes = 0;
  const std::size_t roomy = bytes + bytes / 4;
  check(api.cuMemHostAlloc(&slot.host, roomy, CU_MEMHOSTALLOC_PORTABLE),
        "pinning host memory for images to ", context_.title());
  slot.host_bytes = roomy;
}

void GpuImages::decode(Slot& slot, std::span<const ImageJob> jobs,
                       std::span<unsigned char* const> to, std::byte* pinned) {
  const Nvjpeg& jpeg = loaded_nvjpeg();
  std::vector<const unsigned char*> files;
  std::vector<std::size_t> bytes;
  std::vector<nvjpegImage_t> images;
  for (std::size_t k = 0; k < jobs.size(); ++k) {
    const ImageJob& job = jobs[k];
    if (!job.pixels.empty()) {
      std::memcpy(pinned, job.pixels.data(), job.pixels.size());
      check(driver().cuMemcpyHtoDAsync(address(to[k]), pinned, job.pixels.size(), stream_),
            "copying an image to ", context_.title());
      pinned += job.pixels.size();
      continue;
    }
    files.push_back(reinterpret_cast<const unsigned char*>(job.jpeg.data()));
    bytes.push_back(job.jpeg.size());
    const JpegPlanes planes = planes_of(job);
    const std::size_t pitch = at(planes.colour_pitch);
    images.push_back({{to[k], to[k] + planes.colour(0), to[k] + planes.colour(1)},
                      {at(planes.pitch), pitch, pitch}});
  }
  if (files.empty()) return;
  if (handle_ == nullptr) handle_ = new_handle().handle;
  if (slot.state == nullptr)
    check_nvjpeg(jpeg.nvjpegJpegStateCreate(handle_, &slot.state), "making a state");
  const int batch = static_cast<int>(files.size());
  if (slot.batch != batch)
    check_nvjpeg(
        jpeg.nvjpegDecodeBatchedInitialize(handle_, slot.state, batch, 1, NVJPEG_OUTPUT_YUV),
        "preparing for a batch");
  slot.batch = batch;
  const nvjpegStatus_t status = jpeg.nvjpegDecodeBatched(handle_, slot.state, files.data(),
                                                         bytes.data(), images.data(), stream_);
  // After an error the caller may free the files.
  if (status != NVJPEG_STATUS_SUCCESS) driver().cuStreamSynchronize(stream_);
  if (status == NVJPEG_STATUS_BAD_JPEG || status == NVJPEG_STATUS_JPEG_NOT_SUPPORTED ||
      status == NVJPEG_STATUS_INCOMPLETE_BITSTREAM)
    throw FormatError(cat("nvJPEG refuses one of ", batch, " JPEG files (status ", status, ")"));
  check_nvjpeg(status, "decoding");
}

void GpuImages::reserve_for(Slot& slot, const Batch& batch) {
  reserve(room_, batch.room);
  reserve(slot.records, batch.record_bytes());
  reserve_host(slot, batch.record_bytes() + batch.pinned_pixels);
}

std::vector<unsigned char*> GpuImages::write_records(const Slot& slot,
                                                     std::span<const ImageJob> jobs,
                                                     const Batch& batch) const {
  auto* on_gpu = static_cast<ImageOnGpu*>(slot.host);
  std::byte* next_change = static_cast<std::byte*>(slot.host) + batch.image_bytes;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver gives addresses as integers
  auto* next = reinterpret_cast<unsigned char*>(room_.data);
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  auto* there = reinterpret_cast<const ImageTransform*>(slot.records.data + batch.image_bytes);
  std::vector<unsigned char*> decoded;
  for (std::size_t k = 0; k < jobs.size(); ++k) {
    const ImageRecord& record = jobs[k].record;
    const ImageRoom& own = batch.rooms[k];
    unsigned char* const pixels = next + own.planes;
    const bool planes = own.planes > 0;
    ::new (on_gpu++) ImageOnGpu{planes ? next : nullptr,
                                pixels,
                                pixels + own.pixels,
                                pixels + own.pixels + own.spare,
                                there,
                                static_cast<int>(record.changes.size()),
                                own.moves,
                                record.width,
                                record.height,
                                jobs[k].across,
                                jobs[k].down};
    decoded.push_back(planes ? next : pixels);
    next += own.all(), there += record.changes.size();
    for (const ImageTransform& change : record.changes) {
      ::new (next_change) ImageTransform(change);
      next_change += sizeof(ImageTransform);
    }
  }
  return decoded;
}

void GpuImages::launch(const Batch& batch, ImagesArgs args) const {
  void* params[] = {&args};
  const auto launch_one = [&](const char* name, std::int64_t blocks, int threads) {
    if (blocks == 0) return;
    image_kernel(context_.gpu->index, name)
        ->launch(
            stream_,
            {static_cast<std::uint32_t>(blocks), static_cast<std::uint32_t>(batch.rooms.size())},
            {static_cast<std::uint32_t>(threads)}, 0, params);
  };
  launch_one(kKernels[0], batch.most_joined, kScaleThreads);
  launch_one(kKernels[1], divide_up(batch.most_items, kScaleThreads), kScaleThreads);
  launch_one(kKernels[2], batch.most_rows, kScaleThreads);
  launch_one(kKernels[3], batch.more ? 1 : 0, kChangeThreads);
}

void GpuImages::make(int number, void* to, std::span<const ImageJob> jobs, int height, int width) {
  if (jobs.empty()) return;
  Slot& slot = slots_[at(number)];
  const Batch batch(jobs);
  reserve_for(slot, batch);
  const std::vector<unsigned char*> decoded = write_records(slot, jobs, batch);
  decode(slot, jobs, decoded, static_cast<std::byte*>(slot.host) + batch.record_bytes());
  check(driver().cuMemcpyHtoDAsync(slot.records.data, slot.host, batch.record_bytes(), stream_),
        "copying to ", context_.title());
  ImagesArgs args;
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  args.images = reinterpret_cast<const ImageOnGpu*>(slot.records.data);
  args.out = static_cast<unsigned char*>(to);
  args.height = height, args.width = width;
  launch(batch, args);
}

}  // namespace tenon::cuda
