// Keys, the kernel cache, embedded headers and, where NVRTC or a GPU (the emulated one under
// ctest) is there, compiling and launching.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <tenon/error.h>

#include <sys/wait.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/str.h"
#include "check_process.h"
#include "compiler.h"
#include "cuda/cuda.h"
#include "cuda/device/gpu.h"
#include "cuda/jit/build.h"
#include "cuda/jit/built_in.h"
#include "cuda/jit/embedded.h"
#include "cuda/jit/helpers.h"
#include "cuda/jit/jit.h"
#include "cuda/jit/kernel_cache.h"
#include "cuda/jit/nvrtc.h"

using namespace tenon;
using namespace tenon::cuda;
namespace fs = std::filesystem;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A folder that is removed at the end.
struct TemporaryFolder {
  TemporaryFolder() {
    std::string pattern = (fs::temp_directory_path() / "tenon-jit-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path = pattern;
  }
  ~TemporaryFolder() {
    std::error_code error;
    fs::permissions(path, fs::perms::owner_all, error);
    fs::remove_all(path, error);
  }
  std::string path;
};

Digest key(const std::string& text) {
  Digester digester;
  digester.add(text);
  return digester.result();
}

std::string image_of(const std::string& text, std::size_t bytes = 5000) {
  std::string image;
  while (image.size() < bytes) image += text + '\0';
  return image;
}

std::string add_text(const std::string& entry, int amount) {
  return cat(
      "#include \"scalar/config.h\"\nextern \"C\" __global__ void ", entry,
      "(float* x, long long n) {\n"
      "  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;\n"
      "  if (i < n) x[i] = tenon::scalar::fused(x[i], 1.0f, ",
      amount, ".0f);\n}\n");
}

/// The processes that compiled, in the order of their compilations.
std::vector<std::string> compilers(const std::string& log) {
  std::ifstream file(log);
  std::vector<std::string> processes;
  for (std::string process; std::getline(file, process);) processes.push_back(process);
  return processes;
}

/// Waits until two compilations have started.
void wait_for_compilers(const std::string& log) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (compilers(log).size() < 2) {
    REQUIRE(std::chrono::steady_clock::now() < end);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

// NVRTC of a toolkit or wheel, whatever TENON_NVRTC says.
const Nvrtc& real_nvrtc() {
  static const Nvrtc found = [] {
    LibraryName name = nvrtc_name();
    name.variable = "TENON_TEST_NO_SUCH_VARIABLE";
    for (const std::string& path : library_candidates(name)) {
      Nvrtc next = load_nvrtc(path);
      if (next.problem.empty()) return next;
    }
    Nvrtc none;
    none.problem = missing_text(name);
    return none;
  }();
  return found;
}

}  // namespace

TEST_CASE("digest: strings, their boundaries and their order count") {
  std::set<Digest> seen;
  for (int i = 0; i < 2000; ++i) seen.insert(key(std::string(static_cast<std::size_t>(i), 'a')));
  for (int i = 0; i < 2000; ++i) seen.insert(key(cat("text ", i)));
  CHECK(seen.size() == 4000);
  const auto pair = [](const char* a, const char* b) {
    Digester digester;
    digester.add(a);
    digester.add(b);
    return digester.result();
  };
  CHECK(pair("ab", "c") != pair("a", "bc"));
  CHECK(pair("a", "b") != pair("b", "a"));
  CHECK(pair("a", "b") == pair("a", "b"));
  CHECK(key("x").hex().size() == 32);
  CHECK(checksum("abc") != checksum("abd"));
}

TEST_CASE("kernel cache: returns what was written, ignores damaged files") {
  const TemporaryFolder folder;
  const KernelCache cache(folder.path + "/kernels");
  const std::string image = image_of("kernel");
  CHECK(cache.read(key("a")).empty());
  cache.write(key("a"), image);
  CHECK(cache.read(key("a")) == image);
  CHECK(cache.read(key("b")).empty());

  const std::string file = cache.file_of(key("a"));
  const auto size = fs::file_size(file);
  for (const std::uintmax_t length : {std::uintmax_t{0}, std::uintmax_t{10}, size / 2, size - 1}) {
    fs::resize_file(file, length);
    CHECK(cache.read(key("a")).empty());
    cache.write(key("a"), image);
    CHECK(cache.read(key("a")) == image);
  }
  for (const int at : {0, 9, 30, 38, 41, 3000}) {
    std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(at).put('?');
    CHECK(cache.read(key("a")).empty());
    cache.write(key("a"), image);
  }
  // A file under another kernel's key is not used for it.
  fs::copy_file(file, cache.file_of(key("b")));
  CHECK(cache.read(key("b")).empty());
}

TEST_CASE("kernel cache: a read-only folder is read") {
  const TemporaryFolder folder;
  const KernelCache cache(folder.path);
  cache.write(key("a"), image_of("a"));
  fs::permissions(folder.path, fs::perms::owner_read | fs::perms::owner_exec);
  cache.write(key("b"), image_of("b"));
  CHECK(cache.read(key("a")) == image_of("a"));
  if (geteuid() != 0) CHECK(cache.read(key("b")).empty());
  // Not even a folder.
  const KernelCache nowhere("/dev/null/kernels");
  nowhere.write(key("a"), image_of("a"));
  CHECK(nowhere.read(key("a")).empty());
}

TEST_CASE("kernel cache: stays within its size, removes the oldest first") {
  const TemporaryFolder folder;
  const KernelCache cache(folder.path, 64 << 10);
  for (int i = 0; i < 20; ++i) {
    cache.write(key(cat(i)), image_of(cat(i)));
    fs::last_write_time(cache.file_of(key(cat(i))),
                        fs::file_time_type::clock::now() - std::chrono::minutes(100 - i));
  }
  cache.shrink();
  std::uintmax_t total = 0;
  for (const auto& entry : fs::directory_iterator(folder.path)) total += entry.file_size();
  CHECK(total <= (64 << 10));
  CHECK(!cache.read(key("19")).empty());
  CHECK(cache.read(key("0")).empty());
}

TEST_CASE("kernel cache: nothing is removed from a folder of another user, nor through links") {
  const TemporaryFolder folder;
  const KernelCache cache(folder.path), small(folder.path, 1 << 10);
  cache.write(key("a"), image_of("a"));
  const std::string other = cat(folder.path, "-other");
  std::ofstream(other) << std::string(4 << 10, 'x');
  fs::create_symlink(other, cat(folder.path, "/link.kernel"));
  const auto shrunk = [&] {
    small.shrink();
    return !fs::exists(cache.file_of(key("a")));
  };
  if (geteuid() == 0) {
    REQUIRE(::chown(folder.path.c_str(), 65534, 65534) == 0);
    CHECK_FALSE(shrunk());
    REQUIRE(::chown(folder.path.c_str(), 0, 0) == 0);
  }
  CHECK(shrunk());
  CHECK(fs::file_size(other) == 4 << 10);
  fs::remove(other);
}

TEST_CASE("kernel cache: processes that write at the same time leave complete files") {
  const TemporaryFolder folder;
  const KernelCache cache(folder.path);
  std::vector<pid_t> children;
  for (int child = 0; child < 4; ++child) {
    const pid_t pid = fork();
    if (pid == 0) {
      bool good = true;
      for (int i = 0; i < 200; ++i) {
        const std::string name = cat(i % 5);
        cache.write(key(name), image_of(name, 40000));
        const std::string read = cache.read(key(name));
        good = good && (read.empty() || read == image_of(name, 40000));
      }
      _exit(good ? 0 : 1);
    }
    children.push_back(pid);
  }
  for (const pid_t pid : children) {
    int status = 1;
    waitpid(pid, &status, 0);
    CHECK(status == 0);
  }
  for (int i = 0; i < 5; ++i) CHECK(cache.read(key(cat(i))) == image_of(cat(i), 40000));
}

TEST_CASE("embedded headers: the files of the tree, and which of them a source needs") {
  const std::string* config = embedded_header("scalar/config.h");
  REQUIRE(config != nullptr);
  CHECK(config->find("//") == std::string::npos);
  REQUIRE(embedded_header("cuda/kernels/intrinsics.cuh") != nullptr);
  CHECK(embedded_header("scalar/none.h") == nullptr);

  std::vector<std::string> names;
  for (const auto& [name, text] :
       headers_of("  #  include \"scalar/exp.h\"\n// #include \"scalar/log.h\"\nint x;"))
    names.push_back(name);
  CHECK(std::find(names.begin(), names.end(), "scalar/exp.h") != names.end());
  CHECK(std::find(names.begin(), names.end(), "scalar/config.h") != names.end());
  CHECK(std::find(names.begin(), names.end(), "scalar/log.h") == names.end());
  for (const EmbeddedFile& embedded : embedded_files()) {
    std::ifstream original(cat("src/", embedded.name), std::ios::binary);
    std::string expected, line;
    while (std::getline(original, line)) {
      const bool packed = !embedded.name.ends_with(".tune");  // without comments and indentation
      if (packed) line.erase(0, std::min(line.find_first_not_of(" \t"), line.size()));
      const std::size_t comment = packed ? line.find("//") : line.npos;
      const std::size_t end = line.substr(0, comment).find_last_not_of(" \t");
      expected += (comment == line.npos ? line : line.substr(0, end + 1)) + "\n";
    }
    CHECK(embedded.text == expected);
    for (const auto& [name, text] : headers_of(*embedded_header(std::string(embedded.name))))
      CHECK(!text->empty());
  }
}

TEST_CASE("built-in kernels: found by source and architecture if the driver can load them") {
  const Source a{"a", add_text("a", 1)}, b{"b", add_text("b", 1)}, c{"c", add_text("c", 1)};
  const auto kernel = [](const Source& source, const char* arch, const std::string& image) {
    const std::string option = cat("--gpu-architecture=", arch);
    return BuiltIn{option, built_in_key(source, option), image};
  };
  const std::string hopper = image_of("hopper"), ampere = image_of("ampere"), ptx("ptx\0", 4);
  const std::vector<BuiltIn> kernels = {kernel(a, "sm_90a", hopper), kernel(a, "sm_80", ampere),
                                        kernel(b, "compute_80", ptx), kernel(c, "sm_80", ampere)};
  const std::string store = make_store(13010, kernels);
  CHECK(find_built_in(store, a, 90, 13010, false) == hopper);
  CHECK(find_built_in(store, a, 90, 13000, false) == hopper);
  CHECK(find_built_in(store, a, 80, 13010, false) == ampere);
  CHECK(find_built_in(store, a, 89, 13010, false) == ampere);
  CHECK(find_built_in(store, c, 86, 14000, false) == ampere);
  CHECK(find_built_in(store, a, 100, 13010, true).empty());
  CHECK(find_built_in(store, a, 90, 12090, false).empty());
  CHECK(find_built_in(store, b, 90, 13010, false).empty());
  CHECK(find_built_in(store, b, 120, 13010, true) == ptx);
  CHECK(find_built_in(store, b, 120, 13000, true).empty());  // the driver is older than the PTX
  CHECK(find_built_in(store, c, 90, 13010, true).empty());

  // Equal images are stored once; a stored image can be extended.
  const StoreFacts facts = store_facts(store);
  REQUIRE(facts.sets.size() == 3);
  CHECK(facts.toolkit == 13010);
  CHECK(facts.sets[1].arch_option == "--gpu-architecture=sm_80");
  CHECK(facts.sets[1].kernels == 2);
  CHECK(facts.sets[1].bytes < ampere.size());
  CHECK(store_text(facts) == "1 for sm_90a, 2 for sm_80, 1 for newer GPUs (PTX)");
  CHECK(store.size() < hopper.size());
  const std::vector<BuiltIn> again = read_store(store);
  CHECK(again.size() == 4);
  CHECK(find_built_in(make_store(13010, again), a, 90, 13010, false) == hopper);

  for (const std::string& damaged : {std::string(), store.substr(0, 30), store.substr(0, 200),
                                     store.substr(0, store.size() - 20), "x" + store}) {
    for (const Source& source : {a, b, c}) {
      const std::string image = find_built_in(damaged, source, 80, 13010, true);
      const bool right = image.empty() || image == ampere || image == ptx;
      CHECK(right);
    }
    CHECK(find_built_in(damaged.substr(0, 30), a, 90, 13010, true).empty());
  }
}

TEST_CASE("nvrtc: every device header compiles alone for sm_80 and sm_90a") {
  const Nvrtc& compiler = real_nvrtc();
  if (!compiler.problem.empty()) {
    MESSAGE("skipped: " << compiler.problem);
    return;
  }
  CHECK(compiler.choose_arch(90).option == "--gpu-architecture=sm_90a");
  CHECK(compiler.choose_arch(80).cubin);
  CHECK(!compiler.choose_arch(999).cubin);
  for (const EmbeddedFile& embedded : embedded_files()) {
    const std::string name(embedded.name);
    if (name.ends_with(".tune")) continue;
    const std::string text =
        cat("#include \"", name, "\"\nextern \"C\" __global__ void k(int* x) { *x = 1; }\n");
    for (const int arch : {80, 90}) {
      const CompileResult result = compiler.compile(text, "k.cu", headers_of(text), arch);
      CHECK_MESSAGE(!result.image.empty(), name, " for sm_", arch, ": ", result.log);
    }
  }
}

TEST_CASE("jit: a kernel without a GPU can be inspected but not launched") {
  const Source source{"tenon_add", add_text("tenon_add", 1)};
  const auto kernel = compile(Target{}, source);
  CHECK(kernel->source().text == source.text);
  CHECK(kernel == compile(Target{}, source));
  CHECK_THROWS_AS(kernel->launch(nullptr, {}, {}, 0, nullptr), DeviceError);
}

TEST_CASE("jit: compiles in parallel, launches, and finds kernels again") {
  if (gpu_count() == 0) {
    MESSAGE("skipped: " << why_no_gpu());
    return;
  }
  const Target target = target_of(0);
  const JitStats before = jit_stats();
  std::vector<std::shared_ptr<const CompiledKernel>> kernels;
  for (int i = 0; i < 4; ++i) {
    const std::string entry = cat("tenon_test_add", i);
    kernels.push_back(compile(target, {entry, add_text(entry, 1 << i)}));
  }
  CHECK(compile(target, kernels[0]->source()) == kernels[0]);
  constexpr std::int64_t kCount = 1000;
  std::vector<float> x(kCount, 0.5f);
  void* memory_block = memory().allocate(kCount * sizeof(float), 0);
  memory().from_host(memory_block, x.data(), kCount * sizeof(float), 0);
  std::int64_t count = kCount;
  void* params[] = {&memory_block, &count};
  for (const auto& kernel : kernels) kernel->launch(stream(0), {4}, {256}, 0, params);
  kernels[0]->launch(stream(0), {0}, {256}, 0, params);  // no blocks: nothing to do
  memory().to_host(x.data(), memory_block, kCount * sizeof(float), 0);
  for (const float value : x) CHECK(value == 15.5f);
  memory().release(memory_block, kCount * sizeof(float), 0);
  const JitStats after = jit_stats();
  CHECK(after.built_in == before.built_in);
  CHECK(after.compiled + after.from_disk == before.compiled + before.from_disk + 4);
  CHECK(after.from_memory == before.from_memory + 1);
}

// Run in a child only.
TEST_CASE("jit: (the process that ends while it compiles)" * doctest::skip()) {
  if (gpu_count() == 0) return;
  std::vector<std::shared_ptr<const CompiledKernel>> kernels;
  for (int i = 0; i < 8; ++i) {
    const std::string entry = cat("tenon_test_end", i);
    kernels.push_back(compile(target_of(0), {entry, add_text(entry, getpid() + i)}));
  }
  kernels[0]->wait();
}

TEST_CASE("jit: a process may end while its kernels are compiled") {
  if (gpu_count() == 0) {
    MESSAGE("skipped: " << why_no_gpu());
    return;
  }
  test::check_process("", "jit: (the process that ends*");
}

// Run in a child only; its compilations do not end by themselves.
TEST_CASE("jit: (a process that ends in its first compilation)" * doctest::skip()) {
  if (gpu_count() == 0) return;
  const char* log = std::getenv("TENON_FAKE_NVRTC_LOG");
  REQUIRE(log != nullptr);
  const auto kernel = compile(target_of(0), {"tenon_test_long", add_text("tenon_test_long", 1)});
  wait_for_compilers(log);  // the first one is of an empty kernel
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

TEST_CASE("jit: a process may end in its first compilation, which is abandoned") {
  if (gpu_count() == 0 || !test::compiler_is_emulated()) {
    MESSAGE("skipped: needs the emulated GPU");
    return;
  }
  const TemporaryFolder folder;
  test::check_process(cat("TENON_FAKE_NVRTC_LONG=1 TENON_FAKE_NVRTC_LOG=", folder.path,
                          "/log TENON_CACHE=", folder.path, " timeout 50"),
                      "jit: (a process that ends*");
}

namespace {

/// The command beside this program; empty where it was not built.
std::string command() {
  const fs::path path = fs::read_symlink("/proc/self/exe").parent_path() / "tenon";
  return fs::exists(path) ? path.string() : std::string();
}

}  // namespace

// Run in a child only; other processes compile for it and do not end by themselves.
TEST_CASE("jit: (the end of a process for which others compile)" * doctest::skip()) {
  enable_helpers({command(), "--compile-kernels-for-tenon"});
  if (gpu_count() == 0) return;
  const char* log = std::getenv("TENON_FAKE_NVRTC_LOG");
  REQUIRE(log != nullptr);
  for (int i = 0; i < 4; ++i) {
    const std::string entry = cat("tenon_test_helped", i);
    compile(target_of(0), {entry, add_text(entry, i)});
  }
  wait_for_compilers(log);
  for (const std::string& process : compilers(log)) CHECK(process != std::to_string(getpid()));
}

TEST_CASE("jit: a process may end while others compile for it, which end with it") {
  if (gpu_count() == 0 || !test::compiler_is_emulated() || command().empty()) {
    MESSAGE("skipped: needs the emulated GPU and the command");
    return;
  }
  const TemporaryFolder folder;
  const std::string log = folder.path + "/log";
  test::check_process(cat("TENON_FAKE_NVRTC_LONG=1 TENON_FAKE_NVRTC_LOG=", log,
                          " TENON_CACHE=", folder.path, " TENON_COMPILER_PROCESSES=2 timeout 50"),
                      "jit: (the end of a process*");
  const std::vector<std::string> processes = compilers(log);
  CHECK(processes.size() == 2);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (const std::string& process : processes)
    while (fs::exists("/proc/" + process)) {
      REQUIRE(std::chrono::steady_clock::now() < end);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
}

// Run in a child only; its compilations do not end by themselves.
TEST_CASE("jit: (a process whose end waits for who waits for a kernel)" * doctest::skip()) {
  if (gpu_count() == 0) return;
  static std::future<void> waiting;  // older than the workers: its thread is waited for after them
  const auto kernel = compile(target_of(0), {"tenon_test_wait", add_text("tenon_test_wait", 1)});
  waiting = std::async(std::launch::async, [kernel] { kernel->wait(); });
}

TEST_CASE("jit: threads that wait for a kernel get an error when the process ends") {
  if (gpu_count() == 0 || !test::compiler_is_emulated()) {
    MESSAGE("skipped: needs the emulated GPU");
    return;
  }
  const TemporaryFolder folder;
  test::check_process(cat("TENON_FAKE_NVRTC_LONG=1 TENON_CACHE=", folder.path, " timeout 50"),
                      "jit: (a process whose end*");
}

// Run in a child only: the fork ends like a program.
TEST_CASE("jit: (a process that forks)" * doctest::skip()) {
  if (gpu_count() == 0) return;
  compile(target_of(0), {"tenon_test_fork", add_text("tenon_test_fork", 1)})->wait();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // until workers wait for work
  const pid_t fork_of_it = fork();
  if (fork_of_it == 0) std::exit(0);
  int status = -1;
  CHECK(waitpid(fork_of_it, &status, 0) == fork_of_it);
  CHECK(status == 0);
}

TEST_CASE("jit: a fork of a process whose workers wait can end") {
  if (gpu_count() == 0) {
    MESSAGE("skipped: " << why_no_gpu());
    return;
  }
  test::check_process("timeout 50", "jit: (a process that forks*");
}

// Run in a child only, because the setting applies to the whole process.
TEST_CASE("jit: (a process that compiles at launch)" * doctest::skip()) {
  if (gpu_count() == 0) return;
  cuda::compile_at_launch();
  const auto kernel = compile(target_of(0), {"tenon_test_late", add_text("tenon_test_late", 1)});
  const auto not_needed = compile(target_of(0), {"tenon_test_never", "no C++"});
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const auto found = [] {
    const JitStats stats = jit_stats();
    return stats.compiled + stats.from_disk + stats.built_in;
  };
  CHECK(found() == 0);
  kernel->wait();
  CHECK(found() == 1);
  CHECK_THROWS_AS(not_needed->wait(), NotSupported);
}

TEST_CASE("jit: a process may compile at the first launch") {
  if (gpu_count() == 0) {
    MESSAGE("skipped: " << why_no_gpu());
    return;
  }
  test::check_process("timeout 50", "jit: (a process that compiles at launch*");
}

TEST_CASE("nvrtc: a compilation can be stopped") {
  const Nvrtc& compiler = real_nvrtc();
  if (!compiler.problem.empty() || std::pair(compiler.major, compiler.minor) < std::pair(12, 8)) {
    MESSAGE("skipped: no NVRTC of 12.8 or newer");
    return;
  }
  const std::string text = add_text("tenon_test_stopped", 1);
  int asked = 0;
  const CompileResult whole = compiler.compile(text, "k.cu", headers_of(text), 90, [&asked] {
    ++asked;
    return true;
  });
  CHECK(!whole.image.empty());
  CHECK(asked > 20);
  for (const int last : {0, 1, 20}) {
    int times = 0;
    const CompileResult stopped = compiler.compile(text, "k.cu", headers_of(text), 90,
                                                   [&times, last] { return times++ < last; });
    CHECK(stopped.image.empty());
    CHECK(contains(stopped.log, "CANCEL"));
    CHECK(times < asked);
  }
}

TEST_CASE("jit: the error of a source that does not compile has the compiler's messages") {
  if (gpu_count() == 0) {
    MESSAGE("skipped: " << why_no_gpu());
    return;
  }
  const auto kernel =
      compile(target_of(0),
              {"tenon_bad", "extern \"C\" __global__ void tenon_bad() { no_such_name(); }\n"});
  for (int i = 0; i < 2; ++i) {
    try {
      kernel->wait();
      FAIL("no error");
    } catch (const NotSupported& error) {
      CHECK(contains(error.what(), "tenon_bad"));
      CHECK(contains(error.what(), "no_such_name"));
    }
  }
}

TEST_CASE("build: the second build reads the cache, and headers are part of the key") {
  if (!nvrtc().problem.empty()) {
    MESSAGE("skipped: " << nvrtc().problem);
    return;
  }
  const TemporaryFolder folder;
  const KernelCache cache(folder.path);
  const Source source{"tenon_add", add_text("tenon_add", 3)};
  const Image first = build_image(source, 90, cache);
  CHECK(first.origin == Image::Origin::Compiler);
  const Image second = build_image(source, 90, cache);
  CHECK(second.origin == Image::Origin::Disk);
  CHECK(second.bytes == first.bytes);
  CHECK(key_of(source, 80) != key_of(source, 90));
  Source other = source;
  other.text += "#include \"scalar/log.h\"\n";
  CHECK(key_of(other, 90) != key_of(source, 90));
}
