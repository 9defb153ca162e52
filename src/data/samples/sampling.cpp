// Weighted sampling with integer arithmetic only, so results are equal on all machines.
//
// With replacement a draw is a binary search in the sums of the weights. Without replacement the
// weights are in a Fenwick tree, and a drawn sample's weight is subtracted from it. Both cost
// log(size) a draw.
#include "data/samples/sampling.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

#include <tenon/error.h>
#include <tenon/images.h>

#include "base/index.h"
#include "base/philox.h"
#include "base/str.h"
#include "data/samples/sample_pieces.h"

namespace tenon::data {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::uint64_t kSamplingKey =
    0x7765'6967'6874'6564;  // other numbers than those of the order

constexpr std::int64_t kMostDraws = std::int64_t{1} << 32;

// Random integers below a limit; the bias is below limit / 2^64.
class WeightDraws {
 public:
  WeightDraws(std::uint64_t seed, std::int64_t epoch)
      : seed_(seed ^ kSamplingKey), epoch_(static_cast<std::uint64_t>(epoch)) {}
  std::uint64_t below(std::uint64_t limit) {
    if (drawn_ % 2 == 0) block_ = philox(seed_, drawn_ / 2, epoch_);
    const std::size_t half = drawn_++ % 2 == 0 ? 0 : 2;
    const std::uint64_t word = std::uint64_t{block_.v[half]} << 32 | block_.v[half + 1];
    return static_cast<std::uint64_t>((static_cast<Wide>(word) * limit) >> 64);
  }

 private:
  std::uint64_t seed_, epoch_, drawn_ = 0;
  Philox4 block_{};
};

void check(const WeightedSampling& how, std::int64_t size) {
  if (std::ssize(how.weights) != size)
    throw ValueError(cat("Loader: there are ", how.weights.size(), " weights for ", size,
                         " samples: give one weight for each sample"));
  for (std::size_t k = 0; k < how.weights.size(); ++k)
    if (!std::isfinite(how.weights[k]) || how.weights[k] < 0)
      throw ValueError(
          cat("Loader: weights[", k, "] is ", how.weights[k], ", must be finite and not negative"));
  const auto some = std::count_if(how.weights.begin(), how.weights.end(),
                                  [](double weight) { return weight > 0; });
  if (some == 0) throw ValueError("Loader: all weights are 0, so no sample can be drawn");
  if (how.count < 0 || how.count > kMostDraws)
    throw ValueError(cat("Loader: the number of samples in an epoch is ", how.count,
                         ", must be from 1 to ", kMostDraws, ", or 0 for the size of the dataset"));
  const std::int64_t count = how.count == 0 ? size : how.count;
  if (!how.replacement && count > some)
    throw ValueError(cat("Loader: an epoch draws ", count, " samples without replacement, and ",
                         some, some == 1 ? " sample has" : " samples have",
                         " a weight above 0: draw fewer, or with replacement"));
}

// How often each sample was drawn before.
std::vector<std::uint8_t> repeats_of(const std::vector<std::int64_t>& numbers, std::size_t size) {
  std::vector<std::uint8_t> seen(size), out;
  out.reserve(numbers.size());
  for (const std::int64_t number : numbers) out.push_back(seen[at(number)]++);
  return out;
}

}  // namespace

bool WeightedSampling::any() const { return !weights.empty(); }

WeightedDraws::WeightedDraws(const WeightedSampling& how, std::int64_t size)
    : count_(how.count == 0 ? size : how.count), replacement_(how.replacement) {
  check(how, size);
  const double most = *std::max_element(how.weights.begin(), how.weights.end()),
               each = 0x1p62 / static_cast<double>(size);
  std::uint64_t sum = 0;
  sums_.reserve(how.weights.size());
  for (const double weight : how.weights) {
    // The smallest weight can still be drawn.
    if (weight > 0)
      sum += std::max<std::uint64_t>(1, static_cast<std::uint64_t>(weight / most * each));
    sums_.push_back(sum);
  }
}

