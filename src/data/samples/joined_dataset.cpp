// A sample is found by the first index of its set; sets get ranges of their own indices.
#include "data/samples/joined_dataset.h"

#include <algorithm>
#include <numeric>

#include <tenon/error.h>

#include "base/index.h"
#include "base/str.h"

namespace tenon::data {
namespace {

class JoinedDataset final : public Dataset {
 public:
  explicit JoinedDataset(std::vector<std::shared_ptr<Dataset>> sets) : sets_(std::move(sets)) {
    for (const auto& set : sets_) {
      if (set->input_shape() != first().input_shape() ||
          set->input_dtype() != first().input_dtype() ||
          set->target_shape() != first().target_shape() ||
          set->target_dtype() != first().target_dtype())
        throw ShapeError(cat(set->describe(), ": samples are ", set->input_dtype(), " ",
                             set->input_shape(), ", those of ", first().describe(), " are ",
                             first().input_dtype(), " ", first().input_shape()));
      begins_.push_back(begins_.back() + set->size());
    }
  }
  std::int64_t size() const override { return begins_.back(); }
  Shape input_shape() const override { return first().input_shape(); }
  DType input_dtype() const override { return first().input_dtype(); }
  std::int64_t views() const override { return first().views(); }
  Shape target_shape() const override { return first().target_shape(); }
  DType target_dtype() const override { return first().target_dtype(); }
  std::int64_t classes() const override {
    std::int64_t most = 0;
    for (const auto& set : sets_) most = std::max(most, set->classes());
    return most;
  }
  std::vector<std::string> class_names() const override {
    const auto most =
        std::max_element(sets_.begin(), sets_.end(),
                         [](const auto& a, const auto& b) { return a->classes() < b->classes(); });
    return (*most)->class_names();
  }
  std::string text_unit() const override { return first().text_unit(); }
  double counted_targets() const override {
    double counted = 0;
    for (const auto& set : sets_)
      counted += set->counted_targets() * static_cast<double>(set->size());
    return counted / static_cast<double>(size());
  }
  std::shared_ptr<const TableColumns> table() const override { return first().table(); }
  std::string describe() const override {
    std::string text;
    for (const auto& set : sets_) text += cat(text.empty() ? "" : "; ", set->describe());
    return text;
  }
  std::string sample_name(std::int64_t index) const override {
    const std::size_t set = set_of(index);
    return sets_[set]->sample_name(index - begins_[set]);
  }
  Notes notes() const override {
    Notes all;
    for (const auto& set : sets_) {
      const Notes of_set = set->notes();
      all.insert(all.end(), of_set.begin(), of_set.end());
    }
    return all;
  }
  bool in_memory() const override {
    return std::all_of(sets_.begin(), sets_.end(),
                       [](const auto& set) { return set->in_memory(); });
  }
  bool made_on_demand() const override { return first().made_on_demand(); }
  void get(std::span<const std::int64_t> indices, void* inputs, void* targets) const override {
    auto *input = static_cast<char*>(inputs), *target = static_cast<char*>(targets);
    const std::size_t input_bytes = at(input_shape().numel()) * item_size(input_dtype()),
                      target_bytes = at(target_shape().numel()) * item_size(target_dtype());
    std::vector<std::int64_t> own;
    for (std::size_t from = 0; from < indices.size(); from += own.size()) {
      const std::size_t set = set_of(indices[from]);
      own.clear();
      for (std::size_t k = from; k < indices.size() && set_of(indices[k]) == set; ++k)
        own.push_back(indices[k] - begins_[set]);
      sets_[set]->get(own, input + from * input_bytes, target + from * target_bytes);
    }
  }

 private:
  const Dataset& first() const { return *sets_.front(); }
  std::size_t set_of(std::int64_t index) const {
    return at(std::upper_bound(begins_.begin(), begins_.end(), index) - begins_.begin()) - 1;
  }
  std::vector<std::shared_ptr<Dataset>> sets_;
  std::vector<std::int64_t> begins_{0};  // of each set, and where the last one ends
};

}  // namespace

std::shared_ptr<Dataset> joined_dataset(std::vector<std::shared_ptr<Dataset>> sets) {
  std::erase(sets, nullptr);
  if (sets.empty()) throw ValueError("joined_dataset: there are no sets");
  if (sets.size() == 1) return sets.front();
  return std::make_shared<JoinedDataset>(std::move(sets));
}

}  // namespace tenon::data
