// A socket to each helper process. A request is five texts (the compiler's file, a name, the GPU's
// architecture, the source, the number of headers that it includes) and two texts for each header
// (name, text). A reply is one text: the image, empty if there is none. A text is its length and
// its bytes.
//
// Headers are sent although a helper has them too: the library may have been reinstalled since the
// program started, and the cache key of a kernel is that of the program's headers.
#include "cuda/jit/helpers.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/str.h"
#include "base/system/env.h"
#include "base/thread_pool.h"
#include "cuda/cuda.h"
#include "cuda/jit/embedded.h"

extern char** environ;

namespace tenon::cuda {
namespace {

/// The only argument of a helper process.
constexpr char kWord[] = "--compile-kernels-for-tenon";
constexpr std::chrono::seconds kIdle{5}, kLook{1};
constexpr std::uint64_t kLongestText = std::uint64_t{1} << 28;

/// One end of a socket. Functions return whether the other end is still open.
class Channel {
 public:
  explicit Channel(int descriptor) : descriptor_(descriptor) {}
  ~Channel() { close(descriptor_); }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  bool send(const std::string& text) const {
    const std::uint64_t size = text.size();
    return write(&size, sizeof size) && write(text.data(), text.size());
  }
  bool receive(std::string& text) const {
    std::uint64_t size = 0;
    if (!read(&size, sizeof size) || size > kLongestText) return false;
    text.resize(static_cast<std::size_t>(size));
    return read(text.data(), text.size());
  }
  /// True if data has arrived or the other end has closed.
  bool has_news() const {
    pollfd waiting{descriptor_, POLLIN, 0};
    return poll(&waiting, 1, 0) != 0;
  }

 private:
  bool write(const void* data, std::size_t size) const {
    const auto* at = static_cast<const char*>(data);
    while (size > 0) {
      const ssize_t sent = ::send(descriptor_, at, size, MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) return false;
      at += sent;
      size -= static_cast<std::size_t>(sent);
    }
    return true;
  }
  bool read(void* data, std::size_t size) const {
    auto* at = static_cast<char*>(data);
    while (size > 0) {
      const ssize_t got = recv(descriptor_, at, size, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      at += got;
      size -= static_cast<std::size_t>(got);
    }
    return true;
  }

  const int descriptor_;
};

/// A process and the socket to it; ends it when destroyed.
class Helper {
 public:
  Helper(pid_t process, int descriptor) : process_(process), channel_(descriptor) {}
  ~Helper() {
    stop();
    while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  void stop() const { kill(process_, SIGKILL); }
  /// A helper sends nothing unless asked, so any event on its socket means that it has ended.
  bool is_there() const { return !channel_.has_news(); }
  /// The image; empty if the helper cannot compile.
  std::string compile(const std::string& text, const std::string& file_name, int arch) const {
    const HeaderList headers = headers_of(text);
    for (const std::string& part : {nvrtc().path, file_name, cat(arch), text, cat(headers.size())})
      if (!channel_.send(part)) return {};
    for (const auto& [name, body] : headers)
      if (!channel_.send(name) || !channel_.send(*body)) return {};
    std::string image;
    return channel_.receive(image) ? image : std::string();
  }

 private:
  const pid_t process_;
  const Channel channel_;
};

/// What a new process must not inherit: descriptors (the driver's would keep the GPU's memory
/// allocated) and the signals that the calling thread blocks. The new process blocks signals that
/// are sent to whole process groups and are meant for the program, which may have work to finish.
class Start {
 public:
  explicit Start(int own_end) {
    posix_spawn_file_actions_init(&files_);
    posix_spawn_file_actions_adddup2(&files_, own_end, 0);
    for (const int output : {1, 2})
      posix_spawn_file_actions_addopen(&files_, output, "/dev/null", O_WRONLY, 0);
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
    posix_spawn_file_actions_addclosefrom_np(&files_, 3);
#endif
    posix_spawnattr_init(&attributes_);
    sigset_t blocked;
    sigemptyset(&blocked);
    for (const int signal : {SIGINT, SIGTERM}) sigaddset(&blocked, signal);
    posix_spawnattr_setsigmask(&attributes_, &blocked);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK);
  }
  ~Start() {
    posix_spawn_file_actions_destroy(&files_);
    posix_spawnattr_destroy(&attributes_);
  }
  Start(const Start&) = delete;
  Start& operator=(const Start&) = delete;

  /// The process, or nothing.
  std::optional<pid_t> run(const std::vector<std::string>& command) const {
    std::vector<std::string> words = command;
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_t process = 0;
    if (posix_spawn(&process, arguments[0], &files_, &attributes_, arguments.data(), environ) != 0)
      return {};
    return process;
  }

 private:
  posix_spawn_file_actions_t files_;
  posix_spawnattr_t attributes_;
};

class Helpers {
 public:
  void enable(std::vector<std::string> command) {
    const std::lock_guard lock(mutex_);
    // One core is left to this process, which plans meanwhile.
    const int spare = std::clamp(available_cpus() - 1, 2, 13);
    const std::int64_t most = env_int("TENON_COMPILER_PROCESSES", spare);
    most_ = static_cast<int>(std::clamp<std::int64_t>(most, 0, 64));
    command_ = std::move(command);
  }
  int most() const { return most_; }

