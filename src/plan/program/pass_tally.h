// Times and counts of passes that share the walk of another pass. A walk for each of them would
// visit every node or item again.
#pragma once

#include <array>
#include <chrono>
#include <utility>

#include "plan/program/passes.h"

namespace tenon {

class PassTally {
  using Clock = std::chrono::steady_clock;

 public:
  struct Work {
    double ms = 0;
    int rewrites = 0;
  };

  /// Runs f and adds its time and `rewrites` to the pass. Inside another pass the time counts for
  /// the inner one only.
  template <class F>
  decltype(auto) timed(PassId pass, F&& f, int rewrites = 1) {
    const Timer timer(*this, pass);
    count(pass, rewrites);
    return std::forward<F>(f)();
  }
  void count(PassId pass, int rewrites) { work_[pass].rewrites += rewrites; }
  void add_ms(PassId pass, double ms) {
    work_[pass].ms += ms;
    ms_ += ms;
  }

  const Work& of(PassId pass) const { return work_[pass]; }
  /// Time of all passes.
  double ms() const { return ms_; }
  /// The passes that changed something.
  PassSet worked() const {
    PassSet passes;
    for (int k = 0; k < int{kPassCount}; ++k)
      if (work_[k].rewrites > 0) passes.insert(static_cast<PassId>(k));
    return passes;
  }

 private:
  class Timer {
   public:
    Timer(PassTally& tally, PassId pass)
        : tally_(tally), pass_(pass), before_(tally.ms_), start_(Clock::now()) {}
    ~Timer() {
      const double ms = std::chrono::duration<double, std::milli>(Clock::now() - start_).count();
      tally_.work_[pass_].ms += ms - (tally_.ms_ - before_);
      tally_.ms_ = before_ + ms;
    }
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;

   private:
    PassTally& tally_;
    const PassId pass_;
    const double before_;  // time of all passes when this work began
    const Clock::time_point start_;
  };

  std::array<Work, kPassCount> work_ = {};
  double ms_ = 0;
};

}  // namespace tenon
