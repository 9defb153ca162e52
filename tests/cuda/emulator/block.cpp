// The scheduler, and the operations of several threads of a block.
//
// Invariant: ready_ has the threads that may continue. A waiting thread is in its warp's `arrived`
// or is counted in at_barrier_. The last thread to arrive does the work for all and continues.
// Stricter than a GPU where CUDA leaves the result undefined: the launch fails if a thread ends
// while others of its block wait for it, or if lanes of a warp are at different operations.
#include "block.h"

#include <setjmp.h>
#include <signal.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "fiber.h"
#include "warp.h"

namespace tenon_emulator {
namespace {

struct Copy {
  void* to;
  const void* from;
  int bytes;  // 0: end of a group
  bool inside;
};

struct Thread {
  Index3 index{};
  Fiber* fiber = nullptr;  // null before its start and after its end
  bool done = false;
  std::vector<Copy> copies;  // still to be made
};

struct Warp {
  std::uint32_t ready = 0, arrived = 0, present = 0;
  const char* operation = nullptr;  // the barrier at which the arrived lanes wait
  WarpCall calls[32];
};

sigjmp_buf escape;
volatile sig_atomic_t in_kernel = 0;
struct sigaction previous_actions[3];
constexpr std::size_t shared_guard = 512;
constexpr int signals[3] = {SIGSEGV, SIGBUS, SIGFPE};

class Block {
 public:
  void begin(const Launch& launch);
  std::string run();

  void sync_block();
  void warp_operation(const char* name, const WarpCall& call);
  void fail(const std::string& message);
  Thread& current() { return threads_[at_]; }
  unsigned char* dynamic_shared() { return dynamic_; }
  std::string where() const;
  void thread_body();

 private:
  void start_block();
  void resume(unsigned thread);
  void wait();
  std::string describe_waiting() const;
  Fiber& take_fiber();

