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

/// Samples as a loader would give them.
struct KeptSource {
  std::shared_ptr<const data::Dataset> set;
  data::LoaderOptions loader;
  /// What becomes of the samples before the network and is not told by the loader's options: part
  /// of the key of what is kept on disk.
  std::string preparation;
};

struct KeepOptions {
  /// "memory"; "disk"; "auto": in memory where there is room, and on disk too where computing them
  /// took a second or more.
  std::string place = "auto";
  std::string folder;      ///< on disk
  std::int64_t limit = 0;  ///< bytes in that folder, of all files
  int variants = 0;        ///< epochs of augmentation that are computed and then come again
  std::function<void(std::int64_t done, std::int64_t examples)> progress{};
  std::function<bool()> stop{};
};

struct KeptPart {
  nn::AnyModule net = nn::Identity();  ///< takes what is kept; the same tensors by the same names
  /// What is kept of each source's samples, in their order; empty where nothing is.
  std::vector<std::shared_ptr<const data::Dataset>> sets;
  /// Sentences on what was done, or why nothing is kept. None where `stop` said so.
  std::vector<std::string> notes;
};

/// Computes the frozen parts of a FrozenNet for all samples, or reads what an earlier run computed
/// by the same weights of the same samples. The first source is the training part; of the others,
/// which are only measured, one variant is kept.
KeptPart keep_frozen_part(const nn::AnyModule& net, const std::vector<KeptSource>& sources,
                          const KeepOptions& options);

}  // namespace tenon::train
