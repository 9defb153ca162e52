// Copies batches on separate streams, and measures the GPU's waits with events.
//
// Functions that start a copy or wait for one may be called while another thread captures a graph.
#include "cuda/device/uploads.h"

#include <algorithm>
#include <array>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "cuda/device/gpu.h"
#include "cuda/device/images.h"
#include "cuda/device/opening/driver.h"

namespace tenon::cuda {
namespace {

class GpuUploads final : public Uploads {
 public:
  GpuUploads(int slots, std::size_t bytes, int index) : context_(context_of(index)) {
    const Driver& api = driver();
    const OutsideCapture outside;
    for (Lane& lane : lanes_)
      check(api.cuStreamCreateWithPriority(&lane.stream, CU_STREAM_NON_BLOCKING, kFirst),
            "making a stream on ", context_.title());
    slots_.resize(static_cast<std::size_t>(slots));
    const std::size_t each = (bytes + 255) / 256 * 256;
    check(api.cuMemHostAlloc(&memory_, each * slots_.size(), CU_MEMHOSTALLOC_PORTABLE),
          "pinning host memory for batches to ", context_.title());
    for (std::size_t k = 0; k < slots_.size(); ++k) {
      slots_[k].memory = static_cast<std::byte*>(memory_) + k * each;
      slots_[k].sent = Event(context_);
      slots_[k].read = Event(context_);
      release(static_cast<int>(k));
    }
  }
  ~GpuUploads() override {
    const Driver& api = loaded_driver().table;
    const OutsideCapture outside;
    for (Lane& lane : lanes_) {
      if (lane.stream == nullptr) continue;
      api.cuStreamSynchronize(lane.stream);
      lane.images.reset();
      api.cuStreamDestroy(lane.stream);
    }
    if (memory_ != nullptr) api.cuMemFreeHost(memory_);
  }
  GpuUploads(const GpuUploads&) = delete;
  GpuUploads& operator=(const GpuUploads&) = delete;

  std::byte* host(int slot) override { return at(slot).memory; }

  void await(int slot) override {
    use();
    const OutsideCapture outside;
    check(driver().cuEventSynchronize(at(slot).sent.get()), "waiting for a batch to reach ",
          context_.title());
  }

  void make_images(int slot, void* to, std::span<const ImageJob> jobs, int height,
                   int width) override {
    use();
    const OutsideCapture outside;
    Lane& lane = lane_of(slot);
    const std::lock_guard lock(lane.mutex);
    if (!lane.images) lane.images.emplace(context_, lane.stream, static_cast<int>(slots_.size()));
    // Hardware decoders do not wait for the stream before they write, and earlier work may still
    // read the last batch's decoded images.
    if (std::any_of(jobs.begin(), jobs.end(), [](const ImageJob& j) { return j.pixels.empty(); }))
      check(driver().cuStreamSynchronize(lane.stream), "waiting for images on ", context_.title());
    wait_for_readers(slot);
    lane.images->make(slot, to, jobs, height, width);
  }

  void send(int slot, void* to, std::size_t bytes) override {
    use();
    const OutsideCapture outside;
    const Driver& api = driver();
    wait_for_readers(slot);
    const CUstream stream = lane_of(slot).stream;
    check(api.cuMemcpyHtoDAsync(address(to), at(slot).memory, bytes, stream), "copying ", bytes,
          " bytes to ", context_.title());
    check(api.cuEventRecord(at(slot).sent.get(), stream), "recording an event on ",
          context_.title());
  }

  void receive(int slot) override {
    use();
    check(driver().cuStreamWaitEvent(context_.work, at(slot).sent.get(), 0),
          "waiting for a batch on ", context_.title());
  }

  void release(int slot) override {
    use();
    check(driver().cuEventRecord(at(slot).read.get(), context_.work), "recording an event on ",
          context_.title());
  }

 private:
  struct Slot {
    std::byte* memory = nullptr;
    Event sent, read;
  };
  // Lanes alternate between batches: one lane's launches continue while the other waits for its
  // decoder.
  struct Lane {
    CUstream stream = nullptr;
    std::mutex mutex;
    std::optional<GpuImages> images;
  };
  // The GPU's highest priority: the lanes have little work, and all other work waits for it.
  static constexpr int kFirst = -1000;
  void wait_for_readers(int slot) {
    check(driver().cuStreamWaitEvent(lane_of(slot).stream, at(slot).read.get(), 0), "waiting for ",
          context_.title());
  }
  Lane& lane_of(int slot) { return lanes_[static_cast<std::size_t>(slot) % lanes_.size()]; }
  Slot& at(int slot) { return slots_[static_cast<std::size_t>(slot)]; }
  void use() const {
    check(driver().cuCtxSetCurrent(context_.context), "choosing ", context_.title());
  }

  const Context& context_;
  std::array<Lane, 2> lanes_;
  void* memory_ = nullptr;  // of all slots
  std::vector<Slot> slots_;
};

class GpuIdleClock final : public IdleClock {
 public:
  explicit GpuIdleClock(int index) : context_(context_of(index)) {}
  ~GpuIdleClock() override {
    for (const std::deque<Pair>* list : {&spare_, &pending_})
      for (const Pair& pair : *list)
        for (CUevent event : {pair.begin, pair.end}) loaded_driver().table.cuEventDestroy(event);
  }
  GpuIdleClock(const GpuIdleClock&) = delete;
  GpuIdleClock& operator=(const GpuIdleClock&) = delete;

  void begin() override {
    while (!pending_.empty() && driver().cuEventQuery(pending_.front().end) == CUDA_SUCCESS)
      settle();
    if (spare_.empty()) spare_.push_back(made());
    pending_.push_back(spare_.front());
    spare_.pop_front();
    record(pending_.back().begin);
  }
  void end() override { record(pending_.back().end); }
  double seconds() override {
    while (!pending_.empty()) {
      check(driver().cuEventSynchronize(pending_.front().end), "waiting for ", context_.title());
      settle();
    }
    return seconds_;
  }

 private:
  struct Pair {
    CUevent begin = nullptr, end = nullptr;
  };
  Pair made() const {
    Pair pair;
    check(driver().cuEventCreate(&pair.begin, 0), "making an event on ", context_.title());
    check(driver().cuEventCreate(&pair.end, 0), "making an event on ", context_.title());
    return pair;
  }
  void record(CUevent event) const {
    check(driver().cuEventRecord(event, context_.work), "timing ", context_.title());
  }
  void settle() {
    float milliseconds = 0;
    check(driver().cuEventElapsedTime(&milliseconds, pending_.front().begin, pending_.front().end),
          "timing ", context_.title());
    seconds_ += 1e-3 * static_cast<double>(milliseconds);
    spare_.push_back(pending_.front());
    pending_.pop_front();
  }

  const Context& context_;
  std::deque<Pair> spare_, pending_;
  double seconds_ = 0;
};

}  // namespace

std::unique_ptr<Uploads> make_uploads(int slots, std::size_t bytes, int index) {
  return std::make_unique<GpuUploads>(slots, bytes, index);
}

std::unique_ptr<IdleClock> make_idle_clock(int index) {
  return std::make_unique<GpuIdleClock>(index);
}

}  // namespace tenon::cuda
