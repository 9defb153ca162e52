// Fibers: separate stacks that pass control to one another. The threads of an emulated block are
// fibers of one CPU thread.
#pragma once

#include <cstddef>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace tenon_emulator {

class Fiber {
 public:
  /// The fiber of the stack that is running.
  Fiber() = default;
  /// `body` never returns; it starts at the first switch to the fiber.
  explicit Fiber(void (*body)());
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Makes the next switch start `body` from its beginning.
  void restart();
  static void switch_to(Fiber& from, Fiber& to);

 private:
  static constexpr std::size_t stack_bytes = 128 * 1024, guard_bytes = 4096;
  void* stack_ = nullptr;
  void (*body_)() = nullptr;
#if defined(__x86_64__)
  void* top_ = nullptr;  // stack pointer while another fiber runs
#else
  ucontext_t context_{};
#endif
};

}  // namespace tenon_emulator
