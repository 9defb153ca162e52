// The one pool of worker threads that CPU kernels and loaders' transforms run on.
//
// Work is cut by the caller into a number of chunks that depends on sizes only, never on the number
// of threads; the pool only decides who runs a chunk. That, and reductions combined in chunk order,
// gives the same bits for every thread count. Any thread may call parallel_for, several at a time:
// the caller works too, so a busy pool costs speed, never progress. A call made inside a chunk runs
// inline under its worker's number, as worker 0 where the chunk has lowered its threads to that or
// below. An exception in a chunk reaches the caller after all chunks have ended.
#pragma once

#include <cstdint>
#include <utility>

namespace tenon {

/// Threads that the calling thread's parallel_for uses, itself included; at least 1. Every thread
/// begins with all CPUs; a chunk sees the number of who called.
int num_threads();
/// Sets it for the calling thread alone; 0: all CPUs. Returns what was set before.
int set_num_threads(int threads);
/// The CPUs this process may run on (affinity and cgroup quota respected).
int available_cpus();
/// The same as it was when it was first asked for: what every thread begins with.
int num_threads_by_default();

/// The calling thread's number of threads while it lives.
class ThreadCount {
 public:
  explicit ThreadCount(int threads) : outer_(set_num_threads(threads)) {}
  ~ThreadCount() { set_num_threads(outer_); }
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

 private:
  const int outer_;
};

/// While it lives, the calling thread counts as the only one: num_threads() is 1, and parallel_for
/// runs inline as worker 0. For a chunk that calls what keeps scratch of its own for each worker.
class OnlyThread {
 public:
  OnlyThread();
  ~OnlyThread();
  OnlyThread(const OnlyThread&) = delete;
  OnlyThread& operator=(const OnlyThread&) = delete;

 private:
  const int worker_;
  const bool only_;
};

namespace detail {
using ChunkFn = void (*)(void* context, std::int64_t chunk, int worker);
void parallel_chunks(std::int64_t chunks, void* context, ChunkFn fn);
}  // namespace detail

/// Runs f(chunk, worker) for every chunk in [0, chunks); worker is in [0, num_threads()) and names
/// the running thread, so that a caller can keep scratch per worker. No allocation.
template <class F>
void parallel_for(std::int64_t chunks, F&& f) {
  if (chunks <= 0) return;
  auto call = [](void* context, std::int64_t chunk, int worker) {
    (*static_cast<std::remove_reference_t<F>*>(context))(chunk, worker);
  };
  detail::parallel_chunks(chunks, const_cast<void*>(static_cast<const void*>(&f)), call);
}

}  // namespace tenon
