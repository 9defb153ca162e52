// The facts of a concatenation; DerivedDataset finds the samples.
#include "data/samples/joined_dataset.h"

#include <algorithm>

#include <tenon/error.h>

#include "base/str.h"
#include "data/samples/derived_dataset.h"

namespace tenon::data {
namespace {

void require_alike(const Dataset& set, const Dataset& first) {
  const DatasetInfo &a = set.info(), &b = first.info();
  if (a.input_shape == b.input_shape && a.input_dtype == b.input_dtype &&
      a.target_shape == b.target_shape && a.target_dtype == b.target_dtype)
    return;
  const auto text = [](const DatasetInfo& info) {
    return cat(info.input_dtype, " ", info.input_shape, " with targets ", info.target_dtype, " ",
               info.target_shape);
  };
  throw ShapeError(cat(set.describe(), ": samples are ", text(a), ", those of ", first.describe(),
                       " are ", text(b), ": give datasets of equal samples"));
}

DatasetInfo joined_info(const std::vector<std::shared_ptr<const Dataset>>& sets) {
  DatasetInfo out = sets.front()->info();
  out.description.clear();
  double counted = 0, samples = 0;
  for (const auto& set : sets) {
    if (set->classes() > out.classes)
      out.classes = set->classes(), out.class_names = set->info().class_names;
    if (set->info().counted_targets) out.counted_targets = 0;
    counted += set->counted_targets() * static_cast<double>(set->size());
    samples += static_cast<double>(set->size());
    out.description += cat(out.description.empty() ? "" : "; ", set->describe());
    out.in_memory = out.in_memory && set->info().in_memory;
  }
  if (out.counted_targets) out.counted_targets = counted / samples;
  return out;
}

}  // namespace

std::shared_ptr<Dataset> joined_dataset(std::vector<std::shared_ptr<const Dataset>> sets) {
  std::vector<std::int64_t> sizes;
  for (const auto& set : sets) {
    require_alike(*set, *sets.front());
    sizes.push_back(set->size());
  }
  DatasetInfo info = joined_info(sets);
  return std::make_shared<DerivedDataset>(std::move(info), std::move(sets),
                                          SampleMap::of_sizes(sizes));
}

std::shared_ptr<Dataset> joined_parts(std::vector<std::shared_ptr<Dataset>> sets) {
  std::erase(sets, nullptr);
  if (sets.empty()) throw ValueError("joined_parts: there are no sets");
  if (sets.size() == 1) return sets.front();
  return joined_dataset({sets.begin(), sets.end()});
}

}  // namespace tenon::data
