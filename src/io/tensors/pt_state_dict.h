// State dicts in pickles: tensors and their storages.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "io/tensors/pickle.h"
#include "io/tensors/pt_views.h"
#include "io/tensors/weight_table.h"

namespace tenon::io {

/// Walks the parts of a pickle. Dictionaries and lists become prefixes of names, tensors become
/// entries of the table, numbers and strings its metadata. Objects of other classes, and tensors
/// whose element type Tenon lacks, are listed in the table's `unread`.
class StateDictReader {
 public:
  /// `where` begins messages. The pickle must outlive the reader. The constructor finds its
  /// storages.
  StateDictReader(const Pickle& pickle, std::string where);

  /// Every storage that the pickle names, used by a tensor or not. The caller sets where the bytes
  /// of each are before a tensor is read.
  const TorchStorages& storages() const noexcept { return storages_; }
  /// Adds tensors and metadata. Throws FormatError naming a tensor that exceeds its storage.
  void read(WeightTable& table);

 private:
  /// A storage, or a part of one (in files from before PyTorch 0.4).
  struct Stretch {
    std::shared_ptr<TorchStorage> storage;
    std::uint64_t offset = 0, items = 0;
  };
  void walk(const std::string& prefix, std::uint32_t place, int depth);
  void add(const std::string& name, std::uint32_t place, int depth);
  void add_call(const std::string& name, const PicklePart& part);
  void leave_out(const std::string& name, std::string what);
  TorchView tensor_of(const std::string& name, const PicklePart& part, int depth,
                      std::string& unknown) const;
  void read_extent(const std::string& name, const Stretch& stretch, const PicklePart& arguments,
                   TorchView& view) const;
  std::uint64_t whole(const std::string& name, const PicklePart& part) const;
  const PicklePart& sizes_of(const PicklePart& part) const;
  Stretch storage_at(const PicklePart& part);
  [[noreturn]] void damaged(std::string_view what) const;
  [[noreturn]] void refuse(const std::string& name, std::string_view what) const;

  const Pickle& pickle_;
  std::string where_;
  TorchStorages storages_;
  std::unordered_map<const PicklePart*, Stretch> stretches_;
  WeightTable* table_ = nullptr;
  std::uint64_t visited_ = 0, named_ = 0;
  std::unordered_map<std::string, std::size_t> values_;  // by identity()
};

}  // namespace tenon::io
