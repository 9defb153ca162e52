// Values of which each thread has its own.
#pragma once

#include <pthread.h>

#include <memory>
#include <new>

namespace tenon {

/// In place of `thread_local T` where T has a destructor: glibc ends the process when it finds no
/// memory to note such a destructor, and here get() throws std::bad_alloc. Made on a thread's first
/// call, and destroyed when the thread ends; the main thread's stays. To stand in static storage.
template <class T>
class PerThread {
 public:
  PerThread() {
    if (::pthread_key_create(&key_, [](void* value) { delete static_cast<T*>(value); }) != 0)
      throw std::bad_alloc();
  }
  T& get() const {
    if (void* const known = ::pthread_getspecific(key_)) return *static_cast<T*>(known);
    auto made = std::make_unique<T>();
    if (::pthread_setspecific(key_, made.get()) != 0) throw std::bad_alloc();
    return *made.release();
  }

 private:
  pthread_key_t key_{};
};

}  // namespace tenon
