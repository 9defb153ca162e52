// A sample's source is found by the first index of each source; each source is asked for ranges of
// its own indices.
#include "data/samples/derived_dataset.h"

#include <algorithm>
#include <utility>

#include <tenon/error.h>
#include <tenon/images.h>

#include "base/index.h"
#include "base/str.h"
#include "data/samples/sample_pieces.h"

namespace tenon::data {
namespace {

// Image files of several sources, or some files of one.
class DerivedImageFiles final : public ImageFiles {
 public:
  DerivedImageFiles(std::vector<std::shared_ptr<const ImageFiles>> sources,
                    std::shared_ptr<const SampleMap> map, const Dataset& set)
      : sources_(std::move(sources)),
        map_(std::move(map)),
        class_names_(set.class_names()),
        description_(set.describe()) {}
  std::int64_t size() const override { return map_->size(); }
  std::string bytes(std::int64_t number) const override {
    const auto [set, index] = (*map_)(number);
    return sources_[set]->bytes(index);
  }
  std::uint64_t checksum(std::int64_t number) const override {
    const auto [set, index] = (*map_)(number);
    return sources_[set]->checksum(index);
  }
  std::uint64_t stored_size(std::int64_t number) const override {
    const auto [set, index] = (*map_)(number);
    return sources_[set]->stored_size(index);
  }
  std::int64_t label(std::int64_t number) const override {
    const auto [set, index] = (*map_)(number);
    return sources_[set]->label(index);
  }
  std::string name(std::int64_t number) const override {
    const auto [set, index] = (*map_)(number);
    return sources_[set]->name(index);
  }
  std::vector<std::string> class_names() const override { return class_names_; }
  std::string describe() const override { return description_; }
  Notes notes() const override {
    Notes all;
    for (const auto& source : sources_) {
      const Notes notes = source->notes();
      all.insert(all.end(), notes.begin(), notes.end());
    }
    return all;
  }

