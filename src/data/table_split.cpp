// Rows are shuffled by the seed. A share or a fold is then taken evenly along the shuffled list; to
// keep the shares of classes, the list goes class by class.
#include "data/table_split.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <tenon/error.h>

#include "base/str.h"
#include "data/order.h"

namespace tenon::data {
namespace {

void check_split(const SplitOptions& o, const RowMarks& marks, const std::string& name) {
  if (o.folds != 0 && (o.folds < 2 || o.fold < 1 || o.fold > o.folds))
    throw ValueError(cat(name, ": fold ", o.fold, " of ", o.folds,
                         ": there are 2 folds or more, numbered from 1"));
  if (o.folds != 0 && o.test != 0)
    throw ValueError(cat(name, ": a fold is the test part: give no share beside it"));
  if (o.test != 0 && !(o.test > 0 && o.test < 1))
    throw ValueError(cat(name, ": the test part's share is ", o.test, ", must be between 0 and 1"));
  if (o.stratify && marks.classes.empty())
    throw ValueError(cat(name, ": only classes can be kept in proportion, and it has none"));
  if (o.stratify && !o.group.empty())
    throw ValueError(cat(name, ": groups stay whole or classes keep their shares: choose one"));
}

// Whether the k-th of a list falls to the test part.
bool falls(const SplitOptions& o, std::int64_t k) {
  if (o.folds != 0) return k % o.folds == o.fold - 1;
  const auto at = static_cast<double>(k);
  return std::floor((at + 1) * o.test + 0.5) > std::floor(at * o.test + 0.5);
}

// The largest groups first, each to the fold that has the fewest rows; of a share, groups in their
// shuffled order until it is reached.
std::vector<bool> test_groups(const SplitOptions& o, std::int64_t rows,
                              const std::vector<std::int64_t>& sizes) {
  const auto count = std::ssize(sizes);
  std::vector<std::int64_t> order = epoch_order(o.seed, 0, count);
  std::vector<bool> out(sizes.size());
  if (o.folds == 0) {
    const double wanted = o.test * static_cast<double>(rows);
    std::int64_t taken = 0;
    for (std::int64_t k = 0; k + 1 < count && static_cast<double>(taken) < wanted; ++k) {
      const auto group = static_cast<std::size_t>(order[static_cast<std::size_t>(k)]);
      out[group] = true;
      taken += sizes[group];
    }
    return out;
  }
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return sizes[static_cast<std::size_t>(a)] > sizes[static_cast<std::size_t>(b)];
  });
  std::vector<std::int64_t> full(static_cast<std::size_t>(o.folds));
  for (const std::int64_t group : order) {
    const auto least = std::min_element(full.begin(), full.end());
    *least += sizes[static_cast<std::size_t>(group)];
    out[static_cast<std::size_t>(group)] = least - full.begin() == o.fold - 1;
  }
  return out;
}

}  // namespace

std::vector<bool> test_rows(const SplitOptions& given, std::int64_t rows, const RowMarks& marks,
                            const std::string& name) {
  check_split(given, marks, name);
  SplitOptions o = given;
  std::vector<bool> test(static_cast<std::size_t>(rows));
  const bool drawn = o.test != 0 || o.folds != 0 || o.stratify || !o.group.empty();
  if (!drawn) {
    for (std::size_t i = 9; i < test.size(); i += 10) test[i] = true;
    return test;
  }
  if (o.test == 0 && o.folds == 0) o.test = 0.1;
  if (!o.group.empty()) {
    const auto groups = *std::max_element(marks.groups.begin(), marks.groups.end()) + 1;
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(groups));
    for (const std::int64_t group : marks.groups) ++sizes[static_cast<std::size_t>(group)];
    const std::vector<bool> chosen = test_groups(o, rows, sizes);
    for (std::size_t i = 0; i < test.size(); ++i)
      test[i] = chosen[static_cast<std::size_t>(marks.groups[i])];
  } else {
    std::vector<std::int64_t> order = epoch_order(o.seed, 0, rows);
    if (o.stratify)
      std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
        return marks.classes[static_cast<std::size_t>(a)] <
               marks.classes[static_cast<std::size_t>(b)];
      });
    for (std::int64_t k = 0; k < rows; ++k)
      test[static_cast<std::size_t>(order[static_cast<std::size_t>(k)])] = falls(o, k);
  }
  const auto held_out = std::count(test.begin(), test.end(), true);
  if (held_out == 0 || held_out == rows)
    throw ValueError(cat(name, ": of ", rows, " rows, ", held_out,
                         " are for testing: choose another share or number of folds"));
  return test;
}

}  // namespace tenon::data
