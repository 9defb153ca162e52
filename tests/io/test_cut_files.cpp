// Files that another process truncates while they are read: an error that names the file, no
// SIGBUS.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <tenon/error.h>
#include <tenon/eval.h>
#include <tenon/io.h>
#include <tenon/ops.h>
#include <tenon/weights.h>

#include "io/file.h"
#include "io/folder.h"

using namespace tenon;

namespace {

template <class F>
std::string refusal(const F& work) {
  try {
    work();
  } catch (const FormatError& error) {
    return error.what();
  }
  return "";
}

// Signal handlers that a program installs itself.
std::atomic<int> first_calls{0}, second_calls{0};
struct sigaction before_second {};
void first_handler(int, siginfo_t*, void*) { ++first_calls; }
void second_handler(int signal, siginfo_t* info, void* context) {
  ++second_calls;
  before_second.sa_sigaction(signal, info, context);
}
void handle(void (*handler)(int, siginfo_t*, void*), struct sigaction* before) {
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO;
  REQUIRE(::sigaction(SIGBUS, &action, before) == 0);
}

// Maps a file, truncates it and reads the lost pages. Returns whether the loss is detected.
bool cut_is_seen(const std::string& path) {
  io::write_file(path, std::string(100'000, 'x'));
  const io::MappedFile file(path);
  if (::truncate(path.c_str(), 10) != 0 || file.bytes()[50'000] != '\0') return false;
  return !refusal([&] { file.require_whole(); }).empty();
}

}  // namespace

TEST_CASE("cut files: (the process with handlers of its own)" * doctest::skip()) {
  const char* place = std::getenv("TENON_TEST_CUT");
  if (place == nullptr) return;
  const std::string folder = place;
  handle(first_handler, nullptr);
  CHECK(cut_is_seen(folder + "/a"));
  CHECK(first_calls == 0);
  ::raise(SIGBUS);  // not inside a mapped file
  CHECK(first_calls == 1);
  handle(second_handler, &before_second);
  CHECK(cut_is_seen(folder + "/b"));
  CHECK(first_calls == 1);
  CHECK(second_calls == 1);
  ::raise(SIGBUS);
  CHECK(first_calls == 2);
  CHECK(second_calls == 2);
  std::atomic<int> seen{0};
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; ++k)
    threads.emplace_back([&, k] {
      for (int n = 0; n < 20; ++n) seen += cut_is_seen(folder + "/" + std::to_string(k)) ? 1 : 0;
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(seen == 80);
}

// In a separate process, because the library installs its handler once.
TEST_CASE("cut files: handlers that a program sets before and after the library's") {
  const TestFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(::open("/dev/null", O_WRONLY), STDOUT_FILENO);
    ::setenv("TENON_TEST_CUT", (folder / "").c_str(), 1);
    ::execl("/proc/self/exe", "tests", "--no-skip",
            "--test-case=cut files: (the process with handlers of its own)", nullptr);
    ::_exit(127);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("cut files: weights of every format") {
  const TestFolder folder;
  const io::TensorMap tensors{{"a", full({1000}, 1.5).eval()}, {"b", full({1 << 20}, 2.5).eval()}};
  for (const char* name : {"w.safetensors", "w.pt", "w.npz"}) {
    const std::string path = folder / name;
    for (const off_t left : {off_t{0}, off_t{4096}, off_t{2'000'000}}) {
      io::save_weights(path, tensors);
      const io::WeightFile file(path);
      REQUIRE(::truncate(path.c_str(), left) == 0);
      CAPTURE(name);
      CAPTURE(left);
      for (std::size_t k = 0; k < 2; ++k)
        CHECK(refusal([&] { file.read(k); }).find(path + ": was truncated from") == 0);
      CHECK(refusal([&] { file.read_all(); }) != "");
    }
    // Truncated within the last page, where the system returns zeros without a signal.
    io::save_weights(path, tensors);
    const io::WeightFile file(path);
    CHECK(file.read_all().at("b").numel() == 1 << 20);
    const auto size = static_cast<off_t>(io::InputFile(path).size());
    REQUIRE(::truncate(path.c_str(), size - 1) == 0);
    CHECK(refusal([&] { file.read(1); }) != "");
  }
}

TEST_CASE("cut files: a file that is truncated while it is copied") {
  const TestFolder folder;
  const std::string path = folder / "w.safetensors";
  const io::TensorMap tensors{{"a", full({1 << 22}, 1.5).eval()}};
  for (int k = 0; k < 10; ++k) {
    io::save_weights(path, tensors);
    const io::WeightFile file(path);
    std::thread other([&] {
      for (off_t left = 1 << 24; left > 0; left /= 2)
        if (::truncate(path.c_str(), left) != 0) return;
    });
    const std::string why = refusal([&] { file.read(0); });
    other.join();
    CHECK((why.empty() || why.find("was truncated") != std::string::npos));
    CHECK(refusal([&] { file.read(0); }) != "");
  }
}

TEST_CASE("cut files: mapped ranges are watched as long as they are mapped") {
  const TestFolder folder;
  io::write_file(folder / "a", std::string(100'000, 'x'));
  for (int k = 0; k < 3; ++k) {
    const io::MappedFile one(folder / "a"), two(folder / "a");
    one.require_whole();
    CHECK(one.bytes() == two.bytes());
  }
  const io::MappedFile file(folder / "a");
  REQUIRE(::truncate((folder / "a").c_str(), 10) == 0);
  CHECK(file.bytes()[50'000] == '\0');
  CHECK_THROWS_AS(file.require_whole(), FormatError);
  io::write_file(folder / "empty", "");
  io::MappedFile(folder / "empty").require_whole();
}
