// The functions of every dataset: its facts, and its capabilities with their defaults.
#include <utility>

#include <tenon/data.h>
#include <tenon/images.h>

#include "base/str.h"

namespace tenon::data {

Provenance::~Provenance() = default;
std::string Provenance::sample_name(std::int64_t index) const { return cat("sample ", index + 1); }
Notes Provenance::notes() const { return {}; }
std::vector<std::string> Provenance::broken() const { return {}; }
bool Provenance::any_broken() const { return !broken().empty(); }

AugmentedSamples::~AugmentedSamples() = default;
ImageSamples::~ImageSamples() = default;
GeneratedSamples::~GeneratedSamples() = default;

Dataset::Dataset(DatasetInfo info) : info_(std::move(info)) {}
Dataset::~Dataset() = default;
void Dataset::capabilities(Capabilities& /*offered*/) const {}
void Dataset::set_info(DatasetInfo info) { info_ = std::move(info); }

std::vector<std::string> Dataset::class_names() const {
  if (!info_.class_names.empty()) return info_.class_names;
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < classes(); ++i) names.push_back(std::to_string(i));
  return names;
}

double Dataset::counted_targets() const {
  return info_.counted_targets.value_or(static_cast<double>(info_.target_shape.numel()));
}

std::string Dataset::describe() const {
  if (!info_.description.empty()) return info_.description;
  const std::int64_t samples = size();
  return cat(samples, samples == 1 ? " sample" : " samples");
}

// Augmented samples are read again in each epoch, even if the dataset is in memory.
bool Dataset::in_memory() const {
  if (is_augmented()) return false;
  if (info_.in_memory) return true;
  const auto* generated = as<GeneratedSamples>();
  return generated != nullptr && generated->all_generated();
}

bool Dataset::made_on_demand() const {
  return as<GeneratedSamples>() != nullptr && !is_augmented();
}

std::string Dataset::sample_name(std::int64_t index) const {
  const auto* known = as<Provenance>();
  return known != nullptr ? known->sample_name(index) : cat("sample ", index + 1);
}

Notes Dataset::notes() const {
  const auto* known = as<Provenance>();
  return known != nullptr ? known->notes() : Notes();
}

std::vector<std::string> Dataset::broken() const {
  const auto* known = as<Provenance>();
  return known != nullptr ? known->broken() : std::vector<std::string>();
}

bool Dataset::any_broken() const {
  const auto* known = as<Provenance>();
  return known != nullptr && known->any_broken();
}

std::shared_ptr<const ImageFiles> Dataset::images() const {
  const auto* files = as<ImageSamples>();
  return files != nullptr ? files->images() : nullptr;
}

bool Dataset::is_augmented() const { return as<AugmentedSamples>() != nullptr; }

void Dataset::get_augmented(std::span<const std::int64_t> indices, std::uint64_t seed,
                            std::int64_t epoch, void* inputs, void* targets) const {
  if (const auto* augmented = as<AugmentedSamples>())
    augmented->get_augmented(indices, seed, epoch, inputs, targets);
  else
    get(indices, inputs, targets);
}

}  // namespace tenon::data
