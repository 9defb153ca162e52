// The one pool of worker threads, used by CPU kernels and by data loaders' transforms.
//
// The caller cuts work into chunks whose number depends on sizes only, never on the number of
// threads; the pool only decides which thread runs a chunk. Together with reductions combined in
// chunk order, this gives the same bits for every thread count. Any thread may call parallel_for,
// several at a time: the caller works too, so a busy pool costs speed, never progress. A call made
// inside a chunk runs inline under its worker's number, or as worker 0 if the chunk has lowered its
// thread count to that number or below. An exception in a chunk reaches the caller after all chunks
// have ended.
#pragma once

#include <cstdint>
#include <utility>

namespace tenon {

/// The number of threads that the calling thread's parallel_for uses, itself included; at least 1.
/// Every thread starts with all CPUs; a chunk sees its caller's number.
int num_threads();
/// Sets the number for the calling thread alone; 0: all CPUs. Returns the previous setting.
int set_num_threads(int threads);
/// The CPUs this process may run on (affinity and cgroup quota respected).
int available_cpus();
/// available_cpus() at its first call: what every thread starts with.
int num_threads_by_default();

/// Sets the calling thread's number of threads while it lives.
class ThreadCount {
 public:
  explicit ThreadCount(int threads) : outer_(set_num_threads(threads)) {}
  ~ThreadCount() { set_num_threads(outer_); }
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

 private:
  const int outer_;
};

/// While it lives, num_threads() is 1 for the calling thread, and parallel_for runs inline as
/// worker 0. For a chunk that calls functions with per-worker their own scratch memory.
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

/// Runs f(chunk, worker) for every chunk in [0, chunks). `worker` is in [0, num_threads()) and
/// identifies the running thread, so that a caller can keep scratch memory for each worker. No
/// allocation.
template <class F>
void parallel_for(std::int64_t chunks, F&& f) {
  if (chunks <= 0) return;
  auto call = [](void* context, std::int64_t chunk, int worker) {
    (*static_cast<std::remove_reference_t<F>*>(context))(chunk, worker);
  };
  detail::parallel_chunks(chunks, const_cast<void*>(static_cast<const void*>(&f)), call);
}

}  // namespace tenon
