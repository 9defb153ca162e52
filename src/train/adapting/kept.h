// Outputs of the frozen layers of a network, computed once for all epochs, and datasets that
// replace the samples by these outputs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tenon/data.h>
#include <tenon/nn.h>

namespace tenon::train {

/// Samples as the loader provides them.
struct KeptSource {
  std::shared_ptr<const data::Dataset> set;
  data::LoaderOptions loader;
  /// Preprocessing that is not in the loader's options: part of the key of the cache file.
  std::string preparation;
};

/// Where outputs of frozen layers are kept. Auto: in memory if there is room, and also on disk if
/// computing took a second or more. Nowhere: they are computed in every step.
enum class KeepPlace { Auto, Memory, Disk, Nowhere };

struct KeepOptions {
  KeepPlace place = KeepPlace::Auto;
  std::string folder;      ///< cache folder
  std::int64_t limit = 0;  ///< limit in bytes of all files in that folder
  int variants = 0;        ///< augmented epochs that are computed and then reused in turn
  std::function<void(std::int64_t done, std::int64_t examples)> progress{};
  std::function<bool()> stop{};
};

struct KeptPart {
  nn::AnyModule net =
      nn::Identity();  ///< the remaining network, with the same parameters and names
  /// Outputs for each source's samples, in their order; empty if nothing is kept.
  std::vector<std::shared_ptr<const data::Dataset>> sets;
  /// Messages that report what was done, or why nothing is kept. Empty if `stop` ended it.
  std::vector<std::string> notes;
};

/// Computes the outputs of a FrozenNet's frozen layers for all samples, or reads those that an
/// earlier run computed from the same weights and samples. The first source is the training part.
/// The others are only evaluated, so one variant of them is kept.
KeptPart keep_frozen_part(const nn::AnyModule& net, const std::vector<KeptSource>& sources,
                          const KeepOptions& options);

}  // namespace tenon::train
