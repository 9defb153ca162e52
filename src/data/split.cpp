// Samples are shuffled by the seed. The test part is taken first, then the validation part from
// what is left.
//
// To keep the shares of classes the shuffled list is ordered by class and each part is taken evenly
// along it, as scikit-learn's StratifiedShuffleSplit and StratifiedKFold do in effect: every class
// has its share of every part within one sample.
#include "data/split.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <tenon/error.h>

#include "base/str.h"
#include "data/order.h"

namespace tenon::data {
namespace {

using Parts = std::vector<std::optional<Split>>;
using Indices = std::vector<std::int64_t>;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

void check(const SplitOptions& o, const SampleMarks& marks, const std::string& name) {
  const auto share = [&](double value, const char* what) {
    if (!(value >= 0 && value < 1))
      throw ValueError(cat(name, ": the ", what, " part's share is ", value,
                           ", must be at least 0 and less than 1"));
  };
  if (o.folds != 0 && (o.folds < 2 || o.fold < 1 || o.fold > o.folds))
    throw ValueError(cat(name, ": fold ", o.fold, " of ", o.folds,
                         ": there are 2 folds or more, numbered from 1"));
  share(o.test, "test");
  share(o.validation, "validation");
  const bool stratify = o.stratify.value_or(false);
  if (stratify && marks.classes.empty())
    throw ValueError(cat(name, ": 'stratify' keeps the shares of classes, and it has none"));
  if (stratify && !o.group.empty())
    throw ValueError(cat(
        name, ": groups stay whole or classes keep their shares: choose 'group' or 'stratify'"));
  if (o.chronological && (stratify || !o.group.empty()))
    throw ValueError(cat(name,
                         ": a chronological division keeps the order of the samples: leave out '",
                         stratify ? "stratify" : "group", "'"));
}

// Number of samples of a share of `count`, at least one where any can be spared.
std::int64_t quota(double share, std::int64_t count) {
  if (share <= 0 || count < 2) return 0;
  const auto rounded = static_cast<std::int64_t>(std::llround(share * static_cast<double>(count)));
  return std::clamp<std::int64_t>(rounded, 1, count - 1);
}

// Chooses quota(share, list) of `list`, which is ordered by class where classes keep their shares:
// of each class in proportion, and never all.
Indices take_share(const Indices& list, double share, const std::vector<std::int64_t>* classes) {
  const std::int64_t wanted = quota(share, std::ssize(list));
  Indices taken;
  if (wanted == 0) return taken;
  if (classes == nullptr) return Indices(list.begin(), list.begin() + wanted);
  const double rate = static_cast<double>(wanted) / static_cast<double>(list.size());
  double along = 0;  // what the classes so far should have given
  for (std::size_t from = 0; from < list.size();) {
    std::size_t to = from;
    while (to < list.size() && (*classes)[at(list[to])] == (*classes)[at(list[from])]) ++to;
    along += rate * static_cast<double>(to - from);
    const std::int64_t due = std::llround(along) - std::ssize(taken);
    const std::int64_t spared = static_cast<std::int64_t>(to - from) - 1;
    for (std::int64_t k = 0; k < std::min(due, spared); ++k) taken.push_back(list[from + at(k)]);
    from = to;
  }
  // A class of one sample for each: nothing can be spared in proportion, and the part must not be
  // empty.
  if (taken.empty()) taken.push_back(list.back());
  return taken;
}

// Whole groups in their shuffled order until the share is reached; one group at least stays.
std::vector<bool> take_groups(const Indices& group_order, const std::vector<std::int64_t>& sizes,
                              const std::vector<bool>& gone, double share) {
  std::vector<bool> taken(sizes.size());
  std::int64_t left = 0, groups = 0, have = 0;
  for (std::size_t g = 0; g < sizes.size(); ++g)
    if (!gone[g]) left += sizes[g], ++groups;
  const double wanted = share * static_cast<double>(left);
  for (const std::int64_t g : group_order) {
    if (gone[at(g)] || groups < 2 || static_cast<double>(have) >= wanted) continue;
    taken[at(g)] = true;
    have += sizes[at(g)];
    --groups;
  }
  return taken;
}

// The largest groups first, each to the fold with the fewest samples, as scikit-learn's GroupKFold
// does.
std::vector<bool> group_fold(const SplitOptions& o, Indices order,
                             const std::vector<std::int64_t>& sizes) {
  std::vector<bool> out(sizes.size());
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return sizes[at(a)] > sizes[at(b)]; });
  std::vector<std::int64_t> full(at(o.folds));
  for (const std::int64_t group : order) {
    const auto least = std::min_element(full.begin(), full.end());
    *least += sizes[at(group)];
    out[at(group)] = least - full.begin() == o.fold - 1;
  }
  return out;
}