 private:
  std::vector<std::shared_ptr<const ImageFiles>> sources_;
  std::shared_ptr<const SampleMap> map_;
  std::vector<std::string> class_names_;
  std::string description_;
};

// Each source has its own random numbers; the first uses the caller's seed.
std::uint64_t seed_of(std::uint64_t seed, std::size_t set) {
  constexpr std::uint64_t kApart = 0x9e3779b97f4a7c15;
  return seed ^ set * kApart;
}

}  // namespace

std::shared_ptr<const SampleMap> SampleMap::of_sizes(const std::vector<std::int64_t>& sizes) {
  auto map = std::make_shared<SampleMap>();
  for (const std::int64_t size : sizes) map->begins_.push_back(map->begins_.back() + size);
  return map;
}

std::shared_ptr<const SampleMap> SampleMap::of_indices(std::vector<std::int64_t> indices) {
  auto map = std::make_shared<SampleMap>();
  map->begins_.push_back(std::ssize(indices));
  map->indices_ = std::move(indices);
  return map;
}

SampleMap::Place SampleMap::operator()(std::int64_t index) const {
  if (!indices_.empty()) return {0, indices_[at(index)]};
  const auto next = std::upper_bound(begins_.begin(), begins_.end(), index);
  const auto set = at(next - begins_.begin()) - 1;
  return {set, index - begins_[set]};
}

DerivedDataset::DerivedDataset(DatasetInfo info,
                               std::vector<std::shared_ptr<const Dataset>> sources,
                               std::shared_ptr<const SampleMap> map)
    : Dataset(std::move(info)), sources_(std::move(sources)), map_(std::move(map)) {
  for (const auto& set : sources_) stand_ins_.push_back(set->as<StandIns>());
  if (!map_) {
    images_ = source().images();
    return;
  }
  std::vector<std::shared_ptr<const ImageFiles>> files;
  for (const auto& set : sources_)
    if (auto images = set->images()) files.push_back(std::move(images));
  picks_images_ = map_->chooses() && may_have_broken();
  if (files.size() == sources_.size())
    images_ = std::make_shared<DerivedImageFiles>(std::move(files), map_, *this);
}

template <class T>
std::vector<const T*> DerivedDataset::of_sources() const {
  std::vector<const T*> out;
  for (const auto& set : sources_) {
    out.push_back(set->as<T>());
    if (out.back() == nullptr) return {};
  }
  return out;
}

bool DerivedDataset::may_have_broken() const {
  return std::any_of(stand_ins_.begin(), stand_ins_.end(),
                     [](const StandIns* of_set) { return of_set != nullptr; });
}

bool DerivedDataset::replaces_broken() const {
  return std::any_of(stand_ins_.begin(), stand_ins_.end(), [](const StandIns* of_set) {
    return of_set != nullptr && of_set->replaces_broken();
  });
}

bool DerivedDataset::is_broken(std::int64_t index) const {
  const auto [set, own] = place(index);
  return stand_ins_[set] != nullptr && stand_ins_[set]->is_broken(own);
}

bool DerivedDataset::note_if_broken(std::int64_t index) const {
  if (!is_broken(index)) return false;
  std::string name = sample_name(index);
  const std::lock_guard lock(mutex_);
  broken_.insert(std::move(name));
  return true;
}

template <class Read>
void DerivedDataset::replace_if_broken(std::int64_t index, const Read& read) const {
  constexpr std::int64_t kMostInARow = 1000;
  for (std::int64_t tries = 1; note_if_broken((index + tries - 1) % size()); ++tries) {
    if (!replaces_broken()) return;
    if (tries >= std::min(size(), kMostInARow))
      throw FormatError(cat(describe(), ": ", tries, tries == 1 ? " image" : " images",
                            " in a row cannot be decoded, the first is ", sample_name(index)));
    read((index + tries) % size());
  }
}

bool DerivedDataset::augments() const {
  return std::any_of(sources_.begin(), sources_.end(),
                     [](const auto& set) { return set->is_augmented(); });
}

void DerivedDataset::capabilities(Capabilities& offered) const {
  offered.add<Provenance>(this);
  if (offered.wants<AugmentedSamples>() && augments()) offered.add<AugmentedSamples>(this);
  if (offered.wants<StandIns>() && may_have_broken()) offered.add<StandIns>(this);
  if (changes_samples()) return;
  if (images_) offered.add<ImageSamples>(this);
  if (offered.wants<GeneratedSamples>() && !of_sources<GeneratedSamples>().empty())
    offered.add<GeneratedSamples>(this);
  if (offered.wants<ImageJobs>() && !of_sources<ImageJobs>().empty()) offered.add<ImageJobs>(this);
}

void DerivedDataset::get(std::span<const std::int64_t> indices, void* inputs, void* targets) const {
  write(indices, {}, inputs, targets);
}

void DerivedDataset::get_augmented(std::span<const std::int64_t> indices, std::uint64_t seed,
                                   std::int64_t epoch, void* inputs, void* targets) const {
  write(indices, {true, seed, epoch}, inputs, targets);
}

// A source may replace a broken image by an image of another part, so a subset replaces broken
// images itself.
void DerivedDataset::read(std::span<const std::int64_t> indices, const Version& version,
                          void* inputs, void* targets) const {
  read_sources(indices, version, inputs, targets);
  if (!picks_images_) return;
  const std::size_t of_input = input_bytes(source().info()),
                    of_target = target_bytes(source().info());
  auto *input = static_cast<char*>(inputs), *target = static_cast<char*>(targets);
  for (const std::int64_t index : indices) {
    replace_if_broken(index, [&](std::int64_t other) {
      read_sources(std::span(&other, 1), version, input, target);
    });
    input += of_input, target += of_target;
  }
}

void DerivedDataset::read_sources(std::span<const std::int64_t> indices, const Version& version,
                                  void* inputs, void* targets) const {
  const auto from_source = [&](std::size_t set, std::span<const std::int64_t> own, char* input,
                               char* target) {
    if (version.augmented)
      sources_[set]->get_augmented(own, seed_of(version.seed, set), version.epoch, input, target);
    else
      sources_[set]->get(own, input, target);
  };
  auto *input = static_cast<char*>(inputs), *target = static_cast<char*>(targets);
  if (!map_) return from_source(0, indices, input, target);
  const std::size_t of_input = input_bytes(source().info()),
                    of_target = target_bytes(source().info());
  std::vector<std::int64_t> own;
  own.reserve(indices.size());
  for (std::size_t from = 0; from < indices.size(); from += own.size()) {
    const std::size_t set = place(indices[from]).set;
    own.clear();
    for (std::size_t k = from; k < indices.size(); ++k) {
      const SampleMap::Place found = place(indices[k]);
      if (found.set != set) break;
      own.push_back(found.index);
    }
    from_source(set, own, input + from * of_input, target + from * of_target);
  }
}

std::string DerivedDataset::sample_name(std::int64_t index) const {
  const auto [set, own] = place(index);
  return sources_[set]->sample_name(own);
}

Notes DerivedDataset::notes() const {
  Notes all;
  for (std::size_t k = 0; k < sources_.size(); ++k) {
    const auto before = sources_.begin() + static_cast<std::ptrdiff_t>(k);
    if (std::find(sources_.begin(), before, sources_[k]) != before) continue;
    const Notes notes = sources_[k]->notes();
    all.insert(all.end(), notes.begin(), notes.end());
  }
  return all;
}

std::vector<std::string> DerivedDataset::broken() const {
  if (picks_images_) {
    const std::lock_guard lock(mutex_);
    return {broken_.begin(), broken_.end()};
  }
  std::vector<std::string> all;
  for (const auto& set : sources_) {
    const std::vector<std::string> broken = set->broken();
    all.insert(all.end(), broken.begin(), broken.end());
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

bool DerivedDataset::any_broken() const {
  if (picks_images_) {
    const std::lock_guard lock(mutex_);
    return !broken_.empty();
  }
  return std::any_of(sources_.begin(), sources_.end(),
                     [](const auto& set) { return set->any_broken(); });
}

bool DerivedDataset::all_generated() const {
  return std::all_of(sources_.begin(), sources_.end(),
                     [](const auto& set) { return set->in_memory(); });
}

bool DerivedDataset::for_device() const {
  const std::vector<const ImageJobs*> jobs = of_sources<ImageJobs>();
  return !jobs.empty() && std::all_of(jobs.begin(), jobs.end(), [&](const ImageJobs* of_set) {
    return of_set->for_device() && of_set->device_decodes() == jobs[0]->device_decodes();
  });
}

bool DerivedDataset::device_decodes() const {
  const auto* jobs = source().as<ImageJobs>();
  return jobs != nullptr && jobs->device_decodes();
}

ImageJob DerivedDataset::job(std::int64_t index, std::uint64_t seed, std::int64_t epoch,
                             bool decoded, std::int64_t& label) const {
  ImageJob out;
  const auto read = [&](std::int64_t of) {
    const auto [set, own] = place(of);
    out = sources_[set]->as<ImageJobs>()->job(own, seed_of(seed, set), epoch, decoded, label);
  };
  read(index);
  if (picks_images_) replace_if_broken(index, read);
  return out;
}

}  // namespace tenon::data
