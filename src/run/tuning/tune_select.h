// Selects the fastest correct kernel for a region. It knows no GPU: a Bench runs and times the
// kernels, so the rules can be tested anywhere.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plan/program/program.h"
#include "plan/program/tune.h"

namespace tenon {

struct Candidate {
  const Engine* engine = nullptr;
  std::string configuration;
  std::unique_ptr<Kernel> kernel;
  /// "cublaslt 2"
  std::string title() const;
};

/// Runs and times the kernels of one region.
class Bench {
 public:
  virtual ~Bench() = default;
  /// The region under test, for messages.
  virtual std::string title() const { return {}; }
  /// Runs the kernel on the tuning inputs and compares with the reference's result. If they
  /// disagree, *why gives the reason.
  virtual bool agrees(const Kernel& kernel, std::string* why) = 0;
  /// One more timing.
  virtual double microseconds(const Kernel& kernel) = 0;
};

/// Every engine and configuration that may run the region, in the order of trial: the first
/// configuration of each engine, starting with the one that would be chosen without measurements,
/// then the second ones, and so on.
std::vector<Candidate> candidates_of(const Region& region, std::span<const Value> values,
                                     const PlanOptions& options);
/// Names and versions of the engines that claim the region.
std::string claiming_engines(const Region& region, std::span<const Value> values,
                             std::span<const Engine* const> engines);

/// Checks the candidates, times them round-robin, and drops those slower than 1.25 times the best.
/// A candidate that disagrees or fails is dropped. If the first two configurations of one of our
/// own engines take three times as long as the best, its other configurations are dropped too.
/// Among candidates within 2 % of the best the first wins. A candidate that needs much memory
/// counts with twice its time. Timing takes about `seconds`. nullopt if no candidate is correct.
std::optional<TuneChoice> fastest(std::vector<Candidate>& candidates, Bench& bench, double seconds);

}  // namespace tenon
