// A ring of slots under one mutex: preparing a part of a batch takes far longer than the lock.
#include "data/loading/prefetch.h"

#include <unistd.h>

#include <system_error>
#include <utility>

#include "base/index.h"
#include "base/thread_pool.h"

namespace tenon::data {
namespace {

template <class F>
std::exception_ptr error_of(const F& work) {
  try {
    work();
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace

Prefetcher::Prefetcher(const Plan& plan, Work work)
    : process_(::getpid()), plan_(plan), work_(std::move(work)), slots_(at(plan.slots)) {
  for (Slot& slot : slots_) slot.parts_left = plan_.parts;
  try {
    for (int i = 0; i < plan_.workers; ++i)
      threads_.emplace_back([this, threads = num_threads()] {
        set_num_threads(threads);  // the creator's number of threads
        this->work();
      });
  } catch (const std::system_error&) {  // the existing threads do the work
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
  const std::int64_t all = plan_.batches * plan_.parts;
  std::unique_lock lock(mutex_);
  for (;;) {
    room_.wait(lock, [&] {
      return stopping_ || claimed_ == all || claimed_ / plan_.parts < taken_ + plan_.slots;
    });
    if (stopping_ || claimed_ == all) return;
    prepare_part(lock);
  }
}

// Claims and writes the next part; releases the lock while writing.
void Prefetcher::prepare_part(std::unique_lock<std::mutex>& lock) {
  const std::int64_t batch = claimed_ / plan_.parts;
  const int part = static_cast<int>(claimed_ % plan_.parts);
  const int number = static_cast<int>(batch % plan_.slots);
  Slot& slot = slots_[at(number)];
  ++claimed_;
  lock.unlock();
  const std::exception_ptr error = error_of([&] { work_.fill(batch, part, number); });
  lock.lock();
  if (error) slot.error = error;
  if (--slot.parts_left > 0) return;
  if (!slot.error && work_.finish) {
    lock.unlock();
    const std::exception_ptr at_end = error_of([&] { work_.finish(batch, number); });
    lock.lock();
    slot.error = at_end;
  }
  slot.ready = true;
  ready_.notify_one();
}

int Prefetcher::take() {
  std::unique_lock lock(mutex_);
  const int number = static_cast<int>(taken_ % plan_.slots);
  Slot& slot = slots_[at(number)];
  while (threads_.empty() && !slot.ready) prepare_part(lock);
  ready_.wait(lock, [&] { return slot.ready; });
  if (slot.error) std::rethrow_exception(slot.error);
  return number;
}

bool Prefetcher::is_of_this_process() const noexcept { return process_ == ::getpid(); }

void Prefetcher::give_back() {
  {
    const std::lock_guard lock(mutex_);
    Slot& slot = slots_[at(static_cast<int>(taken_ % plan_.slots))];
    slot.ready = false;
    slot.parts_left = plan_.parts;
    ++taken_;
  }
  room_.notify_all();
}

}  // namespace tenon::data
