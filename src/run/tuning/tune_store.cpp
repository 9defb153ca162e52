// Reads and writes the tune table's file.
#include "run/tuning/tune_store.h"

#include <optional>

#include <tenon/error.h>

#include "backends/backends.h"
#include "base/str.h"
#include "base/system/cache_file.h"
#include "base/system/log.h"
#include "device/backend.h"

namespace tenon {
namespace {

constexpr std::size_t kLargest = std::size_t{16} << 20;

}  // namespace

TuneStore& TuneStore::shared() {
  static TuneStore* const store = new TuneStore(cache_folder_of("tune"));
  return *store;
}

TuneTable TuneStore::read() const {
  const auto leave_out = [&](const std::string& what) {
    log_message(LogLevel::Warning, cat(file(), ": ", what, "; engines are chosen without it"));
    return TuneTable();
  };
  if (folder_.empty()) return {};
  const std::optional<std::string> text = read_cache_file(file(), kLargest);
  if (!text) return {};
  try {
    int damaged = 0;
    TuneTable table = TuneTable::parse(*text, &damaged);
    if (damaged > 0)
      log_message(LogLevel::Warning, cat(file(), ": ", damaged, " damaged lines are left out"));
    return table;
  } catch (const FormatError& error) {
    return leave_out(error.what());
  }
}

bool TuneStore::write(const TuneTable& table) const {
  return !folder_.empty() && write_cache_file(file(), {table.text()});
}

const TuneTable& built_in_choices() {
  static const TuneTable* const all = [] {
    register_backends();
    auto* made = new TuneTable;
    for (Backend* backend : registered_backends())
      if (Trials* trials = backend->trials())
        for (const std::string_view text : trials->measured_choices())
          made->merge(TuneTable::parse(text));
    return made;
  }();
  return *all;
}

std::optional<TuneChoice> TuneStore::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  if (!table_) table_ = read();
  const TuneChoice* row = table_->find(key);
  return row == nullptr ? std::nullopt : std::optional(*row);
}

void TuneStore::put(const std::string& key, TuneChoice choice) {
  const std::lock_guard lock(mutex_);
  TuneTable now = read();
  if (table_) now.merge(*table_);
  now.put(key, std::move(choice));
  table_ = std::move(now);
  changes_.fetch_add(1, std::memory_order_relaxed);
  if (write(*table_) || told_) return;
  told_ = true;
  log_message(LogLevel::Warning,
              cat(file(), " cannot be written: measured choices last for this process only"));
}

}  // namespace tenon
