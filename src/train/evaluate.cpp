// Evaluation over a loader.
#include "train/evaluate.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

#include <tenon/error.h>

#include "base/str.h"
#include "train/batches.h"

namespace tenon::train {
namespace {

// The share of a batch's targets that its loss is a mean of.
double counted_share(const Tensor& target) {
  const std::vector<std::int64_t> numbers = target.to_vector<std::int64_t>();
  return static_cast<double>(counted(numbers)) / static_cast<double>(numbers.size());
}

}  // namespace

Evaluation evaluate(EvalStep& step, data::Loader& loader, bool classes,
                    const std::function<void(std::int64_t, std::int64_t)>& progress) {
  const auto start = std::chrono::steady_clock::now();
  loader.set_epoch(loader.state().epoch);
  const std::int64_t count = classes && !step.tokens() ? loader.dataset().classes() : 0;
  Evaluation out;
  out.confusion = metrics::ConfusionMatrix(static_cast<int>(std::max<std::int64_t>(count, 1)));
  metrics::RunningMean loss, top3, tokens;
  Batches batches(loader);
  data::Batch batch;
  step.set_views(loader.dataset().views());
  const bool filled_up = step.tokens() && is_filled_up(loader.dataset());
  const bool quantities = !step.tokens() && loader.dataset().classes() == 0;
  for (std::int64_t k = 1; batches.next(batch); ++k) {
    if (!leave_out_absent(batch, loader.dataset())) continue;
    const EvalOutcome outcome = step(batch);
    if (quantities && outcome.scores.numel() == batch.target.numel() && batch.target.rank() > 0) {
      if (!out.errors) out.errors.emplace();
      out.errors->add(outcome.scores, batch.target);
    }
    const auto weight = static_cast<double>(batch.size);
    // Each target that counts has one share, whatever batches the set is cut into.
    if (const double share = filled_up ? counted_share(batch.target) : 1; share > 0)
      loss.add(outcome.loss, weight * share);
    out.items += batch.size;
    if (step.tokens())
      tokens.add(
          static_cast<double>(outcome.correct) / (weight * loader.dataset().counted_targets()),
          weight);
    if (count > 0) {
      if (outcome.scores.rank() != 2 || outcome.scores.size(1) < count)
        throw ShapeError(cat("the network gives ", outcome.scores.shape(), " where the data has ",
                             count, " classes: choose a model with as many outputs"));
      if (outcome.scores.size(1) > out.confusion.classes())
        out.confusion = metrics::ConfusionMatrix(static_cast<int>(outcome.scores.size(1)));
      out.confusion.add(outcome.scores, batch.target);
      top3.add(metrics::top_k_accuracy(outcome.scores, batch.target, 3), weight);
    }
    if (progress) progress(k, loader.batches());
  }
  if (out.items == 0 && !loader.dataset().broken().empty())
    throw FormatError(cat("none of ", loader.dataset().describe(), " could be decoded, as ",
                          loader.dataset().broken().front()));
  out.loss = loss.value();
  out.accuracy = step.tokens() ? tokens.value() : count > 0 ? out.confusion.accuracy() : 0;
  out.top3_accuracy = top3.value();
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  out.items_per_s = static_cast<double>(out.items) / std::max(out.seconds, 1e-9);
  return out;
}

}  // namespace tenon::train
