// The tuner: advice for choose_engines from the run's record, the disk, the built-in table, and, if
// requested, from timing candidates now. The competition itself is in tune_select.h.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include <tenon/compute.h>
#include <tenon/device.h>

#include "plan/program/tune.h"
#include "run/tuning/tune_select.h"
#include "run/tuning/tune_store.h"

namespace tenon {

class Tuner final : public Tuning {
 public:
  /// Makes the bench for a region; `candidates` determine how much workspace it needs.
  using MakeBench = std::function<std::unique_ptr<Bench>(
      const Region&, std::span<const Value>, const PlanOptions&, std::span<const Candidate>)>;

  Tuner(std::string gpu, Tune mode, TuneStore& store, MakeBench make_bench)
      : gpu_(std::move(gpu)), mode_(mode), store_(store), make_bench_(std::move(make_bench)) {}

  std::vector<TuneAdvice> advise(const Program& program, const EqualSteps& alike,
                                 const PlanOptions& options) override;
  TuneAdvice known(const Region& region, std::span<const Value> values,
                   const PlanOptions& options) override;
  void taken(const std::string& key, const TuneChoice& choice) override;

 private:
  struct Unknown;
  TuneAdvice look_up(const std::string& key, const Region& region, std::span<const Value> values,
                     const PlanOptions& options);
  void measure(std::span<Unknown> unknown, std::span<const Value> values,
               const PlanOptions& options);

  const std::string gpu_;
  const Tune mode_;
  TuneStore& store_;
  const MakeBench make_bench_;
  std::mutex measuring_;  // one competition at a time
};

/// The tuner of a GPU; null on the CPU, where each region has one engine.
Tuning* tuning_of(Device device, Tune mode);

/// A bench on a GPU: random inputs of the region's own shapes; outputs are overwritten before each
/// check.
std::unique_ptr<Bench> make_gpu_bench(const Region& region, std::span<const Value> values,
                                      const PlanOptions& options,
                                      std::span<const Candidate> candidates);

/// While it lives, it records every choice of its thread's plans. Choices given to it (by an
/// earlier part of the same run) take precedence over all others. Records nest: an inner record
/// also asks the outer ones.
class TuneRecord {
 public:
  explicit TuneRecord(TuneTable kept = {});
  ~TuneRecord();
  TuneRecord(const TuneRecord&) = delete;
  TuneRecord& operator=(const TuneRecord&) = delete;

  /// The given choices and those recorded since.
  const TuneTable& table() const { return table_; }

 private:
  friend class Tuner;
  friend std::uint64_t current_tune_record() noexcept;
  friend std::uint64_t tuning_state();
  TuneTable table_;
  TuneRecord* const outer_;
  std::uint64_t given_ = 0;  // identifies what it and the outer records were given; 0: nothing
};

/// A number that identifies what this thread's records were given; 0: nothing.
std::uint64_t current_tune_record() noexcept;
/// A number that identifies everything besides the context that decides this thread's next GPU
/// plan: given and recorded choices, and measurements on disk.
std::uint64_t tuning_state();

}  // namespace tenon
