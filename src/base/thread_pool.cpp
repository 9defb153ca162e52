// The worker threads behind parallel_for: how work is distributed, how workers wait, when they
// sleep.
//
// A call publishes a job, which lives on the caller's stack, in one of a few fixed slots, and then
// works on the job itself. Invariant: a worker touches a job only between entering its slot (users
// + 1) and leaving it, and the caller returns only after it has withdrawn the job and seen the slot
// empty. Both sides write their own word before they read the other's, sequentially consistent, so
// at least one of them sees the other.
#include "base/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace tenon {
namespace {

constexpr int kSlots =
    16;  // calls that may share the workers at once; further calls run on their caller alone
constexpr int kMaxThreads = 1024;
constexpr std::chrono::microseconds kSpinTime{40};

void pause_cpu() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Polls until ready() or until kSpinTime has passed; returns whether ready.
template <class Ready>
bool spin_until(Ready ready) {
  const auto limit = std::chrono::steady_clock::now() + kSpinTime;
  do {
    for (int i = 0; i < 32; ++i) {
      if (ready()) return true;
      pause_cpu();
    }
  } while (std::chrono::steady_clock::now() < limit);
  return false;
}

struct Job {
  std::int64_t chunks = 0;
  void* context = nullptr;
  detail::ChunkFn fn = nullptr;
  int threads = 1;
  std::atomic<std::int64_t> next{0};
  std::mutex error_mutex;
  std::exception_ptr error;
  std::int64_t error_chunk = 0;
};

struct alignas(64) Slot {
  std::atomic<bool> taken{false};
  std::atomic<Job*> job{nullptr};
  std::atomic<int> users{0};
  std::atomic<bool> caller_sleeps{false};
  std::mutex mutex;
  std::condition_variable left;
};

thread_local int t_worker = -1;    // of the running chunk; -1 outside chunks
thread_local bool t_only = false;  // inside an OnlyThread
thread_local int t_threads = 0;    // requested by this thread; 0: all CPUs

// Of several exceptions, the one from the lowest chunk is kept, so that the message does not depend
// on timing.
void keep_error(Job& job, std::int64_t chunk) {
  const std::lock_guard<std::mutex> lock(job.error_mutex);
  if (job.error && job.error_chunk < chunk) return;
  job.error = std::current_exception();
  job.error_chunk = chunk;
}

void work_on(Job& job, int worker) {
  const int outer = t_worker;
  t_worker = worker;
  for (;;) {
    const std::int64_t chunk = job.next.fetch_add(1, std::memory_order_relaxed);
    if (chunk >= job.chunks) break;
    try {
      job.fn(job.context, chunk, worker);
    } catch (...) {
      keep_error(job, chunk);
    }
  }
  t_worker = outer;
}

class Pool {
 public:
  Pool() : cpus_(std::clamp(available_cpus(), 1, kMaxThreads)) {}

  int cpus() const { return cpus_; }
  int threads() const { return t_threads == 0 ? cpus_ : t_threads; }

  void run(std::int64_t chunks, void* context, detail::ChunkFn fn) {
    Job job;
    job.chunks = chunks;
    job.context = context;
    job.fn = fn;
    job.threads = threads();
    const bool alone = t_worker >= 0 || chunks == 1 || job.threads == 1;
    Slot* slot = alone ? nullptr : take_slot();
    if (slot == nullptr) {
      // A chunk may have lowered its thread count to or below its own worker number.
      work_on(job, t_worker < job.threads ? std::max(t_worker, 0) : 0);
    } else {
      start_workers(job.threads);
      slot->job.store(&job);
      announce(std::min<std::int64_t>(chunks, job.threads) - 1);
      work_on(job, 0);
      slot->job.store(nullptr);
      wait_until_left(*slot);
      slot->taken.store(false, std::memory_order_release);
    }
    if (job.error) std::rethrow_exception(job.error);
  }

 private:
  Slot* take_slot() {
    for (Slot& slot : slots_) {
      if (!slot.taken.load(std::memory_order_relaxed) &&
          !slot.taken.exchange(true, std::memory_order_acquire)) {
        return &slot;
      }
    }
    return nullptr;
  }

  // Threads are started when first needed. If the system refuses one, the existing threads do the
  // work.
  void start_workers(int threads) {
    if (started_.load(std::memory_order_acquire) >= threads) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    for (int id = started_.load(std::memory_order_relaxed); id < threads; ++id) {
      try {
        std::thread([this, id] { worker_loop(id); }).detach();
      } catch (const std::system_error&) {
        return;
      }
      started_.store(id + 1, std::memory_order_release);
    }
  }

  void announce(std::int64_t wanted) {
    epoch_.fetch_add(1);
    if (sleepers_.load() == 0) return;
    // The empty critical section orders this after a worker that has counted itself but does not
    // wait yet.
    { const std::lock_guard<std::mutex> lock(sleep_mutex_); }
    if (wanted >= sleepers_.load(std::memory_order_relaxed)) {
      wake_.notify_all();
    } else {
      for (std::int64_t i = 0; i < wanted; ++i) wake_.notify_one();
    }
  }

  void wait_until_left(Slot& slot) {
    const auto empty = [&slot] { return slot.users.load() == 0; };
    if (empty() || spin_until(empty)) return;
    std::unique_lock<std::mutex> lock(slot.mutex);
    slot.caller_sleeps.store(true);
    slot.left.wait(lock, empty);
    slot.caller_sleeps.store(false);
  }

