// x86-64: pushes the registers that calls preserve (System V) and exchanges the stack pointer.
// Elsewhere ucontext, which costs a system call per switch.
#include "fiber.h"

#include <sys/mman.h>

#include <new>

#if defined(__x86_64__)
extern "C" void tenon_switch_stacks(void** from, void* to);
asm(R"(
.text
.globl tenon_switch_stacks
.hidden tenon_switch_stacks
.type tenon_switch_stacks, @function
tenon_switch_stacks:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size tenon_switch_stacks, .-tenon_switch_stacks
)");
#endif

namespace tenon_emulator {

Fiber::Fiber(void (*body)()) : body_(body) {
  stack_ = mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stack_ == MAP_FAILED) throw std::bad_alloc();
  mprotect(stack_, guard_bytes, PROT_NONE);
  restart();
}

Fiber::~Fiber() {
  if (stack_ != nullptr) munmap(stack_, stack_bytes);
}

void Fiber::restart() {
#if defined(__x86_64__)
  // Six registers, the address that `ret` takes, and the slot that a call would have used, so that
  // the body finds the stack aligned as after a call.
  auto* top = reinterpret_cast<void**>(static_cast<char*>(stack_) + stack_bytes);
  *--top = nullptr;
  *--top = reinterpret_cast<void*>(body_);
  for (int i = 0; i < 6; ++i) *--top = nullptr;
  top_ = top;
#else
  getcontext(&context_);
  context_.uc_stack.ss_sp = static_cast<char*>(stack_) + guard_bytes;
  context_.uc_stack.ss_size = stack_bytes - guard_bytes;
  context_.uc_link = nullptr;
  makecontext(&context_, body_, 0);
#endif
}

void Fiber::switch_to(Fiber& from, Fiber& to) {
#if defined(__x86_64__)
  tenon_switch_stacks(&from.top_, to.top_);
#else
  swapcontext(&from.context_, &to.context_);
#endif
}

}  // namespace tenon_emulator
