// What a run folder records about its data: checksums of the training samples and digests of the
// held-out parts.
//
// A thread writes the record during the first steps, because tens of thousands of image files may
// have to be read for it. The run waits for the record before it writes any result. So a killed run
// has no results from samples that its folder does not record.
#pragma once

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <string>

#include <tenon/notes.h>
#include <tenon/train.h>

#include "train/runs/sample_record.h"
#include "train/sessions/session.h"

namespace tenon::train {

class DataRecord {
 public:
  /// `sets` must outlive it. `run_dir` is the folder of a resumed run, or "".
  DataRecord(const DataSets& sets, const std::string& run_dir);
  ~DataRecord();
  DataRecord(const DataRecord&) = delete;
  DataRecord& operator=(const DataRecord&) = delete;

  /// Notes on held-out parts that have changed since a resumed run began.
  const Notes& changes() const { return changes_; }
  /// Begins to write the record into the run folder, and to look up the test samples in it.
  void begin(const std::string& dir);
  /// Waits until the record is written. Throws what writing it threw. Does nothing before begin().
  void finish();
  /// How many test samples equal training samples. Waits for the look-up, or makes it if begin()
  /// was not called. Unset if there is no test part or it cannot be compared.
  std::optional<SeenSamples> test_seen();

 private:
  void read();
  std::optional<SeenSamples> look_up() const;
  /// Number of background threads: one, so that steps keep the others, until somebody waits for the
  /// record.
  int threads_now() const { return awaited_ ? threads_ : 1; }

  const DataSets& sets_;
  const int threads_;
  std::atomic<bool> awaited_ = false;
  std::optional<SampleRecord> earlier_;  // record of the resumed run
  std::optional<HeldOutDigests> held_out_;
  Notes changes_;
  std::unique_ptr<SampleRecord> record_;
  std::shared_future<void> writing_;
  std::future<std::optional<SeenSamples>> looking_up_;
  std::optional<SeenSamples> seen_;
  bool is_known_ = false;  // seen_
};

}  // namespace tenon::train
