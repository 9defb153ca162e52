// The table of tuned choices on disk: one file in the cache folder, read when it is first needed.
//
// The file is written whole under another name and renamed. Processes that write at the same time
// may lose each other's last row, which costs measuring it again. What is damaged or foreign is
// left out with a message; a folder that cannot be written only means that choices last as long as
// the process.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "plan/tune.h"

namespace tenon {

class TuneStore {
 public:
  explicit TuneStore(std::string folder) : folder_(std::move(folder)) {}
  std::optional<TuneChoice> find(const std::string& key);
  /// Keeps it here and on disk, beside what other processes have written since.
  void put(const std::string& key, TuneChoice choice);
  /// How often one was put here.
  std::uint64_t changes() const noexcept { return changes_.load(std::memory_order_relaxed); }
  std::string file() const { return folder_ + "/contractions.tune"; }

  /// The process's, in the cache folder.
  static TuneStore& shared();

 private:
  TuneTable read() const;
  bool write(const TuneTable& table) const;

  const std::string folder_;
  std::atomic<std::uint64_t> changes_{0};
  std::mutex mutex_;
  std::optional<TuneTable> table_;
  bool told_ = false;  // that it cannot be written
};

/// Rows that travel in the library: measured on devices by their name.
const TuneTable& built_in_choices();

}  // namespace tenon
