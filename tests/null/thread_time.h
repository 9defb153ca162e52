// How long a piece of work takes, whatever else the machine does: the calling thread's own time on
// a processor, the least of several attempts.
#pragma once

#include <algorithm>
#include <ctime>
#include <limits>
#include <vector>

namespace tenon::test {

inline double thread_seconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// The least seconds that some attempts at a piece of work took.
class Least {
 public:
  template <class Work>
  void attempt(Work&& work) {
    const double start = thread_seconds();
    work();
    seconds_ = std::min(seconds_, thread_seconds() - start);
  }
  double seconds() const { return seconds_; }

 private:
  double seconds_ = std::numeric_limits<double>::infinity();
};

/// Two pieces of work, in turn: a clock that changes between attempts, or a neighbour on the
/// machine, does not change how the two of one attempt compare.
class InTurn {
 public:
  template <class First, class Second>
  void attempt(First&& first, Second&& second) {
    Least one, two;
    one.attempt(first);
    two.attempt(second);
    ratios_.push_back(two.seconds() / one.seconds());
    std::sort(ratios_.begin(), ratios_.end());
  }
  /// Of the second to the first, the middle one of all attempts.
  double ratio() const { return ratios_[ratios_.size() / 2]; }

 private:
  std::vector<double> ratios_;
};

/// Neighbours on a machine slow every attempt for a while: no more than so many are made, and who
/// shares a core with one may take half as long again.
inline constexpr int kMostAttempts = 12;
inline constexpr double kCrowded = 1.5;

}  // namespace tenon::test
