// Runs work in the background of the calling thread.
#pragma once

#include <future>
#include <memory>
#include <system_error>
#include <type_traits>
#include <utility>

namespace tenon {

/// Runs f() on a separate thread. If the system cannot start a thread, f() runs when get() or
/// wait() is called; a caller that polls with wait_for must therefore call get() at the end.
template <class F>
auto in_background(F f) -> std::future<std::invoke_result_t<F&>> {
  // std::async moves its argument away before it asks for a thread.
  const auto shared = std::make_shared<F>(std::move(f));
  const auto run = [shared] { return (*shared)(); };
  try {
    return std::async(std::launch::async, run);
  } catch (const std::system_error&) {
    return std::async(std::launch::deferred, run);
  }
}

}  // namespace tenon
