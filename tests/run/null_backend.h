// A third backend, written as an outsider to the library would write it: its devices use host
// memory under another name and compute with the reference engine. It counts the calls that it
// receives.
#pragma once

#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include <tenon/error.h>

#include "cpu/cpu.h"
#include "device/backend.h"
#include "plan/program/program.h"
#include "plan/steps/loop_engine.h"

namespace tenon::test {

inline constexpr auto kNull = static_cast<Device::Kind>(2);
inline constexpr int kNullDevices = 4;

struct NullCounts {
  int allocations = 0, to_host = 0, from_host = 0, between = 0, launches = 0, replays = 0;
  int groups = 0, collectives = 0;  // groups with this backend, collectives that it ran
  std::int64_t in_use = 0;
};

class NullMemory final : public DeviceMemory {
 public:
  explicit NullMemory(std::array<NullCounts, kNullDevices>& counts) : counts_(counts) {}
  void* allocate(std::size_t bytes, int index) override {
    NullCounts& c = of(index);
    ++c.allocations;
    c.in_use += static_cast<std::int64_t>(bytes);
    return std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  }
  void release(void* memory, std::size_t bytes, int index) noexcept override {
    of(index).in_use -= static_cast<std::int64_t>(bytes);
    std::free(memory);
  }
  void to_host(void* to, const void* from, std::size_t bytes, int index) override {
    ++of(index).to_host;
    std::memcpy(to, from, bytes);
  }
  void from_host(void* to, const void* from, std::size_t bytes, int index) override {
    ++of(index).from_host;
    std::memcpy(to, from, bytes);
  }
  void copy(void* to, int to_index, const void* from, int, std::size_t bytes) override {
    ++of(to_index).between;
    std::memcpy(to, from, bytes);
  }
  PoolStats stats(int index) override { return {.in_use = of(index).in_use}; }
  void trim(int) override {}
  void set_limit(std::int64_t, int) override {}

 private:
  NullCounts& of(int index) { return counts_[static_cast<std::size_t>(index)]; }
  std::array<NullCounts, kNullDevices>& counts_;
};

/// All members are in this process, so that all data is present when a call begins.
class NullCommunicator final : public Communicator {
 public:
  NullCommunicator(std::array<NullCounts, kNullDevices>& counts, std::span<const int> indices)
      : counts_(counts), indices_(indices.begin(), indices.end()), size_(member_count(indices)) {
    for (const int index : indices_) ++counts_[static_cast<std::size_t>(index)].groups;
  }
  int size() const override { return size_; }
  void all_reduce(std::span<const Part> parts, std::int64_t count, DType dtype,
                  Combine by) override {
    const std::vector<float> sum = combined(parts, count, dtype, by);
    for (const Part& part : parts) take(part, sum.data(), count);
  }
  void broadcast(std::span<const Part> parts, std::int64_t count, DType dtype, int root) override {
    const std::vector<float> from = given(of_rank(parts, root), count, dtype);
    for (const Part& part : parts)
      if (part.rank != root) take(part, from.data(), count);
  }
  void all_gather(std::span<const Part> parts, std::int64_t count, DType dtype) override {
    std::vector<float> all;
    for (int r = 0; r < size_; ++r) {
      const std::vector<float> one = given(of_rank(parts, r), count, dtype);
      all.insert(all.end(), one.begin(), one.end());
    }
    for (const Part& part : parts) take(part, all.data(), count * size_);
  }
  void reduce_scatter(std::span<const Part> parts, std::int64_t count, DType dtype,
                      Combine by) override {
    const std::vector<float> sum = combined(parts, count * size_, dtype, by);
    for (const Part& part : parts) take(part, sum.data() + part.rank * count, count);
  }

