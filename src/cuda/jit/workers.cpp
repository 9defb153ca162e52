// Two queues and up to 16 threads. They are separate from the pool of parallel_for: a compilation
// takes a hundred milliseconds, and work on the CPU must not wait behind it.
//
// NVRTC seems to process one source at a time, however many threads call it (16 are no faster than
// 4). Kernels whose optimisation takes long are therefore compiled first.
#include "cuda/jit/workers.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/thread_pool.h"
#include "cuda/jit/helpers.h"
#include "cuda/jit/nvrtc.h"

namespace tenon::cuda {
namespace {

std::atomic<bool> stopped{false};

class Workers {
 public:
  // The compiler is loaded before the exit handler is registered, so that the compiler's statics
  // outlive our threads.
  Workers() : most_(std::clamp(available_cpus(), 1, 16)) { nvrtc(); }

  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Returns when running jobs have given up; waiting jobs are dropped.
  void stop() {
    if (getpid() != process_) return;  // after a fork, threads and helpers are another process's
    stopped = true;
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
      jobs_.clear();
      compilations_.clear();
    }
    wake_.notify_all();
    abandon_helpers();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  void add(std::function<void()> run) {
    if (const std::lock_guard lock(mutex_); stop_ || has_worker()) {
      if (stop_) return;
      jobs_.push_back(std::move(run));
      note_arrival();
      return;
    }
    run();
  }

  void add_compilation(std::function<void()> run, int effort) {
    if (const std::lock_guard lock(mutex_); stop_ || has_worker()) {
      if (stop_) return;
      if (compilations_.empty()) latest_ = Clock::now() + kLongestWait;
      compilations_.push_back({std::move(run), effort});
      note_arrival();
      return;
    }
    run();
  }

 private:
  using Clock = std::chrono::steady_clock;
  // The kernels of a plan are requested within a millisecond or two; after that it is known which
  // take longest.
  static constexpr std::chrono::milliseconds kQuiet{2}, kLongestWait{10};

  struct Compilation {
    std::function<void()> run;
    int effort;
  };

  std::size_t waiting() const { return jobs_.size() + compilations_.size(); }

  void note_arrival() {
    begin_ = Clock::now() + kQuiet;
    if (waiting() > static_cast<std::size_t>(idle_) && static_cast<int>(threads_.size()) < most_)
      start_worker();
    wake_.notify_one();
  }

  // If the system cannot create a thread, the existing ones do the work.
  void start_worker() {
    try {
      threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
    }
  }
  // False if no thread at all can be created: the caller then does the work.
  bool has_worker() {
    if (threads_.empty()) start_worker();
    return !threads_.empty();
  }

  // The next job; nothing if a compilation must wait for others, or if there is no job.
  std::function<void()> next() {
    std::function<void()> run;
    if (!jobs_.empty()) {
      run = std::move(jobs_.front());
      jobs_.pop_front();
    } else if (!compilations_.empty() && Clock::now() >= std::min(begin_, latest_)) {
      const auto most = std::max_element(
          compilations_.begin(), compilations_.end(),
          [](const Compilation& a, const Compilation& b) { return a.effort < b.effort; });
      run = std::move(most->run);
      compilations_.erase(most);
    }
    return run;
  }

  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      ++idle_;
      std::function<void()> run;
      while (!stop_ && !(run = next())) {
        if (compilations_.empty())
          wake_.wait(lock);
        else
          wake_.wait_until(lock, std::min(begin_, latest_));
      }
      --idle_;
      if (stop_) return;
      if (waiting() > 0) wake_.notify_one();
      lock.unlock();
      run();
      // Objects that the driver and the compiler created for the job must live until the other jobs
      // have ended.
      stop_workers_at_exit();
      lock.lock();
    }
  }

  const pid_t process_ = getpid();
  const int most_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> jobs_;
  std::vector<Compilation> compilations_;
  Clock::time_point begin_, latest_;  // of waiting compilations, which start at the earlier time
  std::vector<std::thread> threads_;
  int idle_ = 0;
  bool stop_ = false;
};

// Never destroyed: other threads may still call at the end of the process, and after a fork the
// destructor would wait for threads that do not exist.
Workers& workers() {
  static Workers* const instance = [] {
    auto* made = new Workers;
    stop_workers_at_exit();
    return made;
  }();
  return *instance;
}

}  // namespace

// Objects of static lifetime are destroyed in reverse order of construction, and NVRTC constructs
// some while it compiles. An exit handler registered only once would wait for compilations whose
// objects are already destroyed.
void stop_workers_at_exit() {
  std::atexit([] { workers().stop(); });
}

bool are_workers_stopped() { return stopped; }

void run_on_worker(std::function<void()> job) { workers().add(std::move(job)); }

void compile_on_worker(std::function<void()> job, int effort) {
  workers().add_compilation(std::move(job), effort);
}

}  // namespace tenon::cuda