  CompileResult compile(const std::string& text, const std::string& file_name, int arch,
                        const std::function<CompileResult()>& here) {
    if (std::unique_ptr<Helper> helper = take()) {
      std::string image = helper->compile(text, file_name, arch);
      give_back(std::move(helper), !image.empty());
      if (!image.empty()) return {std::move(image), {}};
    }
    return here();  // also to get the compiler's messages
  }

  void abandon() {
    const std::lock_guard lock(mutex_);
    most_ = 0;
    for (const Helper* helper : at_work_) helper->stop();
    changed_.notify_all();
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Idle {
    std::unique_ptr<Helper> helper;
    Clock::time_point since;
  };

  /// An idle helper, or a new one; waits while all are busy, because more helpers at a time would
  /// only slow one another down. Null if there can be none: threads then compile in this process.
  std::unique_ptr<Helper> take() {
    std::unique_lock lock(mutex_);
    while (most_ > 0) {
      while (!idle_.empty()) {
        std::unique_ptr<Helper> helper = std::move(idle_.back().helper);
        idle_.pop_back();
        if (helper->is_there()) return begin(std::move(helper));
        --count_;
      }
      if (count_ < most_) {
        std::unique_ptr<Helper> helper = start();
        if (helper == nullptr) {
          most_ = count_;  // there is no room for more
          changed_.notify_all();
          continue;
        }
        ++count_;
        start_watching();
        return begin(std::move(helper));
      }
      changed_.wait(lock);
    }
    return nullptr;
  }

  std::unique_ptr<Helper> begin(std::unique_ptr<Helper> helper) {
    at_work_.insert(helper.get());
    return helper;
  }

  void start_watching() {
    if (watched_) return;
    try {
      std::thread([this] { watch(); }).detach();
      watched_ = true;
    } catch (const std::system_error&) {
      // No thread can be created: the helpers end with the program.
    }
  }

  /// Ends helpers that have been idle for a while, as long as there are any.
  void watch() {
    std::unique_lock lock(mutex_);
    while (count_ > 0) {
      lock.unlock();
      std::this_thread::sleep_for(kLook);
      lock.lock();
      const auto late = Clock::now() - kIdle;
      count_ -= static_cast<int>(
          std::erase_if(idle_, [late](const Idle& idle) { return idle.since < late; }));
    }
    watched_ = false;
  }

  void give_back(std::unique_ptr<Helper> helper, bool works) {
    const std::lock_guard lock(mutex_);
    at_work_.erase(helper.get());
    if (works)
      idle_.push_back({std::move(helper), Clock::now()});
    else
      --count_;
    changed_.notify_one();
  }

  std::unique_ptr<Helper> start() const {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return nullptr;
    const std::optional<pid_t> process = Start(ends[1]).run(command_);
    close(ends[1]);
    if (process) return std::make_unique<Helper>(*process, ends[0]);
    close(ends[0]);
    return nullptr;
  }

  std::mutex mutex_;
  std::vector<std::string> command_;
  std::atomic<int> most_{0};
  std::condition_variable changed_;
  std::vector<Idle> idle_;
  std::set<const Helper*> at_work_;
  int count_ = 0;
  bool watched_ = false;
};

/// Never destroyed: workers may compile until the process ends, and helpers notice the end.
Helpers& helpers() {
  static Helpers* const instance = new Helpers;
  return *instance;
}

}  // namespace

void enable_helpers(std::vector<std::string> command) { helpers().enable(std::move(command)); }
int most_helpers() { return helpers().most(); }
void abandon_helpers() { helpers().abandon(); }

CompileResult compile_or_have_compiled(const std::string& text, const std::string& file_name,
                                       int arch, const std::function<CompileResult()>& here) {
  return helpers().compile(text, file_name, arch, here);
}

void compile_in_processes(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == kWord) serve_compilations();
  enable_helpers({"/proc/self/exe", kWord});
}

namespace {

struct Request {
  std::string path, file_name, text;
  int arch = 0;
  std::list<std::string> header_texts;
  HeaderList headers;

  bool receive(const Channel& channel) {
    int count = 0;
    if (!channel.receive(path) || !channel.receive(file_name) || !receive(channel, arch) ||
        !channel.receive(text) || !receive(channel, count))
      return false;
    for (int i = 0; i < count; ++i) {
      std::string name;
      if (!channel.receive(name) || !channel.receive(header_texts.emplace_back())) return false;
      headers.emplace_back(std::move(name), &header_texts.back());
    }
    return true;
  }

 private:
  static bool receive(const Channel& channel, int& number) {
    std::string digits;
    if (!channel.receive(digits)) return false;
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    return true;
  }
};

}  // namespace

void serve_compilations() {
  const Channel channel(0);
  std::map<std::string, Nvrtc> compilers;
  while (true) {
    Request asked;
    if (!asked.receive(channel)) break;
    auto found = compilers.find(asked.path);
    if (found == compilers.end())
      found = compilers.emplace(asked.path, load_nvrtc(asked.path)).first;
    const CompileResult result =
        found->second.compile(asked.text, asked.file_name, asked.headers, asked.arch);
    if (!channel.send(result.image)) break;
  }
  std::_Exit(0);
}

}  // namespace tenon::cuda