 private:
  static const Part& of_rank(std::span<const Part> parts, int rank) {
    for (const Part& part : parts)
      if (part.rank == rank) return part;
    throw InternalError("a member of the group is not here");
  }
  static std::vector<float> given(const Part& part, std::int64_t count, DType dtype) {
    if (dtype != DType::Float32) throw NotSupported("null devices exchange float32");
    const auto* from = reinterpret_cast<const float*>(part.from);
    return {from, from + count};
  }
  void take(const Part& part, const float* from, std::int64_t count) {
    const int index = indices_[static_cast<std::size_t>(part.rank)];
    ++counts_[static_cast<std::size_t>(index)].collectives;
    std::memcpy(part.to, from, static_cast<std::size_t>(count) * sizeof(float));
  }
  static int member_count(std::span<const int> indices) { return static_cast<int>(indices.size()); }
  std::vector<float> combined(std::span<const Part> parts, std::int64_t count, DType dtype,
                              Combine by) const {
    std::vector<float> out = given(of_rank(parts, 0), count, dtype);
    for (int r = 1; r < size_; ++r) {
      const std::vector<float> one = given(of_rank(parts, r), count, dtype);
      for (std::size_t k = 0; k < out.size(); ++k)
        out[k] = by == Combine::Sum   ? out[k] + one[k]
                 : by == Combine::Max ? std::max(out[k], one[k])
                                      : std::min(out[k], one[k]);
    }
    return out;
  }
  std::array<NullCounts, kNullDevices>& counts_;
  const std::vector<int> indices_;
  const int size_;
};

class NullBackend final : public Backend {
 public:
  Device::Kind kind() const override { return kNull; }
  const char* name() const override { return "null"; }
  DeviceTraits traits() const override { return {.is_queued = true}; }
  void open(int index) override {
    if (index >= kNullDevices) throw DeviceError("there is no such null device");
  }
  DeviceFacts facts(int) override { return {"null", std::int64_t{1} << 30, {}}; }
  DeviceMemory* memory() override { return &memory_; }
  std::span<const Engine* const> engines(int, bool) override {
    static const Engine* const all[] = {&loop_engine(), &cpu::reference_engine()};
    return all;
  }
  void* stream(int) override { return nullptr; }
  void synchronize() override { ++synchronized; }
  void run_once(const Program& program, std::byte* const* values, std::byte* arena) override {
    for (const Step& step : program.steps) {
      step.kernel->run({values, arena + step.workspace_offset, nullptr});
      ++count(program.device.index).launches;
    }
  }
  std::unique_ptr<Replay> make_replay(std::shared_ptr<const Program> program) override {
    return std::make_unique<NullReplay>(*this, std::move(program));
  }
  double measure(const Kernel& kernel, const Binding& binding, int, int) override {
    kernel.run(binding);
    return 1;
  }
  std::unique_ptr<Communicator> make_communicator(std::span<const int> indices) override {
    return std::make_unique<NullCommunicator>(counts_, indices);
  }

  NullCounts& count(int index) { return counts_[static_cast<std::size_t>(index)]; }
  int synchronized = 0;

 private:
  class NullReplay final : public Replay {
   public:
    NullReplay(NullBackend& backend, std::shared_ptr<const Program> program)
        : backend_(backend), program_(std::move(program)) {}
    void run(std::span<std::byte* const> values, std::span<const std::int64_t> strides, int runs,
             std::byte* arena) override {
      std::vector<std::byte*> at(values.begin(), values.end());
      for (int r = 0; r < runs; ++r) {
        backend_.run_once(*program_, at.data(), arena);
        for (std::size_t k = 0; k < at.size(); ++k) at[k] += strides[k];
      }
      ++backend_.count(program_->device.index).replays;
    }

   private:
    NullBackend& backend_;
    const std::shared_ptr<const Program> program_;
  };

  std::array<NullCounts, kNullDevices> counts_;
  NullMemory memory_{counts_};
};

/// Registered on first use.
inline NullBackend& null_backend() {
  static NullBackend* const instance = [] {
    auto* made = new NullBackend;
    register_backend(*made);
    return made;
  }();
  return *instance;
}
inline Device null_device(int index) {
  null_backend();
  return {kNull, static_cast<std::int16_t>(index)};
}

}  // namespace tenon::test
