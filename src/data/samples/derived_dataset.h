// Base of datasets that are built from others: concatenations, subsets and changed samples.
//
// One place finds a sample in its source and carries all capabilities through, so that no
// composition loses a name, a note, a broken image or augmentation. A subclass that changes samples
// overrides write() and changes_samples().
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <tenon/data.h>

#include "data/samples/image_jobs.h"
#include "data/samples/stand_ins.h"

namespace tenon::data {

/// Where the samples of a derived dataset come from: one source after another, or some samples of
/// one source.
class SampleMap {
 public:
  struct Place {
    std::size_t set;
    std::int64_t index;
  };
  /// Sources of these sizes, one after another.
  static std::shared_ptr<const SampleMap> of_sizes(const std::vector<std::int64_t>& sizes);
  /// These samples of one source.
  static std::shared_ptr<const SampleMap> of_indices(std::vector<std::int64_t> indices);
  std::int64_t size() const { return begins_.back(); }
  /// Whether these are some samples of one source.
  bool chooses() const { return !indices_.empty(); }
  Place operator()(std::int64_t index) const;

 private:
  std::vector<std::int64_t> begins_{0};  // of each source, and where the last one ends
  std::vector<std::int64_t> indices_;    // or the samples of the only source
};

class DerivedDataset : public Dataset,
                       public Provenance,
                       public AugmentedSamples,
                       public ImageSamples,
                       public GeneratedSamples,
                       public ImageJobs,
                       public StandIns {
 public:
  /// At least one source, none null. Without a map, sample k is sample k of the first source.
  DerivedDataset(DatasetInfo info, std::vector<std::shared_ptr<const Dataset>> sources,
                 std::shared_ptr<const SampleMap> map = nullptr);

  std::int64_t size() const final { return map_ ? map_->size() : source().size(); }
  void get(std::span<const std::int64_t> indices, void* inputs, void* targets) const final;

  std::string sample_name(std::int64_t index) const final;
  Notes notes() const override;
  std::vector<std::string> broken() const final;
  bool any_broken() const final;
  void get_augmented(std::span<const std::int64_t> indices, std::uint64_t seed, std::int64_t epoch,
                     void* inputs, void* targets) const final;
  std::shared_ptr<const ImageFiles> images() const final { return images_; }
  bool all_generated() const final;
  bool for_device() const final;
  bool device_decodes() const final;
  ImageJob job(std::int64_t index, std::uint64_t seed, std::int64_t epoch, bool decoded,
               std::int64_t& label) const final;
  bool replaces_broken() const final;
  bool is_broken(std::int64_t index) const final;

 protected:
  /// Which samples to write: as get() gives them, or augmented for an epoch of training.
  struct Version {
    bool augmented = false;
    std::uint64_t seed = 0;
    std::int64_t epoch = 0;
  };
  void capabilities(Capabilities& offered) const override;
  /// Writes samples. Default: as the sources have them. Thread-safe.
  virtual void write(std::span<const std::int64_t> indices, const Version& version, void* inputs,
                     void* targets) const {
    read(indices, version, inputs, targets);
  }
  /// Whether write() changes inputs or targets. The samples can then neither be made from image
  /// files nor on a device, and are not the samples that a source keeps.
  virtual bool changes_samples() const { return false; }
  /// Whether samples are augmented. Default: if those of a source are.
  virtual bool augments() const;

  /// Writes the samples as the sources have them. Of a subset, broken images are replaced by others
  /// of the subset.
  void read(std::span<const std::int64_t> indices, const Version& version, void* inputs,
            void* targets) const;
  const Dataset& source() const { return *sources_.front(); }

 private:
  SampleMap::Place place(std::int64_t index) const {
    return map_ ? (*map_)(index) : SampleMap::Place{0, index};
  }
  /// The capability of all sources; none if a source lacks it.
  template <class T>
  std::vector<const T*> of_sources() const;
  void read_sources(std::span<const std::int64_t> indices, const Version& version, void* inputs,
                    void* targets) const;
  bool may_have_broken() const;
  bool note_if_broken(std::int64_t index) const;
  /// Notes a broken sample of a subset, and calls read(index) for others of the subset until one
  /// can be decoded.
  template <class Read>
  void replace_if_broken(std::int64_t index, const Read& read) const;

  std::vector<std::shared_ptr<const Dataset>> sources_;
  std::vector<const StandIns*> stand_ins_;  // of each source; null: it has no broken samples
  std::shared_ptr<const SampleMap> map_;
  std::shared_ptr<const ImageFiles> images_;
  bool picks_images_ = false;  // some samples of a source that may have broken ones
  mutable std::mutex mutex_;
  mutable std::set<std::string> broken_;  // of those samples, guarded by mutex_
};

}  // namespace tenon::data