  void leave(Slot& slot) {
    if (slot.users.fetch_sub(1) != 1 || !slot.caller_sleeps.load()) return;
    const std::lock_guard<std::mutex> lock(slot.mutex);
    slot.left.notify_all();
  }

  void look_for_work(int id) {
    for (Slot& slot : slots_) {
      if (slot.job.load(std::memory_order_relaxed) == nullptr) continue;
      slot.users.fetch_add(1);
      Job* job = slot.job.load();
      if (job != nullptr && id < job->threads) {
        t_threads = job->threads;
        work_on(*job, id);
      }
      leave(slot);
    }
  }

  void worker_loop(int id) {
    std::uint32_t seen =
        // the call that started this thread has been announced or is about to be
        epoch_.load() - 1;
    for (;;) {
      const auto news = [this, &seen] { return epoch_.load(std::memory_order_acquire) != seen; };
      if (!spin_until(news)) {
        std::unique_lock<std::mutex> lock(sleep_mutex_);
        sleepers_.fetch_add(1);
        wake_.wait(lock, [this, &seen] { return epoch_.load() != seen; });
        sleepers_.fetch_sub(1);
      }
      seen = epoch_.load();
      look_for_work(id);
    }
  }

  Slot slots_[kSlots];
  alignas(64) std::atomic<std::uint32_t> epoch_{0};
  alignas(64) std::atomic<int> sleepers_{0};
  std::mutex sleep_mutex_;
  std::condition_variable wake_;
  const int cpus_;
  std::atomic<int> started_{1};  // worker 0 is the caller
  std::mutex mutex_;
};

std::atomic<Pool*> the_pool{nullptr};

// Never destroyed: workers may outlive the main thread's statics. A forked process has none of the
// workers, and their locks may stay locked for ever, so it creates a new pool.
Pool& pool() {
  static const bool made = [] {
    the_pool = new Pool;
    ::pthread_atfork(nullptr, nullptr, [] { the_pool = new Pool; });
    return true;
  }();
  static_cast<void>(made);
  return *the_pool.load(std::memory_order_relaxed);
}

// CPUs granted by a "quota period" pair of a control group, rounded up; 0: no limit.
int cpus_of_quota(double quota, double period) {
  if (quota <= 0 || period <= 0) return 0;
  return std::max(1, static_cast<int>(quota / period + 0.999));
}

int quota_in_file(const char* path, bool& found) {
  std::FILE* file = std::fopen(path, "r");
  found = file != nullptr;
  if (!found) return 0;
  char quota[32] = "";
  double period = 0;
  const int fields = std::fscanf(file, "%31s %lf", quota, &period);
  std::fclose(file);
  if (fields < 1 || std::strcmp(quota, "max") == 0) return 0;
  return cpus_of_quota(std::atof(quota), fields == 2 ? period : 100000.0);
}

// The smallest CPU quota on the path from this process's control group to the root (version 2), or
// the quota of version 1.
int cgroup_cpus() {
  char path[512] = "";
  if (std::FILE* file = std::fopen("/proc/self/cgroup", "r")) {
    char line[512];
    while (std::fgets(line, sizeof line, file) != nullptr) {
      if (std::strncmp(line, "0::", 3) == 0)
        std::snprintf(path, sizeof path, "%.*s", int(std::strcspn(line + 3, "\n")), line + 3);
    }
    std::fclose(file);
  }
  int smallest = 0;
  bool found = false, any = false;
  for (;;) {
    char name[600];
    std::snprintf(name, sizeof name, "/sys/fs/cgroup%s/cpu.max",
                  std::strcmp(path, "/") == 0 ? "" : path);
    const int cpus = quota_in_file(name, found);
    any = any || found;
    if (cpus > 0) smallest = smallest == 0 ? cpus : std::min(smallest, cpus);
    char* slash = std::strrchr(path, '/');
    if (slash == nullptr) break;
    *slash = '\0';
  }
  if (any) return smallest;
  return quota_in_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", found);
}

int affinity_cpus() {
  // On a machine with more CPUs than cpu_set_t holds the call fails with EINVAL and is repeated
  // with a larger set.
  for (std::size_t words = sizeof(cpu_set_t) / sizeof(unsigned long); words <= 4096; words *= 2) {
    std::vector<unsigned long> mask(words, 0);
    const std::size_t bytes = words * sizeof(unsigned long);
    if (sched_getaffinity(0, bytes, reinterpret_cast<cpu_set_t*>(mask.data())) == 0) {
      int count = 0;
      for (const unsigned long word : mask) count += __builtin_popcountl(word);
      return std::max(count, 1);
    }
    if (errno != EINVAL) break;
  }
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace

int set_num_threads(int threads) {
  return std::exchange(t_threads, std::clamp(threads, 0, kMaxThreads));
}

int num_threads_by_default() { return pool().cpus(); }

int num_threads() { return t_only ? 1 : pool().threads(); }

OnlyThread::OnlyThread()
    : worker_(std::exchange(t_worker, 0)), only_(std::exchange(t_only, true)) {}

OnlyThread::~OnlyThread() {
  t_worker = worker_;
  t_only = only_;
}

int available_cpus() {
  const int affinity = affinity_cpus();
  const int quota = cgroup_cpus();
  return quota > 0 ? std::min(affinity, quota) : affinity;
}

void detail::parallel_chunks(std::int64_t chunks, void* context, ChunkFn fn) {
  pool().run(chunks, context, fn);
}

}  // namespace tenon
