// Contexts of threads: each thread has one pointer, to its innermost scope's context or to its own.
#include "graph/context.h"

#include <tenon/error.h>

#include "base/make_error.h"
#include "base/per_thread.h"
#include "base/thread_pool.h"

namespace tenon {
namespace {

constexpr const char* kTuneNames[] = {"off", "read", "write"};

thread_local Context* t_context = nullptr;

Context& own_context() {
  static const PerThread<Context> context;
  return context.get();
}

}  // namespace

const char* name(Tune value) { return kTuneNames[static_cast<int>(value)]; }

Tune tune_from_name(const std::string& text) {
  for (int k = 0; k < 3; ++k)
    if (text == kTuneNames[k]) return static_cast<Tune>(k);
  throw make_error<ValueError>("tune '", text, "' is unknown: use off, read or write");
}

Context::Context() = default;

const Context* known_context() noexcept { return t_context; }

Context& this_context() {
  if (t_context == nullptr) t_context = &own_context();
  return *t_context;
}

void check_threads(int count) {
  if (count < 0 || count > 1024)
    throw make_error<ValueError>("threads = ", count, ": use 1 to 1024, or 0 for all CPUs");
}

void check_memory_limit(std::int64_t bytes) {
  if (bytes < 0)
    throw make_error<ValueError>("memory limit = ", bytes,
                                 ": use a number of bytes, or 0 for none");
}

const Context& current_context() { return this_context(); }

ContextScope::ContextScope(const Context& context) : context_(context), outer_(&this_context()) {
  check_threads(context_.threads);
  check_memory_limit(context_.memory_limit);
  t_context = &context_;
  set_num_threads(context_.threads);
}

ContextScope::~ContextScope() {
  t_context = outer_;
  set_num_threads(outer_->threads);
}

}  // namespace tenon
