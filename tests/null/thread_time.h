// Durations that do not depend on other load: CPU time of the calling thread, the minimum of
// several attempts.
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

/// The minimum number of seconds over the attempts.
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

/// Two pieces of work measured alternately. A changing clock rate or a neighbour on the machine
/// affects both in the same way.
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
  /// The median ratio of the second to the first.
  double ratio() const { return ratios_[ratios_.size() / 2]; }

 private:
  std::vector<double> ratios_;
};

/// Neighbours on the machine slow attempts for a while: at most this many attempts are made, and
/// work that shares a core may take half as long again.
inline constexpr int kMostAttempts = 12;
inline constexpr double kCrowded = 1.5;

}  // namespace tenon::test
