// Planning throws MemoryError if a program exceeds the memory limit.
#include "train/sessions/planned.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <tenon/compute.h>
#include <tenon/error.h>
#include <tenon/shapes_only.h>

#include "device/backend.h"
#include "run/devices.h"
#include "train/batches/resident.h"
#include "train/fitting/step.h"

namespace tenon::train {
namespace {

// Halves the batch size until the evaluation fits into memory.
std::int64_t fitting_batch(const Session& session, const data::Loader& measured) {
  EvalStep step(session.net, loss_of(session.run, session.net, 0), session.run.task);
  for (std::int64_t batch = measured.batch();; batch /= 2) {
    try {
      (void)step.plan(measured, batch);
      return batch;
    } catch (const MemoryError&) {
      if (batch == 1) throw;
    }
  }
}

// 0 means no limit.
std::int64_t smaller(std::int64_t a, std::int64_t b) {
  return a == 0 ? b : b == 0 ? a : std::min(a, b);
}

std::int64_t planned(Session& session) {
  TrainStep step(session.net, session.loss, *session.optimizer, session.options("", false));
  step.use(resident_set(*session.train));
  (void)step.plan(*session.train);
  std::int64_t batch = 0;
  for (const data::Loader* measured : {session.validation.get(), session.test.get()}) {
    if (measured == nullptr) continue;
    if (const std::int64_t fitting = fitting_batch(session, *measured); fitting < measured->batch())
      batch = smaller(batch, fitting);
  }
  return batch;
}

bool is_limited() { return current_context().memory_limit > 0; }

// Whether the weights take an eighth of the device's memory or more. Gradients, optimizer state and
// activations may then exceed it. The plan shows it before the weights are allocated.
bool may_exceed_device(const Session& session) {
  const Device device = current_device();
  std::int64_t bytes = 0;
  for (const auto& [name, tensor] : session.net.state_dict())
    bytes += tensor.numel() * static_cast<std::int64_t>(item_size(tensor.dtype()));
  const std::int64_t memory = backend_for(device).facts(device.index).memory_bytes;
  return memory > 0 && bytes >= memory / 8;
}

}  // namespace

std::int64_t plan_within_limit(Session& session) {
  if (!is_limited()) return 0;
  const std::int64_t batch = planned(session);
  if (session.run.frozen.until_epoch <= 0) return batch;
  const std::int64_t later = plan_within_limit(session.run.released(), session.sets);
  return smaller(batch, later);
}

std::int64_t plan_within_limit(const ResolvedRun& run, const DataSets& sets) {
  const bool has_own_memory = current_device().kind != Device::Kind::Cpu;
  if (!is_limited() && !has_own_memory) return 0;
  Context context = current_context();  // so that draws here do not change the run's random numbers
  context.generator = Generator(run.compute.seed);
  const ContextScope scope(context);
  const ShapesOnly shapes;
  Session session(run, sets);
  return is_limited() || may_exceed_device(session) ? planned(session) : 0;
}

}  // namespace tenon::train