  const Launch* launch_ = nullptr;
  unsigned count_ = 0, at_ = 0, done_ = 0, at_barrier_ = 0;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
  Fiber scheduler_;
  std::vector<unsigned char> dynamic_memory_;
  unsigned char* dynamic_ = nullptr;
  std::string failure_;
};

Block& machine() {
  static Block block;
  return block;
}

std::string text(const Index3& i) {
  return "(" + std::to_string(i.x) + ", " + std::to_string(i.y) + ", " + std::to_string(i.z) + ")";
}

std::string Block::where() const {
  return "block " + text(*launch_->module->block) + ", thread " + text(threads_[at_].index);
}

void fiber_body() { machine().thread_body(); }

void Block::thread_body() {
  for (;;) {
    launch_->entry->call(launch_->params);
    Thread& thread = current();
    thread.done = true;
    ++done_;
    idle_.push_back(thread.fiber);
    Fiber* own = thread.fiber;
    thread.fiber = nullptr;
    Fiber::switch_to(*own, scheduler_);
  }
}

Fiber& Block::take_fiber() {
  if (idle_.empty()) {
    fibers_.push_back(std::make_unique<Fiber>(fiber_body));
    idle_.push_back(fibers_.back().get());
  }
  Fiber* fiber = idle_.back();
  idle_.pop_back();
  return *fiber;
}

void Block::resume(unsigned thread) {
  at_ = thread;
  Thread& next = threads_[thread];
  if (next.fiber == nullptr) next.fiber = &take_fiber();
  *launch_->module->thread = next.index;
  Fiber::switch_to(scheduler_, *next.fiber);
}

void Block::wait() { Fiber::switch_to(*current().fiber, scheduler_); }

void Block::fail(const std::string& message) {
  if (failure_.empty()) failure_ = message;
  wait();
}

void Block::sync_block() {
  if (++at_barrier_ < count_) {
    wait();
    return;
  }
  at_barrier_ = 0;
  for (Warp& warp : warps_) warp.ready = warp.present;
  warps_[at_ / 32].ready &= ~(1u << (at_ % 32));
}

void Block::warp_operation(const char* name, const WarpCall& call) {
  Warp& warp = warps_[at_ / 32];
  if (warp.arrived != 0 && warp.operation != name && std::strcmp(warp.operation, name) != 0) {
    fail(where() + " calls " + name + " while other lanes of its warp wait at " + warp.operation);
  }
  const std::uint32_t lane = 1u << (at_ % 32);
  warp.operation = name;
  warp.calls[at_ % 32] = call;
  warp.arrived |= lane;
  if (warp.arrived != warp.present) {
    wait();
    return;
  }
  warp.arrived = 0;
  const char* wrong = call.apply(warp.calls, warp.present);
  if (wrong != nullptr) fail(where() + ": " + name + ": " + wrong);
  warp.ready |= warp.present & ~lane;
}

std::string Block::describe_waiting() const {
  std::string message = "block " + text(*launch_->module->block) + " cannot go on: ";
  message += std::to_string(done_) + " of " + std::to_string(count_) + " threads have ended, " +
             std::to_string(at_barrier_) + " wait at __syncthreads()";
  for (std::size_t w = 0; w < warps_.size(); ++w) {
    const Warp& warp = warps_[w];
    if (warp.arrived == 0) continue;
    message += ", " + std::to_string(__builtin_popcount(warp.arrived)) + " of " +
               std::to_string(__builtin_popcount(warp.present)) + " lanes of warp " +
               std::to_string(w) + " wait at " + warp.operation;
  }
  return message;
}

/// Shared memory starts as NaN, so that reads of unwritten memory show.
void Block::start_block() {
  const Module& module = *launch_->module;
  std::memset(module.shared_begin, 0xff,
              static_cast<std::size_t>(module.shared_end - module.shared_begin));
  std::memset(dynamic_memory_.data(), 0xff, dynamic_memory_.size());
  done_ = at_barrier_ = 0;
  for (Thread& thread : threads_) {
    thread.done = false;
    thread.copies.clear();
  }
  for (std::size_t w = 0; w < warps_.size(); ++w) {
    const unsigned left = count_ - static_cast<unsigned>(w) * 32;
    warps_[w].present = left >= 32 ? 0xffffffffu : (1u << left) - 1;
    warps_[w].ready = warps_[w].present;
    warps_[w].arrived = 0;
  }
}

void Block::begin(const Launch& launch) {
  launch_ = &launch;
  const Index3 size = launch.block;
  count_ = size.x * size.y * size.z;
  threads_.assign(count_, Thread{});
  warps_.assign((count_ + 31) / 32, Warp{});
  for (unsigned i = 0; i < count_; ++i) {
    threads_[i].index = {i % size.x, i / size.x % size.y, i / size.x / size.y};
  }
  // Restarted, because a failed launch leaves fibers in the middle of a kernel.
  idle_.clear();
  for (const auto& fiber : fibers_) {
    fiber->restart();
    idle_.push_back(fiber.get());
  }
  dynamic_memory_.assign(launch.shared_bytes + 256 + shared_guard, 0xff);
  const auto base = reinterpret_cast<std::uintptr_t>(dynamic_memory_.data());
  dynamic_ = dynamic_memory_.data() + (256 - base % 256) % 256;
  failure_.clear();
}

std::string Block::run() {
  start_block();
  bool moved = true;
  while (moved) {
    moved = false;
    for (unsigned w = 0; w < warps_.size(); ++w) {
      while (warps_[w].ready != 0) {
        const auto lane = static_cast<unsigned>(__builtin_ctz(warps_[w].ready));
        warps_[w].ready &= ~(1u << lane);
        resume(w * 32 + lane);
        if (!failure_.empty()) return failure_;
        moved = true;
      }
    }
  }
  const unsigned char* behind = dynamic_ + launch_->shared_bytes;
  if (std::any_of(behind, behind + shared_guard, [](unsigned char x) { return x != 0xff; })) {
    return "block " + text(*launch_->module->block) + " writes behind its dynamic shared memory";
  }
  return done_ == count_ ? "" : describe_waiting();
}

void on_signal(int number, siginfo_t* info, void* context) {
  if (in_kernel != 0) siglongjmp(escape, number);
  for (int i = 0; i < 3; ++i) {
    if (signals[i] != number) continue;
    const struct sigaction& previous = previous_actions[i];
    if ((previous.sa_flags & SA_SIGINFO) != 0) return previous.sa_sigaction(number, info, context);
    if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
      return previous.sa_handler(number);
    }
    signal(number, SIG_DFL);
    raise(number);
  }
}

/// Catches the signals of invalid accesses during a launch, on a separate stack, since a fiber's
/// stack may have overflowed.
class Signals {
 public:
  Signals() {
    stack_t stack{};
    stack.ss_sp = memory_;
    stack.ss_size = sizeof memory_;
    sigaltstack(&stack, &previous_stack_);
    struct sigaction action {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    for (int i = 0; i < 3; ++i) sigaction(signals[i], &action, &previous_actions[i]);
  }
  ~Signals() {
    for (int i = 0; i < 3; ++i) sigaction(signals[i], &previous_actions[i], nullptr);
    sigaltstack(&previous_stack_, nullptr);
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

 private:
  static inline char memory_[64 * 1024];
  stack_t previous_stack_{};
};

void sync_block() { machine().sync_block(); }

void run_copy(const Copy& copy) {
  if (copy.inside) {
    std::memcpy(copy.to, copy.from, static_cast<std::size_t>(copy.bytes));
  } else {
    std::memset(copy.to, 0, static_cast<std::size_t>(copy.bytes));
  }
}

void copy_async(void* shared, const void* global, int bytes, bool inside) {
  const auto wanted = static_cast<std::uintptr_t>(bytes) - 1;
  if ((reinterpret_cast<std::uintptr_t>(shared) & wanted) != 0 ||
      (inside && (reinterpret_cast<std::uintptr_t>(global) & wanted) != 0)) {
    machine().fail(machine().where() + ": copy_async of " + std::to_string(bytes) +
                   " bytes from or to an address that is not aligned so");
  }
  machine().current().copies.push_back({shared, global, bytes, inside});
}

void copy_async_commit() { machine().current().copies.push_back({nullptr, nullptr, 0, false}); }

void copy_async_wait(int groups_left) {
  std::vector<Copy>& copies = machine().current().copies;
  auto left =
      std::count_if(copies.begin(), copies.end(), [](const Copy& copy) { return copy.bytes == 0; });
  auto next = copies.begin();
  for (; left > groups_left; ++next) {
    if (next->bytes == 0) {
      --left;
    } else {
      run_copy(*next);
    }
  }
  copies.erase(copies.begin(), next);
}

unsigned char* dynamic_shared() { return machine().dynamic_shared(); }

void trap(const char* message) { machine().fail(machine().where() + ": " + message); }

void sync_warp() { machine().warp_operation("__syncwarp()", sync_call()); }

void shuffle(Shuffle mode, void* value, int bytes, int argument) {
  machine().warp_operation("a shuffle", shuffle_call(mode, value, bytes, argument));
}

void mma(Mma kind, float* d, const unsigned* a, const unsigned* b) {
  machine().warp_operation("mma", mma_call(kind, d, a, b));
}

void load_matrix(int count, bool transposed, unsigned* registers, const void* row) {
  machine().warp_operation("ldmatrix", load_matrix_call(count, transposed, registers, row));
}

constexpr Runtime runtime = {sync_block,     sync_warp,  shuffle,           mma,
                             load_matrix,    copy_async, copy_async_commit, copy_async_wait,
                             dynamic_shared, trap};

}  // namespace

void attach_runtime(const Module& module) { *module.runtime = &runtime; }

std::string run_grid(const Launch& launch, bool* illegal_address) {
  *illegal_address = false;
  *launch.module->grid_dim = launch.grid;
  *launch.module->block_dim = launch.block;
  const Signals signals_taken;
  const int number = sigsetjmp(escape, 1);
  if (number != 0) {
    in_kernel = 0;
    *illegal_address = number != SIGFPE;
    return machine().where() + (number == SIGFPE ? ": division of whole numbers by zero"
                                                 : ": access to memory that is not there");
  }
  machine().begin(launch);
  in_kernel = 1;
  std::string failure;
  Index3& at = *launch.module->block;
  for (at.z = 0; at.z < launch.grid.z && failure.empty(); ++at.z) {
    for (at.y = 0; at.y < launch.grid.y && failure.empty(); ++at.y) {
      for (at.x = 0; at.x < launch.grid.x && failure.empty(); ++at.x) {
        failure = machine().run();
      }
    }
  }
  in_kernel = 0;
  return failure;
}

}  // namespace tenon_emulator
