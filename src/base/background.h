// Work beside the caller's own.
#pragma once

#include <future>
#include <memory>
#include <system_error>
#include <type_traits>
#include <utility>

namespace tenon {

/// Runs f() on a thread of its own; where the system has none to give, when get() or wait() asks
/// for its result. Whoever polls with wait_for must still ask in the end.
template <class F>
auto in_background(F f) -> std::future<std::invoke_result_t<F&>> {
  // std::async takes what it is given before it asks for a thread.
  const auto shared = std::make_shared<F>(std::move(f));
  const auto run = [shared] { return (*shared)(); };
  try {
    return std::async(std::launch::async, run);
  } catch (const std::system_error&) {
    return std::async(std::launch::deferred, run);
  }
}

}  // namespace tenon
