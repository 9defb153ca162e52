// Evaluation over a loader.
#include "train/fitting/evaluate.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <memory>

#include <tenon/error.h>

#include "base/str.h"
#include "train/batches/batches.h"
#include "train/tasks/tasks.h"

namespace tenon::train {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

Evaluation evaluate(EvalStep& step, data::Loader& loader,
                    const std::function<void(std::int64_t, std::int64_t)>& progress) {
  const auto start = std::chrono::steady_clock::now();
  loader.set_epoch(loader.state().epoch);
  const data::Dataset& set = loader.dataset();
  Evaluation out;
  out.accuracy = out.top3_accuracy = out.top5_accuracy = out.log_loss = kNan;
  const std::unique_ptr<Meter> meter = step.task().meter(set);
  double total = 0, counted = 0;
  std::int64_t of_targets = 0;
  Batches batches(loader);
  data::Batch batch;
  step.set_views(set.views());
  for (std::int64_t k = 1; batches.next(batch); ++k) {
    if (!leave_out_absent(batch, set)) continue;
    const EvalOutcome outcome = step(batch);
    total += outcome.total;
    counted += outcome.counted;
    out.targets += outcome.targets;
    of_targets += batch.target.numel();
    out.items += batch.size;
    if (meter != nullptr)
      meter->add({outcome.scores, batch.target, outcome.correct, outcome.targets, step.ignored()});
    if (progress) progress(k, loader.batches());
  }
  if (out.items == 0 && set.any_broken())
    throw FormatError(
        cat("no sample of ", set.describe(), " could be decoded, as ", set.broken().front()));
  out.ignored = of_targets - out.targets;
  out.broken = set.broken();
  out.notes = set.notes();
  out.loss = quotient(total, counted);
  if (meter != nullptr) meter->finish(out);
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  out.items_per_s = static_cast<double>(out.items) / std::max(out.seconds, 1e-9);
  return out;
}

}  // namespace tenon::train