Parts divide_groups(const SplitOptions& o, std::int64_t samples, const SampleMarks& marks) {
  const std::int64_t groups =
      samples == 0 ? 0 : *std::max_element(marks.groups.begin(), marks.groups.end()) + 1;
  std::vector<std::int64_t> sizes(at(groups));
  for (const std::int64_t group : marks.groups) ++sizes[at(group)];
  const Indices order = epoch_order(o.seed, 0, groups);
  const std::vector<bool> none(sizes.size());
  const std::vector<bool> test =
      o.folds != 0 ? group_fold(o, order, sizes) : take_groups(order, sizes, none, o.test);
  const std::vector<bool> validation = take_groups(order, sizes, test, o.validation);
  Parts out(at(samples), Split::Train);
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (test[at(marks.groups[i])]) out[i] = Split::Test;
    if (validation[at(marks.groups[i])]) out[i] = Split::Validation;
  }
  return out;
}

// Fold i of k is the i-th of the last k of k + 1 blocks, trained on all that comes before, as
// scikit-learn's TimeSeriesSplit.
Parts divide_in_time(const SplitOptions& o, std::int64_t samples) {
  std::int64_t from = samples - quota(o.test, samples), to = samples;
  if (o.folds != 0) {
    const std::int64_t block = samples / (o.folds + 1);
    from = samples - (o.folds + 1 - o.fold) * block;
    to = from + block;
  }
  const std::int64_t validation = from >= 3 || o.folds == 0 ? quota(o.validation, from) : 0;
  Parts out(at(samples));
  for (std::int64_t i = 0; i < to; ++i)
    out[at(i)] = i >= from                ? Split::Test
                 : i >= from - validation ? Split::Validation
                                          : Split::Train;
  return out;
}

Parts divide_shuffled(const SplitOptions& o, std::int64_t samples, const SampleMarks& marks) {
  const bool stratify = o.stratify.value_or(!marks.classes.empty());
  const std::vector<std::int64_t>* classes = stratify ? &marks.classes : nullptr;
  Indices list = epoch_order(o.seed, 0, samples);
  if (stratify)
    std::stable_sort(list.begin(), list.end(), [&](std::int64_t a, std::int64_t b) {
      return marks.classes[at(a)] < marks.classes[at(b)];
    });
  Parts out(at(samples), Split::Train);
  if (o.folds != 0) {
    for (std::size_t k = 0; k < list.size(); ++k)
      if (static_cast<int>(k % at(o.folds)) == o.fold - 1) out[at(list[k])] = Split::Test;
  } else {
    for (const std::int64_t i : take_share(list, o.test, classes)) out[at(i)] = Split::Test;
  }
  std::erase_if(list, [&](std::int64_t i) { return out[at(i)] == Split::Test; });
  if (list.size() < 3 && samples >= 3) return out;
  for (const std::int64_t i : take_share(list, o.validation, classes))
    out[at(i)] = Split::Validation;
  return out;
}

}  // namespace

const char* name(Split split) {
  switch (split) {
    case Split::Train:
      return "training";
    case Split::Validation:
      return "validation";
    case Split::Test:
      return "test";
    case Split::All:
      return "all";
  }
  return "all";
}

Parts divide(const SplitOptions& options, std::int64_t samples, const SampleMarks& marks,
             const std::string& name) {
  check(options, marks, name);
  Parts out = !options.group.empty()  ? divide_groups(options, samples, marks)
              : options.chronological ? divide_in_time(options, samples)
                                      : divide_shuffled(options, samples, marks);
  const auto count = [&](Split part) { return std::count(out.begin(), out.end(), part); };
  const bool tests = options.folds != 0 || options.test > 0;
  if (count(Split::Train) == 0 || (tests && count(Split::Test) == 0))
    throw ValueError(cat(name, ": of ", samples, " samples, ", count(Split::Train),
                         " are left for training and ", count(Split::Test),
                         " for testing: choose other shares or another number of folds"));
  return out;
}

std::vector<std::int64_t> samples_of(const Parts& parts, Split part) {
  Indices out;
  for (std::int64_t i = 0; i < std::ssize(parts); ++i)
    if (part == Split::All || parts[at(i)] == part) out.push_back(i);
  return out;
}

}  // namespace tenon::data
