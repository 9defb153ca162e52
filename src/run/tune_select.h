// Which of several kernels of one region is the fastest that is right. Knows no GPU: how kernels
// are run and timed is the Bench's, so that the rules can be tested anywhere.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plan/program.h"
#include "plan/tune.h"

namespace tenon {

struct Candidate {
  const Engine* engine = nullptr;
  std::string configuration;
  std::unique_ptr<Kernel> kernel;
  /// "cublaslt 2"
  std::string title() const;
};

/// Where the kernels of one region are tried out.
class Bench {
 public:
  virtual ~Bench() = default;
  /// The region that is tried out, for messages.
  virtual std::string title() const { return {}; }
  /// Runs it on the tuning inputs and compares with what the reference makes of them; if it does
  /// not agree, *why says so.
  virtual bool agrees(const Kernel& kernel, std::string* why) = 0;
  /// One more timing.
  virtual double microseconds(const Kernel& kernel) = 0;
};

/// Everything that may run the region, in the order of trial: the engines' first configurations,
/// beginning with the one that would be chosen without measurements, then their second ones, and so
/// on.
std::vector<Candidate> candidates_of(const Region& region, std::span<const Value> values,
                                     const PlanOptions& options);
/// Names and versions of the engines that claim the region.
std::string rivals_of(const Region& region, std::span<const Value> values,
                      std::span<const Engine* const> engines);

/// Checks and times the candidates in turns and drops those that are 1.25 times as slow as the
/// best; a candidate that disagrees or fails is out, and so are others of an engine of ours whose
/// first two take three times as long as the best. Of those within 2 % of the best the first wins;
/// what takes much memory counts twice its time. Timing takes `seconds` or little more. nullopt
/// when none is right.
std::optional<TuneChoice> fastest(std::vector<Candidate>& candidates, Bench& bench, double seconds);

}  // namespace tenon
