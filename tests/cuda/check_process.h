// Test cases that run in their own process.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"

namespace tenon::test {

/// Checks that a test case, which is otherwise skipped, passes in its own process and that the
/// process ends normally. `how` precedes its command.
inline void check_process(const std::string& how, const std::string& test_case) {
  const std::string command =
      cat(how, " /proc/", getpid(), "/exe --no-skip --test-case='", test_case, "' >/dev/null");
  const int status = std::system(command.c_str());
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

}  // namespace tenon::test
