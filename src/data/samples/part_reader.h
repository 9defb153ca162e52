// Sources that are read once, whichever parts are opened.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include <tenon/data.h>

namespace tenon::data {

/// Opens one part of a source; null if the source has no such part. Files are read when a part
/// first needs them. Thread-safe.
using PartReader = std::function<std::shared_ptr<Dataset>(Split)>;

/// Calls `make` on first access, once for all threads and copies. Exceptions of `make` reach the
/// caller, and the next access tries again.
template <class Make>
auto once(Make make) {
  using Value = std::invoke_result_t<Make&>;
  struct State {
    explicit State(Make&& how) : make(std::move(how)) {}
    std::mutex mutex;
    Make make;
    std::optional<Value> value;
  };
  auto state = std::make_shared<State>(std::move(make));
  return [state]() -> const Value& {
    const std::lock_guard lock(state->mutex);
    if (!state->value) state->value.emplace(state->make());
    return *state->value;
  };
}

}  // namespace tenon::data