EpochSamples WeightedDraws::of(std::uint64_t seed, std::int64_t epoch) const {
  if (!replacement_) return {without_replacement(seed, epoch), {}};
  EpochSamples out{with_replacement(seed, epoch), {}};
  out.repeats = repeats_of(out.numbers, sums_.size());
  return out;
}

std::vector<std::int64_t> WeightedDraws::with_replacement(std::uint64_t seed,
                                                          std::int64_t epoch) const {
  WeightDraws draws(seed, epoch);
  std::vector<std::int64_t> out(at(count_));
  for (std::int64_t& number : out)
    number =
        std::upper_bound(sums_.begin(), sums_.end(), draws.below(sums_.back())) - sums_.begin();
  return out;
}

std::vector<std::int64_t> WeightedDraws::without_replacement(std::uint64_t seed,
                                                             std::int64_t epoch) const {
  const std::size_t size = sums_.size();
  // tree[k] is the sum of the weights of the (k & -k) samples up to number k, counted from 1.
  std::vector<std::uint64_t> tree(size + 1);
  const auto sum_before = [&](std::size_t k) { return k == 0 ? std::uint64_t{0} : sums_[k - 1]; };
  for (std::size_t k = 1; k <= size; ++k) tree[k] = sums_[k - 1] - sum_before(k - (k & -k));
  std::size_t top = 1;
  while (2 * top <= size) top *= 2;
  WeightDraws draws(seed, epoch);
  std::uint64_t left = sums_.back();
  std::vector<std::int64_t> out(at(count_));
  for (std::int64_t& number : out) {
    std::uint64_t rest = draws.below(left);
    std::size_t found = 0;
    for (std::size_t step = top; step > 0; step /= 2)
      if (found + step <= size && tree[found + step] <= rest) rest -= tree[found += step];
    number = static_cast<std::int64_t>(found);
    const std::uint64_t weight = sums_[found] - sum_before(found);
    left -= weight;
    for (std::size_t k = found + 1; k <= size; k += k & -k) tree[k] -= weight;
  }
  return out;
}

std::vector<std::int64_t> labels_of(const Dataset& dataset, const char* who) {
  const DatasetInfo& info = dataset.info();
  if (info.classes < 1 || info.target_shape.rank() != 0 || info.target_dtype != DType::Int64)
    throw ValueError(cat(who, ": a target of ", dataset.describe(), " is ", info.target_dtype, " ",
                         info.target_shape, " with ", info.classes,
                         " classes, must be one class (int64 [])"));
  std::vector<std::int64_t> labels(at(dataset.size()));
  if (const auto images = dataset.images()) {
    for (std::size_t k = 0; k < labels.size(); ++k)
      labels[k] = images->label(static_cast<std::int64_t>(k));
  } else {
    for_each_piece(dataset, [&](std::string_view, std::string_view targets, const auto& numbers) {
      std::memcpy(&labels[at(numbers.front())], targets.data(), targets.size());
    });
  }
  for (std::size_t k = 0; k < labels.size(); ++k)
    if (labels[k] != kIgnoredTarget && (labels[k] < 0 || labels[k] >= info.classes))
      throw ValueError(cat(who, ": ", dataset.sample_name(static_cast<std::int64_t>(k)),
                           " has class ", labels[k], ", must be from 0 to ", info.classes - 1));
  return labels;
}

std::vector<double> class_balanced_weights(const Dataset& dataset) {
  const std::vector<std::int64_t> labels = labels_of(dataset, "class_balanced_weights");
  std::vector<std::int64_t> counts(at(dataset.classes()));
  for (const std::int64_t label : labels)
    if (label != kIgnoredTarget) ++counts[at(label)];
  std::vector<double> weights;
  weights.reserve(labels.size());
  for (const std::int64_t label : labels)
    weights.push_back(label == kIgnoredTarget ? 0.0 : 1.0 / static_cast<double>(counts[at(label)]));
  return weights;
}

}  // namespace tenon::data
