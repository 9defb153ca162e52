// Steps of a program on several devices, queued one after another; transfers keep devices in step.
#include "run/placed.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/index.h"
#include "plan/placed.h"
#include "run/devices.h"
#include "run/runner.h"

namespace tenon {
namespace {

class PlacedReplay final : public Replay {
 public:
  explicit PlacedReplay(std::shared_ptr<const Program> program) : program_(std::move(program)) {
    for (const Step& step : program_->steps) {
      const Opaque& opaque = step.region.opaque;
      replays_.push_back(
          opaque.bodies.empty()
              ? nullptr
              : backend_for(device_of(*program_, step)).make_replay(opaque.bodies[0]));
    }
  }

  void run(std::span<std::byte* const> values, std::span<const std::int64_t> strides, int runs,
           std::byte*) override {
    // The caller has the first device's; all take them in this order.
    std::vector<std::unique_lock<std::mutex>> queues;
    for (std::size_t d = 1; d < program_->devices.size(); ++d)
      queues.push_back(lock_queue(program_->devices[d]));
    if (arenas_.empty()) allocate();
    values_.assign(values.begin(), values.end());
    for (std::size_t k = 0; k < values_.size(); ++k)
      if (program_->values[k].kind == Value::Kind::Arena)
        values_[k] = place(program_->values[k].device, program_->values[k].offset);
    for (int r = 0; r < runs; ++r) {
      for (std::size_t s = 0; s < program_->steps.size(); ++s) run_step(s);
      for (std::size_t k = 0; k < values_.size(); ++k)
        if (strides[k] != 0) values_[k] += strides[k];
    }
  }

 private:
  void allocate() {
    for (const DeviceArena& need : arenas_of(*program_))
      arenas_.emplace_back(need,
                           Buffer::allocate(static_cast<std::size_t>(need.bytes), need.device));
  }

  std::byte* place(Device device, std::int64_t offset) const {
    const auto found = std::find_if(arenas_.begin(), arenas_.end(), [&](const auto& arena) {
      return arena.first.device == device;
    });
    return static_cast<std::byte*>(found->second->data()) + (offset - found->first.begin);
  }

  void run_step(std::size_t s) {
    const Step& step = program_->steps[s];
    const Device device = device_of(*program_, step);
    std::byte* workspace = place(device, step.workspace_offset);
    if (replays_[s] == nullptr) {
      step.kernel->run({values_.data(), workspace, backend_of(device).stream(device.index)});
      return;
    }
    bind_call(step.region.opaque, values_.data(), workspace, inside_);
    still_.assign(inside_.size(), 0);
    replays_[s]->run(inside_, still_, 1, workspace);
  }

  const std::shared_ptr<const Program> program_;
  std::vector<std::unique_ptr<Replay>> replays_;  // by step; null: nothing to prepare
  std::vector<std::pair<DeviceArena, std::shared_ptr<Buffer>>> arenas_;
  std::vector<std::byte*> values_, inside_;
  std::vector<std::int64_t> still_;
};

}  // namespace

std::unique_ptr<Replay> make_placed_replay(std::shared_ptr<const Program> program) {
  return std::make_unique<PlacedReplay>(std::move(program));
}

}  // namespace tenon
