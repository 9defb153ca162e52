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

/// Opens one part of a source; nullptr where it has no such part. It reads files when a part first
/// needs them, and may be called from several threads at a time.
using PartReader = std::function<std::shared_ptr<Dataset>(Split)>;

/// Calls `make` when its value is first asked for, once for all threads and copies. What `make`
/// throws is thrown to who asks, and the next one to ask tries again.
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
