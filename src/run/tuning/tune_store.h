// The tune table on disk: one file in the cache folder, read when first needed.
//
// The file is written under another name and renamed. Processes that write at the same time may
// lose each other's last row; that row is then measured again. Damaged or foreign lines are skipped
// with a message. If the folder cannot be written, choices last as long as the process.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "plan/program/tune.h"

namespace tenon {

class TuneStore {
 public:
  explicit TuneStore(std::string folder) : folder_(std::move(folder)) {}
  std::optional<TuneChoice> find(const std::string& key);
  /// Stores the choice here and on disk, together with what other processes have written since.
  void put(const std::string& key, TuneChoice choice);
  /// Number of choices stored here.
  std::uint64_t changes() const noexcept { return changes_.load(std::memory_order_relaxed); }
  std::string file() const { return folder_ + "/contractions.tune"; }

  /// The process-wide store, in the cache folder.
  static TuneStore& shared();

 private:
  TuneTable read() const;
  bool write(const TuneTable& table) const;

  const std::string folder_;
  std::atomic<std::uint64_t> changes_{0};
  std::mutex mutex_;
  std::optional<TuneTable> table_;
  bool told_ = false;  // whether the message that the file cannot be written was logged
};

/// Rows built into the library: measured on devices, by device name.
const TuneTable& built_in_choices();

}  // namespace tenon
