// Typed compiled functions: one compiled function for each combination of sizes of the lists among
// the arguments.
#include <map>
#include <mutex>
#include <utility>

#include <tenon/compile.h>
#include <tenon/context.h>

#include "base/per_thread.h"
#include "graph/constants_guard.h"
#include "graph/context.h"
#include "run/result_sizes.h"

namespace tenon {
namespace {

using Sizes = std::vector<std::int64_t>;

Sizes& result_sizes() {
  static const PerThread<Sizes> instance;
  return instance.get();
}

}  // namespace

void give_result_sizes(Sizes sizes) { result_sizes() = std::move(sizes); }
Sizes take_result_sizes() { return std::exchange(result_sizes(), {}); }

namespace detail {

std::size_t TensorParts::size(std::size_t own) {
  if (fills_) return static_cast<std::size_t>(sizes[next_size_++]);
  sizes.push_back(static_cast<std::int64_t>(own));
  return own;
}

// The functions keep the context that was current when the typed function was compiled, although
// they are made later.
struct CompiledParts::Impl {
  const Function function;
  const CompiledFunction::Guards guards;
  const Context context = current_context();
  const bool constant = builds_constants();
  std::mutex mutex;
  std::map<Sizes, CompiledFunction> functions;

  Impl(Function f, CompiledFunction::Guards g) : function(std::move(f)), guards(std::move(g)) {}

  CompiledFunction of(const Sizes& sizes) {
    const std::lock_guard lock(mutex);
    const auto [found, fresh] = functions.try_emplace(sizes);
    if (fresh) {
      const ContextScope scope(context);
      const ConstantsGuard constants(constant);
      found->second = compile(
          [this, sizes](const std::vector<Tensor>& in) {
            TensorParts out = function(TensorParts(in, sizes));
            give_result_sizes(std::move(out.sizes));
            return std::move(out.tensors);
          },
          guards);
    }
    return found->second;
  }
};

CompiledParts::CompiledParts(Function f, CompiledFunction::Guards guards)
    : impl_(std::make_shared<Impl>(std::move(f), std::move(guards))) {}

TensorParts CompiledParts::operator()(TensorParts arguments) const {
  const Outputs out = impl_->of(arguments.sizes)(arguments.tensors);
  return {out, out.sizes()};
}

}  // namespace detail
}  // namespace tenon
