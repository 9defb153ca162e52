// Loaders when the system refuses threads, after a fork, and at the end of the program.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <tenon/data.h>
#include <tenon/error.h>

#include "base/background.h"
#include "base/thread_pool.h"

using namespace tenon;

namespace {

/// While it lives, no thread can be created: its stack would exceed the address space.
class NoThreads {
 public:
  NoThreads() {
    pthread_attr_t attributes;
    ::pthread_getattr_default_np(&before_);
    ::pthread_attr_init(&attributes);
    REQUIRE(::pthread_attr_setstacksize(&attributes, std::size_t{1} << 47) == 0);
    REQUIRE(::pthread_setattr_default_np(&attributes) == 0);
    ::pthread_attr_destroy(&attributes);
  }
  ~NoThreads() {
    ::pthread_setattr_default_np(&before_);
    ::pthread_attr_destroy(&before_);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  pthread_attr_t before_;
};

/// A set of the numbers from 0; each takes long enough to use threads.
class Numbers : public data::Dataset {
 public:
  Numbers() : Dataset({.input_shape = {1}, .input_dtype = DType::Int64, .classes = 1}) {}
  std::int64_t size() const override { return 1000; }
  void get(std::span<const std::int64_t> indices, void* inputs, void* targets) const override {
    std::copy(indices.begin(), indices.end(), static_cast<std::int64_t*>(inputs));
    std::copy(indices.begin(), indices.end(), static_cast<std::int64_t*>(targets));
  }
};

data::LoaderOptions with_threads() {
  data::LoaderOptions options;
  options.batch = 10;
  options.workers = 4;
  options.prefetch = 3;
  return options;
}

std::vector<std::int64_t> take_batches(data::Loader& loader, int batches) {
  std::vector<std::int64_t> all, input(10), target(10);
  for (int k = 0; k < batches && loader.next(input.data(), target.data()) > 0; ++k)
    all.insert(all.end(), input.begin(), input.end());
  return all;
}

/// The exit code of a forked process that calls f(); -1 if it was killed or hangs.
template <class F>
int in_other_process(const F& work) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::alarm(60);
    ::_exit(work());
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("loader processes: without threads the caller makes the batches") {
  data::Loader plain(std::make_shared<Numbers>(), with_threads());
  const std::vector<std::int64_t> wanted = take_batches(plain, 150);
  const NoThreads none;
  CHECK_THROWS(std::thread([] {}).join());
  data::Loader loader(std::make_shared<Numbers>(), with_threads());
  CHECK((take_batches(loader, 150) == wanted));
  CHECK(in_background([] { return 7; }).get() == 7);
  std::atomic<std::int64_t> sum{0};
  parallel_for(100, [&](std::int64_t chunk, int) { sum += chunk; });
  CHECK(sum == 4950);
}

// ThreadSanitizer does not support threads in a forked process.
#if !defined(__SANITIZE_THREAD__)
TEST_CASE("loader processes: after a fork the new process continues with its own threads") {
  data::Loader loader(std::make_shared<Numbers>(), with_threads());
  take_batches(loader, 20);
  data::Loader other(std::make_shared<Numbers>(), with_threads());
  take_batches(other, 20);
  const std::vector<std::int64_t> wanted = take_batches(other, 30);
  std::atomic<int> worker{0};
  parallel_for(100, [&](std::int64_t, int) { ++worker; });
  CHECK(in_other_process([&] {
          const bool same = take_batches(loader, 30) == wanted;
          std::atomic<int> chunks{0};
          parallel_for(100, [&](std::int64_t, int) { ++chunks; });
          return same && chunks == 100 ? 0 : 1;
        }) == 0);
  CHECK(in_other_process([&] {
          loader.set_state({0, 0, 0});
          { data::Loader ends_here(std::make_shared<Numbers>(), with_threads()); }
          return 0;
        }) == 0);
  CHECK((take_batches(loader, 30) == wanted));  // so does the parent process
}

TEST_CASE("loader processes: a loader may be working when the program ends") {
  for (int k = 0; k < 12; ++k) {
    CHECK(in_other_process([k]() -> int {
            data::LoaderOptions options = with_threads();
            options.batch = 50;
            options.workers = 8;
            const auto set = data::open_dataset(k % 2 == 0 ? "digits:2000,10" : "scenes:2000,10",
                                                data::Split::Train);
            static auto* loader = new data::Loader(set, options);
            data::Batch batch;
            loader->next(batch);
            std::exit(0);
          }) == 0);
  }
}
#endif
