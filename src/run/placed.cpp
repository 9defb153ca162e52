// Runs programs on several devices: queues the steps one after another. Transfers and collectives
// synchronise the devices.
#include "run/placed.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/index.h"
#include "plan/steps/placed.h"
#include "run/devices.h"
#include "run/queue.h"

namespace tenon {
namespace {

using Queues = std::vector<std::unique_lock<std::mutex>>;

// Locks the queues of the devices from number `first` on. All callers lock in this order, which
// prevents deadlock.
Queues lock_queues(const Program& program, std::size_t first) {
  Queues queues;
  for (std::size_t d = first; d < program.devices.size(); ++d)
    queues.push_back(lock_queue(program.devices[d]));
  return queues;
}

// One arena on each device.
class Arenas {
 public:
  explicit Arenas(const Program& program) {
    for (const DeviceArena& need : arenas_of(program))
      arenas_.emplace_back(need,
                           Buffer::allocate(static_cast<std::size_t>(need.bytes), need.device));
  }
  std::byte* place(Device device, std::int64_t offset) const {
    const auto found = std::find_if(arenas_.begin(), arenas_.end(), [&](const auto& arena) {
      return arena.first.device == device;
    });
    return static_cast<std::byte*>(found->second->data()) + (offset - found->first.begin);
  }
  void bind(const Program& program, std::vector<std::byte*>& values) const {
    for (std::size_t k = 0; k < values.size(); ++k)
      if (program.values[k].kind == Value::Kind::Arena)
        values[k] = place(program.values[k].device, program.values[k].offset);
  }

 private:
  std::vector<std::pair<DeviceArena, std::shared_ptr<Buffer>>> arenas_;
};

void run_kernel(const Step& step, Device device, std::byte* const* values, std::byte* workspace) {
  step.kernel->run({values, workspace, backend_of(device).stream(device.index)});
}

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
    // The caller has already locked the first device's queue.
    const Queues queues = lock_queues(*program_, 1);
    if (arenas_ == nullptr) arenas_ = std::make_unique<Arenas>(*program_);
    values_.assign(values.begin(), values.end());
    arenas_->bind(*program_, values_);
    for (int r = 0; r < runs; ++r) {
      for (std::size_t s = 0; s < program_->steps.size(); ++s) run_step(s);
      for (std::size_t k = 0; k < values_.size(); ++k)
        if (strides[k] != 0) values_[k] += strides[k];
    }
  }

 private:
  void run_step(std::size_t s) {
    const Step& step = program_->steps[s];
    const Device device = device_of(*program_, step);
    std::byte* workspace = arenas_->place(device, step.workspace_offset);
    if (replays_[s] == nullptr) return run_kernel(step, device, values_.data(), workspace);
    bind_call(step.region.opaque, values_.data(), workspace, inside_);
    still_.assign(inside_.size(), 0);
    replays_[s]->run(inside_, still_, 1, workspace);
  }

  const std::shared_ptr<const Program> program_;
  std::vector<std::unique_ptr<Replay>> replays_;  // by step; null: nothing to prepare
  std::unique_ptr<Arenas> arenas_;
  std::vector<std::byte*> values_, inside_;
  std::vector<std::int64_t> still_;
};

}  // namespace

std::unique_ptr<Replay> make_placed_replay(std::shared_ptr<const Program> program) {
  return std::make_unique<PlacedReplay>(std::move(program));
}

void run_placed(const Program& program, std::span<std::byte* const> values) {
  const Arenas arenas(program);
  std::vector<std::byte*> bound(values.begin(), values.end());
  arenas.bind(program, bound);
  const Queues queues = lock_queues(program, 0);
  for (const Step& step : program.steps) {
    const Device device = device_of(program, step);
    run_kernel(step, device, bound.data(), arenas.place(device, step.workspace_offset));
  }
}

}  // namespace tenon
