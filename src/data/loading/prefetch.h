// Worker threads that prepare batches ahead of the caller and deliver them in order.
//
// A batch is divided into as many parts as there are workers. All workers finish the batch that the
// caller waits for before they start the next one.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tenon::data {

/// Largest number of loader threads.
inline constexpr int kMostWorkers = 256;

class Prefetcher {
 public:
  struct Plan {
    std::int64_t batches = 0;
    int workers = 1, parts = 1;
    int slots = 1;  ///< batches prepared ahead of the last one taken
  };
  /// Work of the threads, concurrently: write a part of a batch into a slot. After the last part of
  /// a batch, finish the batch before it can be taken.
  struct Work {
    std::function<void(std::int64_t batch, int part, int slot)> fill;
    std::function<void(std::int64_t batch, int slot)> finish;
  };

  /// Uses fewer threads if the system has no more; without threads, take() does the work.
  Prefetcher(const Plan& plan, Work work);
  /// Ends the threads after the parts that they are working on.
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// Waits for the next batch in order; the slot belongs to the caller until give_back(). Rethrows
  /// the exception of the batch's work.
  int take();
  void give_back();
  /// False in the child process after a fork: the threads belong to the parent, and locks that they
  /// held are never released. Such a prefetcher can neither be used nor destroyed.
  bool is_of_this_process() const noexcept;

 private:
  struct Slot {
    std::exception_ptr error;
    int parts_left = 0;
    bool ready = false;
  };
  void work();
  void prepare_part(std::unique_lock<std::mutex>& lock);
  void stop() noexcept;

  const pid_t process_;
  const Plan plan_;
  const Work work_;
  std::mutex mutex_;  // guards all members below
  std::condition_variable room_, ready_;
  std::vector<Slot> slots_;
  std::int64_t claimed_ = 0, taken_ = 0;  // parts; batches
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

/// Deleter that skips a prefetcher of another process.
struct EndPrefetcher {
  void operator()(Prefetcher* prefetcher) const noexcept {
    if (prefetcher->is_of_this_process()) delete prefetcher;
  }
};

}  // namespace tenon::data
