// A ring of slots under one mutex: batches take far longer than the lock.
#include "data/prefetch.h"

#include <cstring>

#include "base/thread_pool.h"

namespace tenon::data {

Prefetcher::Prefetcher(std::int64_t count, int workers, int depth, std::size_t input_bytes,
                       std::size_t target_bytes, Fill fill)
    : count_(count), fill_(std::move(fill)), slots_(static_cast<std::size_t>(depth)) {
  for (Slot& slot : slots_) {
    slot.input = std::make_unique_for_overwrite<char[]>(input_bytes);
    slot.target = std::make_unique_for_overwrite<char[]>(target_bytes);
  }
  try {
    for (int i = 0; i < workers; ++i)
      threads_.emplace_back([this, threads = num_threads()] {
        set_num_threads(threads);  // as many as its maker may use
        work();
      });
  } catch (...) {
    stop();
    throw;
  }
}

Prefetcher::~Prefetcher() { stop(); }

void Prefetcher::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  room_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Prefetcher::work() {
  const auto depth = static_cast<std::int64_t>(slots_.size());
  std::unique_lock lock(mutex_);
  for (;;) {
    room_.wait(lock, [&] { return stopping_ || claimed_ == count_ || claimed_ < taken_ + depth; });
    if (stopping_ || claimed_ == count_) return;
    const std::int64_t number = claimed_++;
    Slot& slot = slots_[static_cast<std::size_t>(number % depth)];
    lock.unlock();
    std::exception_ptr error;
    try {
      fill_(number, slot.input.get(), slot.target.get());
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    slot.error = std::move(error);
    slot.ready = true;
    ready_.notify_one();
  }
}

void Prefetcher::take(void* input, std::size_t input_bytes, void* target,
                      std::size_t target_bytes) {
  std::unique_lock lock(mutex_);
  Slot& slot = slots_[static_cast<std::size_t>(taken_ % static_cast<std::int64_t>(slots_.size()))];
  ready_.wait(lock, [&] { return slot.ready; });
  if (slot.error) std::rethrow_exception(slot.error);
  lock.unlock();
  std::memcpy(input, slot.input.get(), input_bytes);
  std::memcpy(target, slot.target.get(), target_bytes);
  lock.lock();
  slot.ready = false;
  ++taken_;
  lock.unlock();
  room_.notify_all();
}

}  // namespace tenon::data
