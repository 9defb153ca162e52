// Evaluation over a loader.
#include "train/evaluate.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <optional>

#include <tenon/error.h>

#include "base/str.h"
#include "train/batches.h"

namespace tenon::train {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

double quotient(double sum, double count) { return count > 0 ? sum / count : kNan; }

// Of the classes of a set; the network may have more outputs.
void add_classes(std::optional<metrics::ClassMetrics>& metrics, const EvalOutcome& outcome,
                 const Tensor& target, std::int64_t classes, std::optional<std::int64_t> ignored) {
  require_scores(outcome.scores, classes);
  if (!metrics) metrics.emplace(static_cast<int>(outcome.scores.size(1)));
  metrics->add(outcome.scores, target, ignored);
}

void take_classes(Evaluation& out, const metrics::ClassMetrics& metrics) {
  out.confusion = metrics.confusion();
  out.accuracy = out.confusion.accuracy();
  out.top3_accuracy = metrics.top_k_accuracy(3);
  out.top5_accuracy = metrics.top_k_accuracy(5);
  out.log_loss = metrics.log_loss();
  out.roc_auc = metrics.roc_auc();
  out.average_precision = metrics.average_precision();
}

}  // namespace

Evaluation evaluate(EvalStep& step, data::Loader& loader, bool classes,
                    const std::function<void(std::int64_t, std::int64_t)>& progress) {
  const auto start = std::chrono::steady_clock::now();
  loader.set_epoch(loader.state().epoch);
  const data::Dataset& set = loader.dataset();
  const std::int64_t count = classes && !step.tokens() ? set.classes() : 0;
  const bool quantities = !step.tokens() && set.classes() == 0;
  Evaluation out;
  out.accuracy = out.top3_accuracy = out.top5_accuracy = out.log_loss = kNan;
  std::optional<metrics::ClassMetrics> metrics;
  double total = 0, counted = 0;
  std::int64_t correct = 0, of_targets = 0;
  Batches batches(loader);
  data::Batch batch;
  step.set_views(set.views());
  for (std::int64_t k = 1; batches.next(batch); ++k) {
    if (!leave_out_absent(batch, set)) continue;
    const EvalOutcome outcome = step(batch);
    total += outcome.total;
    counted += outcome.counted;
    correct += outcome.correct;
    out.targets += outcome.targets;
    of_targets += batch.target.numel();
    out.items += batch.size;
    if (quantities && outcome.scores.numel() == batch.target.numel() && batch.target.rank() > 0) {
      if (!out.errors) out.errors.emplace();
      out.errors->add(outcome.scores, batch.target);
    }
    if (count > 0) add_classes(metrics, outcome, batch.target, count, step.ignored());
    if (progress) progress(k, loader.batches());
  }
  if (out.items == 0 && !set.broken().empty())
    throw FormatError(
        cat("no sample of ", set.describe(), " could be decoded, as ", set.broken().front()));
  out.ignored = of_targets - out.targets;
  out.broken = set.broken();
  out.notes = set.notes();
  out.loss = quotient(total, counted);
  if (metrics) take_classes(out, *metrics);
  if (step.tokens())
    out.accuracy = quotient(static_cast<double>(correct), static_cast<double>(out.targets));
  if (quantities) out.targets = of_targets;
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  out.items_per_s = static_cast<double>(out.items) / std::max(out.seconds, 1e-9);
  return out;
}

}  // namespace tenon::train
