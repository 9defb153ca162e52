// Memory for decoded pictures, the decoder's states, and the launches.
#include "cuda/device/pictures.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <new>

#include <tenon/error.h>

#include "base/index.h"
#include "cuda/cuda.h"
#include "cuda/device/driver.h"
#include "cuda/jit/jit.h"
#include "cuda/jit/nvrtc.h"
#include "cuda/kernels/pictures_args.cuh"

namespace tenon::cuda {
namespace {

constexpr std::uint32_t kPictureThreads = 256;

// Engines of the card's that decode JPEG, or its multiprocessors, or the host's cores for the part
// that is hard to share out.
constexpr nvjpegBackend_t kBackends[] = {NVJPEG_BACKEND_HARDWARE, NVJPEG_BACKEND_GPU_HYBRID,
                                         NVJPEG_BACKEND_HYBRID};

struct Handle {
  nvjpegHandle_t handle = nullptr;
  nvjpegBackend_t backend{};
};

// With colours between pixels, as libjpeg has them.
Handle new_handle() {
  const Nvjpeg& jpeg = loaded_nvjpeg();
  if (!jpeg.problem.empty()) throw DeviceError(cat("nvJPEG cannot be used: ", jpeg.problem));
  nvjpegStatus_t status = NVJPEG_STATUS_SUCCESS;
  for (const nvjpegBackend_t backend : kBackends) {
    Handle out{nullptr, backend};
    status = jpeg.nvjpegCreateEx(backend, nullptr, nullptr,
                                 NVJPEG_FLAGS_UPSAMPLING_WITH_INTERPOLATION, &out.handle);
    if (status == NVJPEG_STATUS_SUCCESS) return out;
  }
  check_nvjpeg(status, "starting");
  return {};
}

std::shared_ptr<const CompiledKernel> picture_kernel(int index, const char* name) {
  return compile(target_of(index),
                 {cat(name, "_of_pictures"),
                  cat("#include \"cuda/kernels/pictures.cuh\"\n\nusing namespace "
                      "tenon::cuda;\n\nextern \"C\" __global__ void ",
                      name, "_of_pictures(const PicturesArgs args) {\n  ", name, "(args);\n}\n")});
}

}  // namespace

PictureDecoder picture_decoder(int index) {
  static std::mutex mutex;
  static std::map<int, PictureDecoder> known;
  const Nvjpeg& jpeg = loaded_nvjpeg();
  if (!jpeg.problem.empty()) return {false, false, jpeg.problem};
  if (!nvrtc().problem.empty()) return {false, false, nvrtc().problem};
  context_of(index);
  const std::lock_guard lock(mutex);
  if (const auto found = known.find(index); found != known.end()) return found->second;
  PictureDecoder& decoder = known[index];
  try {
    const Handle trial = new_handle();
    jpeg.nvjpegDestroy(trial.handle);
    const bool engines = trial.backend == NVJPEG_BACKEND_HARDWARE;
    decoder = {true, engines,
               cat("nvJPEG ", jpeg.version, engines ? " on engines of its own" : "")};
    // Compiled by the time that the first batch is there.
    for (const char* name : {"scale_rows", "scale_columns", "change_colours"})
      picture_kernel(index, name);
  } catch (const DeviceError& error) {
    decoder = {false, false, error.what()};
  }
  return decoder;
}

CardPictures::CardPictures(const Context& context, CUstream stream, int slots)
    : context_(context), stream_(stream), handle_(new_handle().handle), slots_(at(slots)) {}

CardPictures::~CardPictures() {
  const Driver& api = loaded_driver().table;
  const Nvjpeg& jpeg = loaded_nvjpeg();
  for (Slot& slot : slots_) {
    if (slot.state != nullptr) jpeg.nvjpegJpegStateDestroy(slot.state);
    if (slot.records.data != 0) api.cuMemFree(slot.records.data);
    if (slot.host != nullptr) api.cuMemFreeHost(slot.host);
  }
  for (const Memory& memory : {pixels_, rows_})
    if (memory.data != 0) api.cuMemFree(memory.data);
  jpeg.nvjpegDestroy(handle_);
}

void CardPictures::reserve(Memory& memory, std::size_t bytes) const {
  if (memory.bytes >= bytes) return;
  const Driver& api = driver();
  const std::size_t roomy = bytes + bytes / 4;
  if (memory.data != 0) {
    check(api.cuStreamSynchronize(stream_), "waiting for pictures on ", context_.title());
    api.cuMemFree(memory.data);
  }
  memory = {};
  check(api.cuMemAlloc(&memory.data, roomy), "allocating ", roomy, " bytes for pictures on ",
        context_.title());
  memory.bytes = roomy;
}

void CardPictures::decode(Slot& slot, std::span<const PictureJob> jobs,
                          std::span<unsigned char* const> to) {
  const Nvjpeg& jpeg = loaded_nvjpeg();
  std::vector<const unsigned char*> files;
  std::vector<std::size_t> bytes;
  std::vector<nvjpegImage_t> images;
  for (std::size_t k = 0; k < jobs.size(); ++k) {
    const PictureJob& job = jobs[k];
    if (!job.pixels.empty()) {
      check(
          driver().cuMemcpyHtoDAsync(address(to[k]), job.pixels.data(), job.pixels.size(), stream_),
          "copying a picture to ", context_.title());
      continue;
    }
    files.push_back(reinterpret_cast<const unsigned char*>(job.jpeg.data()));
    bytes.push_back(job.jpeg.size());
    images.push_back({{to[k]}, {3 * at(job.record.width)}});
  }
  if (files.empty()) return;
  if (slot.state == nullptr)
    check_nvjpeg(jpeg.nvjpegJpegStateCreate(handle_, &slot.state), "making a state");
  const int batch = static_cast<int>(files.size());
  if (slot.batch != batch)
    check_nvjpeg(
        jpeg.nvjpegDecodeBatchedInitialize(handle_, slot.state, batch, 1, NVJPEG_OUTPUT_RGBI),
        "preparing for a batch");
  slot.batch = batch;
  const nvjpegStatus_t status = jpeg.nvjpegDecodeBatched(handle_, slot.state, files.data(),
                                                         bytes.data(), images.data(), stream_);
  if (status != NVJPEG_STATUS_SUCCESS) driver().cuStreamSynchronize(stream_);  // files may go
  if (status == NVJPEG_STATUS_BAD_JPEG || status == NVJPEG_STATUS_JPEG_NOT_SUPPORTED ||
      status == NVJPEG_STATUS_INCOMPLETE_BITSTREAM)
    throw FormatError(cat("nvJPEG refuses one of ", batch, " JPEG files (status ", status, ")"));
  check_nvjpeg(status, "decoding");
}

void CardPictures::make(int number, void* to, std::span<const PictureJob> jobs, int height,
                        int width) {
  if (jobs.empty()) return;
  const Driver& api = driver();
  Slot& slot = slots_[at(number)];
  const auto aligned = [](std::int64_t bytes) { return at(round_up(bytes, 256)); };
  std::size_t pixels = 0, rows = 0;
  int most_rows = 0;
  for (const PictureJob& job : jobs) {
    pixels += aligned(std::int64_t{3} * job.record.width * job.record.height);
    rows += aligned(std::int64_t{3} * job.record.rows * width);
    most_rows = std::max(most_rows, job.record.rows);
  }
  const std::size_t records = jobs.size() * sizeof(PictureOnCard);
  reserve(pixels_, pixels);
  reserve(rows_, rows);
  reserve(slot.records, records);
  if (slot.host_bytes < records) {
    if (slot.host != nullptr) api.cuMemFreeHost(slot.host);
    slot.host = nullptr, slot.host_bytes = 0;
    check(api.cuMemHostAlloc(&slot.host, records, CU_MEMHOSTALLOC_PORTABLE),
          "pinning host memory for pictures to ", context_.title());
    slot.host_bytes = records;
  }
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver gives addresses as integers
  auto* next_pixels = reinterpret_cast<unsigned char*>(pixels_.data);
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  auto* next_rows = reinterpret_cast<unsigned char*>(rows_.data);
  auto* on_card = static_cast<PictureOnCard*>(slot.host);
  std::vector<unsigned char*> decoded;
  for (const PictureJob& job : jobs) {
    ::new (on_card++) PictureOnCard{next_pixels, next_rows, job.record};
    decoded.push_back(next_pixels);
    next_pixels += aligned(std::int64_t{3} * job.record.width * job.record.height);
    next_rows += aligned(std::int64_t{3} * job.record.rows * width);
  }
  decode(slot, jobs, decoded);
  check(api.cuMemcpyHtoDAsync(slot.records.data, slot.host, records, stream_), "copying to ",
        context_.title());
  PicturesArgs args;
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  args.pictures = reinterpret_cast<const PictureOnCard*>(slot.records.data);
  args.out = static_cast<unsigned char*>(to);
  args.height = height, args.width = width;
  void* params[] = {&args};
  const int index = context_.card->index;
  const auto count = static_cast<std::uint32_t>(jobs.size());
  const auto launch = [&](const char* name, std::int64_t blocks) {
    picture_kernel(index, name)
        ->launch(stream_, {static_cast<std::uint32_t>(blocks), count}, {kPictureThreads}, 0,
                 params);
  };
  launch("scale_rows", divide_up(most_rows, kPictureRows));
  launch("scale_columns", height);
  if (std::any_of(jobs.begin(), jobs.end(),
                  [](const PictureJob& j) { return j.record.changes > 0; }))
    launch("change_colours", 1);
}

}  // namespace tenon::cuda
