// Worker threads that prepare the batches of one epoch ahead of the caller, who still gets them in
// order.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace tenon::data {

class Prefetcher {
 public:
  /// Writes batch `number` to the buffers; called by several threads at a time.
  using Fill = std::function<void(std::int64_t number, void* input, void* target)>;

  /// Prepares batches 0 … count-1 with `workers` threads, at most `depth` beyond the one taken
  /// last.
  Prefetcher(std::int64_t count, int workers, int depth, std::size_t input_bytes,
             std::size_t target_bytes, Fill fill);
  /// Ends the threads; waits for batches under way, at most one for each thread.
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// Waits for the next batch in order and copies its first bytes out. Throws what fill() threw for
  /// it.
  void take(void* input, std::size_t input_bytes, void* target, std::size_t target_bytes);

 private:
  struct Slot {
    std::unique_ptr<char[]> input, target;
    std::exception_ptr error;
    bool ready = false;
  };
  void work();
  void stop() noexcept;

  const std::int64_t count_;
  const Fill fill_;
  std::mutex mutex_;  // guards all below; a slot's buffers belong to a worker until ready, then to
                      // the caller
  std::condition_variable room_, ready_;
  std::vector<Slot> slots_;
  std::int64_t claimed_ = 0, taken_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tenon::data
