// An engine of the CUDA backend behind host pointers, so that RegionCheck can compare it with the
// reference engine: every run copies all values to the card and back.
#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "cuda/cuda.h"
#include "plan/engine.h"

namespace tenon::test {

/// Whether there is a card; says 'skipped' when not.
inline bool have_card() {
  if (cuda::card_count() > 0) return true;
  MESSAGE("skipped: no CUDA card");
  return false;
}

class CardMemory {
 public:
  explicit CardMemory(std::size_t bytes)
      : bytes_(bytes == 0 ? 1 : bytes), address_(cuda::memory().allocate(bytes_, 0)) {}
  ~CardMemory() { cuda::memory().release(address_, bytes_, 0); }
  CardMemory(const CardMemory&) = delete;
  CardMemory& operator=(const CardMemory&) = delete;
  std::byte* data() const { return static_cast<std::byte*>(address_); }

 private:
  std::size_t bytes_;
  void* address_;
};

class CardKernel final : public Kernel {
 public:
  CardKernel(std::unique_ptr<Kernel> kernel, std::span<const Value> values)
      : kernel_(std::move(kernel)) {
    for (const Value& value : values) bytes_.push_back(static_cast<std::size_t>(value.bytes));
  }
  void run(const Binding& binding) const override {
    std::vector<std::unique_ptr<CardMemory>> memory;
    std::vector<std::byte*> pointers;
    for (std::size_t i = 0; i < bytes_.size(); ++i) {
      memory.push_back(std::make_unique<CardMemory>(bytes_[i]));
      pointers.push_back(memory.back()->data());
      if (bytes_[i] != 0) cuda::memory().from_host(pointers[i], binding.values[i], bytes_[i], 0);
    }
    const CardMemory workspace(kernel_->workspace_bytes);
    kernel_->run({pointers.data(), workspace.data(), cuda::stream(0)});
    for (std::size_t i = 0; i < bytes_.size(); ++i)
      if (bytes_[i] != 0) cuda::memory().to_host(binding.values[i], pointers[i], bytes_[i], 0);
  }

 private:
  std::unique_ptr<Kernel> kernel_;
  std::vector<std::size_t> bytes_;
};

class CardEngine final : public Engine {
 public:
  using Prepare =
      std::function<std::unique_ptr<Kernel>(const Region&, std::span<const Value>, int)>;

  explicit CardEngine(const Engine& engine) : engine_(engine) {}
  /// Claims as `engine` does and prepares by `prepare`.
  CardEngine(const Engine& engine, Prepare prepare)
      : engine_(engine), prepare_(std::move(prepare)) {}

  const char* name() const override { return engine_.name(); }
  bool claims(const Region& region, std::span<const Value> values,
              std::string* why) const override {
    return engine_.claims(region, values, why);
  }
  std::unique_ptr<Kernel> prepare(const Region& region, std::span<const Value> values,
                                  int threads) const override {
    return std::make_unique<CardKernel>(
        prepare_ ? prepare_(region, values, threads) : engine_.prepare(region, values, threads),
        values);
  }

 private:
  const Engine& engine_;
  Prepare prepare_;
};

}  // namespace tenon::test
