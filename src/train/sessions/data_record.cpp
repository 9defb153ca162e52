// Reads, writes and compares the record.
#include "train/sessions/data_record.h"

#include <utility>

#include <tenon/error.h>

#include "base/background.h"
#include "base/str.h"
#include "base/thread_pool.h"

namespace tenon::train {
namespace {

// A part that cannot be compared has no digest.
void note_change(const std::string& before, const std::string& now, data::Split part,
                 Notes& notes) {
  if (before.empty() || now.empty() || before == now) return;
  notes.push_back({cat("the ", name(part),
                       " part has changed since the run began: its metrics are not comparable with "
                       "those of earlier epochs"),
                   1,
                   {}});
}

}  // namespace

DataRecord::DataRecord(const DataSets& sets, const std::string& run_dir)
    : sets_(sets), threads_(num_threads()) {
  if (run_dir.empty()) return;
  try {
    earlier_ = SampleRecord::load(cat(run_dir, "/", kSampleRecordFile));
  } catch (const Error&) {  // missing or damaged: written again
    return;
  }
  held_out_ = held_out_digests(sets.validation.get(), sets.test.get());
  const HeldOutDigests& before = earlier_->held_out();
  note_change(before.validation, held_out_->validation, data::Split::Validation, changes_);
  note_change(before.test, held_out_->test, data::Split::Test, changes_);
}

// Background work refers to members.
DataRecord::~DataRecord() {
  awaited_ = true;
  if (writing_.valid()) writing_.wait();
  if (looking_up_.valid()) looking_up_.wait();
}

// Keeps the earlier record. Images may have changed under the same names while the run was stopped,
// and the run was trained on both versions.
void DataRecord::read() {
  auto record = std::make_unique<SampleRecord>(
      SampleRecord::of(*sets_.train, [this] { return threads_now(); }));
  record->set_held_out(held_out_ ? *held_out_
                                 : held_out_digests(sets_.validation.get(), sets_.test.get()));
  if (earlier_) {
    try {
      record->add(*earlier_);
    } catch (const ValueError&) {  // the record has another kind of samples: it is written again
    }
  }
  record_ = std::move(record);
}

void DataRecord::begin(const std::string& dir) {
  writing_ = in_background([this, dir] {
               const ThreadCount count(threads_now());
               if (record_ == nullptr) read();
               record_->save(cat(dir, "/", kSampleRecordFile));
             }).share();
  if (is_known_) return;
  looking_up_ = in_background([this] {
    writing_.wait();
    const ThreadCount count(threads_now());
    return look_up();
  });
}

void DataRecord::finish() {
  if (!writing_.valid()) return;
  awaited_ = true;
  writing_.get();
}

std::optional<SeenSamples> DataRecord::test_seen() {
  awaited_ = true;
  if (looking_up_.valid()) seen_ = looking_up_.get(), is_known_ = true;
  // If broken images were found since, the look-up is repeated without them.
  const bool broken = sets_.test != nullptr && sets_.test->any_broken();
  if (is_known_ && !broken) return seen_;
  if (record_ == nullptr) read();
  seen_ = look_up();
  is_known_ = true;
  return seen_;
}

std::optional<SeenSamples> DataRecord::look_up() const {
  if (record_ == nullptr || sets_.test == nullptr) return std::nullopt;
  try {
    return record_->seen(*sets_.test, 0, sets_.test->size());
  } catch (const Error&) {  // evaluating the part reports the reason
    return std::nullopt;
  }
}

}  // namespace tenon::train
