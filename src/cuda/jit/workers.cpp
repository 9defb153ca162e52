// A queue and up to 16 threads. They are not the pool of parallel_for: a compilation takes a
// hundred milliseconds, and work on the CPU must not wait behind it.
#include "cuda/jit/workers.h"

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "base/thread_pool.h"
#include "cuda/jit/nvrtc.h"

namespace tenon::cuda {
namespace {

class Workers {
 public:
  // The compiler is loaded before this object is made, so that its own statics outlive our threads.
  Workers() : most_(std::clamp(available_cpus(), 1, 16)) { nvrtc(); }

  ~Workers() { stop(); }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Returns when what is under way has ended; what waits is forgotten.
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
      jobs_.clear();
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  void add(std::function<void()> job) {
    const std::lock_guard lock(mutex_);
    if (stop_) return;
    jobs_.push_back(std::move(job));
    const auto waiting = static_cast<std::size_t>(idle_);
    if (jobs_.size() > waiting && static_cast<int>(threads_.size()) < most_)
      threads_.emplace_back([this] { work(); });
    wake_.notify_one();
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      ++idle_;
      wake_.wait(lock, [&] { return stop_ || !jobs_.empty(); });
      --idle_;
      if (stop_) return;
      const std::function<void()> job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      job();
      // What the driver and the compiler made for it stays until the other jobs have ended.
      stop_workers_at_exit();
      lock.lock();
    }
  }

  const int most_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> jobs_;
  std::vector<std::thread> threads_;
  int idle_ = 0;
  bool stop_ = false;
};

Workers& workers() {
  static Workers instance;
  return instance;
}

}  // namespace

// Objects of static lifetime go in the reverse order of their making, and NVRTC makes some while it
// compiles: ~Workers alone would wait for compilations whose objects are gone.
void stop_workers_at_exit() {
  std::atexit([] { workers().stop(); });
}

void run_on_worker(std::function<void()> job) { workers().add(std::move(job)); }

}  // namespace tenon::cuda
