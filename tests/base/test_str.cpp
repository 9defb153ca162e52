// Messages, suggestions, the environment and the log sink.
#include <doctest/doctest.h>
#include <tenon/error.h>
#include <tenon/log.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>

#include "base/str.h"
#include "base/system/env.h"
#include "base/system/log.h"

using namespace tenon;

TEST_CASE("str: cat concatenates strings, numbers, shapes and dtypes") {
  CHECK(cat("a", 'b', std::string("c"), 1, -2, std::size_t{3}, 0.1, 2.0) == "abc1-230.12");
  CHECK(cat(Shape{2, 3}, " of ", DType::BFloat16) == "[2, 3] of bfloat16");
  CHECK(cat() == "");
  CHECK(cat(true, static_cast<signed char>(-8), static_cast<unsigned char>(255), short{-9},
            static_cast<unsigned short>(65535)) == "1-8255-965535");
  CHECK(cat(std::numeric_limits<int>::min(), " ", std::numeric_limits<unsigned>::max(), " ",
            std::numeric_limits<std::int64_t>::min(), " ",
            std::numeric_limits<std::uint64_t>::max()) ==
        "-2147483648 4294967295 -9223372036854775808 18446744073709551615");
  char letters[8] = "array";
  const char* const pointer = "pointer";
  CHECK(cat(letters, ' ', pointer, ' ', std::string_view("view of more").substr(0, 4)) ==
        "array pointer view");
  CHECK(cat(Scalar(3), " ", Scalar(0.5)) == "3 0.5");
  // More parts than registers, numbers of both kinds.
  CHECK(cat(1, 0.5, 2, 1.5, 3, 2.5, 4, 3.5, 5, 4.5, 6, 5.5, 7, 6.5, 8, 7.5, 9, 8.5, 10, 9.5) ==
        "10.521.532.543.554.565.576.587.598.5109.5");
  CHECK(cat(0.1f) == "0.1");
  CHECK(cat(-std::numeric_limits<double>::quiet_NaN(), -NAN) == "nannan");
}

TEST_CASE("str: the nearest candidate, or none") {
  const std::string names[] = {"momentum", "epochs", "batch"};
  CHECK(nearest("epoch", names, 3) == "epochs");
  CHECK(nearest("bacth", names, 3) == "batch");
  CHECK(nearest("momentun", names, 3) == "momentum");
  CHECK(nearest("EPOCHS", names, 3) == "epochs");
  CHECK(nearest("BACTH", names, 3) == "batch");
  CHECK(nearest("wholly-else", names, 3) == "");
  CHECK(nearest("", names, 0) == "");
}

TEST_CASE("env: text, integers and flags") {
  const char* variable = "TENON_TEST_VARIABLE";
  unsetenv(variable);
  CHECK(env_text(variable, "x") == "x");
  CHECK(env_int(variable, 7) == 7);
  CHECK(env_flag(variable, true));
  setenv(variable, "12", 1);
  CHECK(env_int(variable, 7) == 12);
  CHECK_THROWS_WITH_AS(env_flag(variable, true), doctest::Contains(variable), ValueError);
  setenv(variable, "12x", 1);
  CHECK_THROWS_WITH_AS(env_int(variable, 7), doctest::Contains(variable), ValueError);
  setenv(variable, "off", 1);
  CHECK_FALSE(env_flag(variable, true));
  unsetenv(variable);
}

TEST_CASE("log: messages reach the sink, and nothing happens without a sink") {
  std::string seen;
  log_message(LogLevel::Info, "lost");
  set_log_sink([](LogLevel, std::string_view text,
                  void* context) { static_cast<std::string*>(context)->append(text); },
               &seen);
  log_message(LogLevel::Warning, "kept");
  set_log_sink(nullptr);
  log_message(LogLevel::Warning, "lost");
  CHECK(seen == "kept");
}
