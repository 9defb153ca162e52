// Thread-local values with destructors.
#pragma once

#include <pthread.h>

#include <memory>
#include <new>

namespace tenon {

/// A replacement for `thread_local T` if T has a destructor: glibc terminates the process if it
/// finds no memory to register such a destructor; here get() throws std::bad_alloc. The value is
/// created on a thread's first call and destroyed when the thread ends; the main thread's value is
/// never destroyed. For use in static storage.
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
