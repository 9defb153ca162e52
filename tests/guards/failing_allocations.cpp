// Makes one allocation fail in each run of a scenario and checks the result. Permitted are an error
// of Tenon, std::bad_alloc, or the usual result. A signal, a hang, another result, a damaged file,
// or a library that no longer works is a failure.
//
// This is a separate program because its malloc replaces that of the C library. Each attempt is a
// process, forked from one that has done nothing yet. It prepares the scenario, makes an allocation
// fail while the scenario runs (with --burst all later ones too), runs the scenario again without
// failures, checks the files, and exits normally. Allocations are distinguished by their callers:
// one attempt for each sequence of callers, or for some of these with --samples.
#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unordered_set>
#include <vector>

#include <tenon/tenon.h>
#include <tenon/tokenizer.h>

namespace {

constexpr int kFrames = 24, kDepth = 14;  // printed frames; frames that distinguish callers
constexpr long kMostCalls = 4'000'000;
constexpr std::uint64_t kNobody = 0;  // in place of callers: this allocation must not fail

// Memory that parent and child share.
struct Shared {
  std::atomic<long> calls;
  std::atomic<int> outcome;
  std::atomic<int> frames;
  void* stack[kFrames];
  char text[2048];
  char result[2048];
  std::uint64_t callers[kMostCalls];  // of each allocation, while the scenario is listed
};
Shared* shared = nullptr;

std::atomic<bool> armed{false}, listing{false};
std::atomic<long> fails_at{LONG_MAX}, fails_until{LONG_MAX};

// Per thread: allocations of backtrace() are not counted.
thread_local bool inside __attribute__((tls_model("initial-exec"))) = false;

// libwebp 1.2.4 crashes for some of its own failed allocations. (So does libtiff 4.5.0 with
// --burst, in its JPEG decoder.)
bool is_asked_by_webp(const void* caller) {
  Dl_info info{};
  return dladdr(caller, &info) != 0 && info.dli_fname != nullptr &&
         std::strstr(info.dli_fname, "libwebp") != nullptr;
}

bool fails() {
  if (!armed.load(std::memory_order_relaxed) || inside) return false;
  const long call = shared->calls.fetch_add(1, std::memory_order_relaxed);
  if (listing.load(std::memory_order_relaxed) && call < kMostCalls) {
    inside = true;
    void* stack[kDepth + 2];
    const int frames = backtrace(stack, kDepth + 2);
    std::uint64_t hash = 1469598103934665603ull;
    for (int k = 2; k < frames; ++k)
      hash = (hash ^ reinterpret_cast<std::uintptr_t>(stack[k])) * 1099511628211ull;
    shared->callers[call] = is_asked_by_webp(stack[2]) ? kNobody : hash;
    inside = false;
  }
  if (call < fails_at.load(std::memory_order_relaxed) ||
      call >= fails_until.load(std::memory_order_relaxed))
    return false;
  if (call == fails_at.load(std::memory_order_relaxed)) {
    inside = true;
    shared->frames = backtrace(shared->stack, kFrames);
    inside = false;
  }
  errno = ENOMEM;
  return true;
}

}  // namespace

// glibc keeps its own functions reachable under these names.
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);

void* malloc(std::size_t size) { return fails() ? nullptr : __libc_malloc(size); }
void* calloc(std::size_t count, std::size_t size) {
  return fails() ? nullptr : __libc_calloc(count, size);
}
void* realloc(void* memory, std::size_t size) {
  return fails() ? nullptr : __libc_realloc(memory, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  return fails() ? nullptr : __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  void* const found = fails() ? nullptr : __libc_memalign(alignment, size);
  if (found == nullptr) return ENOMEM;
  *memory = found;
  return 0;
}
}

namespace {

using namespace tenon;
namespace fs = std::filesystem;

// ---- Scenarios: prepare() creates the input of run(), run() returns its result, check() throws if
// a file has neither its old nor its new content.

struct Scenario {
  const char* name;
  std::function<void(const std::string& dir)> prepare;
  std::function<std::string(const std::string& dir)> run;
  std::function<void(const std::string& dir)> check;
};

void write_text(const std::string& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
}

std::string bytes_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

std::string shown(const io::TensorMap& tensors) {
  std::string out;
  for (const auto& [name, tensor] : tensors)
    out += name + " " + std::to_string(sum(tensor).item()) + " ";
  return out;
}

io::TensorMap some_tensors() {
  return {{"a", ones({3, 4}) * 1.5F}, {"b", ones({2, 2})}, {"c.weight", zeros({5})}};
}

std::string rows() {
  std::string text = "x,z,colour,label\n";
  for (int k = 0; k < 60; ++k)
    text += std::to_string(k % 7) + "." + std::to_string(k % 10) + "," +
            std::to_string(k * 3 % 11) + "," +
            (k % 3 == 0   ? "red"
             : k % 3 == 1 ? "green"
                          : "blue") +
            "," + (k % 2 == 0 ? "yes" : "no") + "\n";
  return text;
}

std::string read_all(const data::Dataset& set) {
  std::vector<std::byte> inputs(static_cast<std::size_t>(set.input_shape().numel()) *
                                item_size(set.input_dtype())),
      targets(static_cast<std::size_t>(set.target_shape().numel()) * item_size(set.target_dtype()));
  std::uint64_t hash = 1469598103934665603ull;
  for (std::int64_t k = 0; k < set.size(); ++k) {
    set.get(std::span(&k, 1), inputs.data(), targets.data());
    for (const auto* bytes : {&inputs, &targets})
      for (const std::byte byte : *bytes)
        hash = (hash ^ static_cast<std::uint64_t>(byte)) * 1099511628211ull;
  }
  std::string out = std::to_string(set.size()) + " samples " + std::to_string(hash);
  for (const std::string& name : set.class_names()) out += " " + name;
  for (const Note& note : set.notes()) out += " " + to_string(note);
  return out;
}

train::Settings small_run(const std::string& dir) {
  return train::Settings::resolve("mlp:5-6-2", "",
                                  {{"data", "csv:" + dir + "/rows.csv"},
                                   {"epochs", "2"},
                                   {"batch", "16"},
                                   {"threads", "2"},
                                   {"checkpoint_steps", "2"}});
}

std::string shown(const train::TrainResult& result) {
  std::string out = std::to_string(result.steps);
  for (const train::EpochReport& e : result.epochs) out += " " + std::to_string(e.train_loss);
  return out;
}

// A run folder with a run can be resumed or started again after any failure.
void check_run(const std::string& dir) {
  const std::string run = dir + "/run";
  if (!fs::exists(run + "/settings.toml")) return;
  if (fs::exists(run + "/model.safetensors"))
    (void)io::load_safetensors(run + "/model.safetensors");
  if (fs::exists(run + "/checkpoints"))
    for (const auto& entry : fs::directory_iterator(run + "/checkpoints"))
      if (entry.path().extension() == ".safetensors")
        (void)io::load_safetensors(entry.path().string());
  (void)train::resume_run(run);
}

std::string sources() { return TENON_SOURCE_DIR; }

std::string training_step() {
  Generator generator(3);
  manual_seed(5);
  nn::Sequential net(nn::Linear(8, 16), nn::ReLU(), nn::Linear(16, 4));
  optim::Adam adam(net, {.lr = 0.01});
  const Tensor x = rand({6, 8}, DType::Float32, generator).compute();
  const Tensor y = randint(0, 4, {6}, DType::Int64, generator).compute();
  CompiledFunction step = compile([&](const std::vector<Tensor>& in) {
    const Tensor loss = cross_entropy(net(in[0]), in[1]);
    std::vector<Tensor> out = adam.updates(grad(loss, adam.parameters()));
    out.insert(out.begin(), loss);
    return out;
  });
  std::string out;
  for (int k = 0; k < 3; ++k) out += std::to_string(step({x, y})[0].item()) + " ";
  return out;
}

// Runs f, whose files are whole: a failing allocation must not be reported as a fault of a file.
void with_whole_files(const std::function<void()>& f) {
  try {
    f();
  } catch (const FormatError& error) {
    throw std::logic_error(error.what());
  }
}

std::vector<Scenario> scenarios() {
  const auto nothing = [](const std::string&) {};
  std::vector<Scenario> all;
  all.push_back({"safetensors: write over a file",
                 [](const std::string& dir) {
                   io::save_safetensors(dir + "/x.safetensors", {{"old", ones({2})}});
                 },
                 [](const std::string& dir) {
                   io::save_safetensors(dir + "/x.safetensors", some_tensors(), {{"k", "v"}});
                   return std::string("written");
                 },
                 [](const std::string& dir) {
                   const auto tensors = io::load_safetensors(dir + "/x.safetensors").tensors;
                   if (tensors.size() != 1 && tensors.size() != 3) throw std::logic_error("torn");
                 }});
  for (const char* ending : {"safetensors", "pt", "npz"})
    all.push_back({ending,
                   [ending](const std::string& dir) {
                     io::save_weights(dir + "/x." + ending, some_tensors());
                   },
                   [ending](const std::string& dir) {
                     const std::string file = dir + "/x." + ending;
                     const io::TensorMap read = io::load_weights(file);
                     io::save_weights(file, read);
                     return shown(read);
                   },
                   [ending](const std::string& dir) {
                     if (io::load_weights(dir + "/x." + ending).size() != 3)
                       throw std::logic_error("torn");
                   }});
  all.push_back({"settings file",
                 [](const std::string& dir) {
                   write_text(dir + "/settings.toml", "lr = 0.5\nweight_decay = 5e-4\n");
                 },
                 [](const std::string& dir) {
                   std::string out;
                   with_whole_files([&] {
                     const auto settings =
                         train::Settings::resolve("mlp:5-6-2", dir + "/settings.toml", {});
                     out = std::to_string(settings.lr) + std::to_string(settings.weight_decay);
                   });
                   return out;
                 },
                 nothing});
  all.push_back({"csv", [](const std::string& dir) { write_text(dir + "/rows.csv", rows()); },
                 [](const std::string& dir) {
                   return read_all(
                       *data::open_dataset("csv:" + dir + "/rows.csv", data::Split::Train));
                 },
                 nothing});
  all.push_back({"folder of images",
                 [](const std::string& dir) {
                   for (const char* part : {"train", "test"})
                     for (const char* name : {"cat", "dog"}) {
                       const std::string folder = dir + "/images/" + part + "/" + name;
                       fs::create_directories(folder);
                       for (int k = 0; k < 6; ++k)
                         fs::copy(sources() + "/tests/io/images/exif1.png",
                                  folder + "/" + std::to_string(k) + ".png");
                     }
                 },
                 [](const std::string& dir) {
                   const auto set =
                       data::open_dataset("folder:" + dir + "/images", data::Split::Train);
                   const std::string out = read_all(*set);
                   if (!set->broken().empty()) throw std::logic_error("a whole image is broken");
                   return out;
                 },
                 nothing});
  for (const char* image :
       {"exif2.png", "interlaced_rgb.png", "palette_alpha.png", "exif2.jpg", "progressive.jpg",
        "cmyk.jpg", "animated.gif", "555.bmp", "exif3.webp", "cmyk.tif", "rgba.tif", "p.tif",
        "group4.tif", "jpeg.tif", "pages.tif", "bytes.ppm"})
    all.push_back({image, nothing,
                   [image](const std::string&) {
                     io::Image read;
                     with_whole_files(
                         [&] { read = io::load_image(sources() + "/tests/io/images/" + image); });
                     std::uint64_t hash = 7;
                     for (const auto value : read.pixels) hash = hash * 31 + value;
                     return std::to_string(hash);
                   },
                   nothing});
  all.push_back({"png: write over a file",
                 [](const std::string& dir) { write_text(dir + "/x.png", "old"); },
                 [](const std::string& dir) {
                   io::Image image = io::load_image(sources() + "/tests/io/images/exif2.png");
                   with_whole_files([&] { io::save_png(dir + "/x.png", image); });
                   return io::read_file(dir + "/x.png").substr(1, 3);
                 },
                 [](const std::string& dir) {
                   if (bytes_of(dir + "/x.png") != "old") (void)io::load_image(dir + "/x.png");
                 }});
  all.push_back(
      {"tokenizer",
       [](const std::string& dir) {
         write_text(dir + "/old.json", "{}");
         data::Tokenizer::train("one two three one two one", {.tokens = 270})
             .save(dir + "/tokenizer.json");
       },
       [](const std::string& dir) {
         const auto tokenizer = data::Tokenizer::open(dir + "/tokenizer.json");
         tokenizer.save(dir + "/tokenizer.json");
         std::string out;
         for (const auto token : tokenizer.encode("one three two"))
           out += std::to_string(token) + " ";
         return out + tokenizer.decode(tokenizer.encode("two one"));
       },
       [](const std::string& dir) { (void)data::Tokenizer::open(dir + "/tokenizer.json"); }});
  all.push_back({"text",
                 [](const std::string& dir) {
                   std::string text;
                   for (int k = 0; k < 40; ++k) text += "line " + std::to_string(k) + "\n";
                   write_text(dir + "/text.txt", text);
                 },
                 [](const std::string& dir) {
                   return read_all(*data::open_dataset("text:" + dir + "/text.txt,length=8",
                                                       data::Split::Train));
                 },
                 nothing});
  all.push_back({"loader threads", nothing,
                 [](const std::string&) {
                   data::Loader loader(data::drawn_digits(5, 24),
                                       {.batch = 8, .seed = 4, .workers = 3});
                   double total = 0;
                   data::Batch batch;
                   while (loader.next(batch)) total += sum(batch.input).item();
                   return std::to_string(total);
                 },
                 nothing});
  all.push_back(
      {"plan and evaluate", nothing, [](const std::string&) { return training_step(); }, nothing});
  all.push_back(
      {"train and write checkpoints",
       [](const std::string& dir) { write_text(dir + "/rows.csv", rows()); },
       [](const std::string& dir) { return shown(train::start_run(small_run(dir), dir + "/run")); },
       check_run});
  all.push_back({"resume a run",
                 [](const std::string& dir) {
                   write_text(dir + "/rows.csv", rows());
                   train::RunOptions options;
                   int asked = 0;
                   options.stop = [&] { return ++asked == 3; };
                   (void)train::start_run(small_run(dir), dir + "/run", options);
                 },
                 [](const std::string& dir) { return shown(train::resume_run(dir + "/run")); },
                 check_run});
  all.push_back({"open a trained model, evaluate, predict",
                 [](const std::string& dir) {
                   write_text(dir + "/rows.csv", rows());
                   (void)train::start_run(small_run(dir), dir + "/run");
                 },
                 [](const std::string& dir) {
                   const auto model = train::TrainedModel::open(dir + "/run");
                   std::string out = std::to_string(model.evaluate().loss);
                   (void)model.predict_csv(dir + "/rows.csv", dir + "/out.csv");
                   return out + io::read_file(dir + "/out.csv").substr(0, 400);
                 },
                 nothing});
  return all;
}

// ---- Attempts

enum Outcome { kNone, kSame, kTyped, kOther, kUntyped, kBroken, kDamaged };

const char* words(int outcome) {
  static constexpr const char* kWords[] = {"did not end",
                                           "gave the same result",
                                           "threw an error",
                                           "gave another result",
                                           "threw what is no error of Tenon's",
                                           "does not work any more afterwards",
                                           "left a damaged file"};
  return kWords[outcome];
}

void note(int outcome, const std::string& text) {
  shared->outcome = outcome;
  std::snprintf(shared->text, sizeof shared->text, "%s", text.c_str());
}

extern "C" void show_stack(int signal) {
  armed = false;
  void* stack[48];
  std::fprintf(stderr, "signal %d at:\n", signal);
  backtrace_symbols_fd(stack, backtrace(stack, 48), STDERR_FILENO);
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

struct Attempt {
  long at = LONG_MAX;
  bool burst = false, lists = false;
};

[[noreturn]] void child(const Scenario& scenario, const std::string& dir, const Attempt& attempt) {
  for (const int signal : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL}) ::signal(signal, show_stack);
  ::alarm(60);
  for (const char* name : {"/tried", "/again"}) {
    fs::create_directories(dir + name);
    scenario.prepare(dir + name);
  }
  fails_at = attempt.at;
  if (!attempt.burst && attempt.at != LONG_MAX) fails_until = attempt.at + 1;
  listing = attempt.lists;
  std::string result;
  const auto settle = [&](int outcome, const char* why) {
    armed = false;
    note(outcome, why);
  };
  armed = true;
  try {
    result = scenario.run(dir + "/tried");
    armed = false;
    if (attempt.at == LONG_MAX)
      std::snprintf(shared->result, sizeof shared->result, "%s", result.c_str());
    std::string expected = shared->result;
    result.resize(std::min(result.size(), sizeof shared->result - 1));
    note(result == expected ? kSame : kOther, "\"" + result + "\", not \"" + expected + "\"");
  } catch (const Error& error) {
    settle(kTyped, error.what());
  } catch (const std::bad_alloc& error) {
    settle(kTyped, error.what());
  } catch (const std::exception& error) {
    settle(kUntyped, error.what());
  } catch (...) {
    settle(kUntyped, "no std::exception");
  }
  if (shared->outcome == kSame || shared->outcome == kTyped) {
    try {
      scenario.check(dir + "/tried");
    } catch (const std::exception& error) {
      note(kDamaged, error.what());
    }
  }
  if (shared->outcome == kSame || shared->outcome == kTyped) {
    try {
      const std::string again = scenario.run(dir + "/again").substr(0, sizeof shared->result - 1);
      if (again != shared->result)
        note(kBroken, "\"" + again + "\", not \"" + shared->result + "\"");
    } catch (const std::exception& error) {
      note(kBroken, error.what());
    }
  }
  std::exit(0);
}

// The signal that ended the child, or 0.
int run_child(const Scenario& scenario, const std::string& dir, const Attempt& attempt) {
  fs::remove_all(dir);
  fs::create_directories(dir);
  shared->calls = 0;
  shared->outcome = kNone;
  shared->frames = 0;
  shared->text[0] = '\0';
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (std::freopen((dir + "/stderr").c_str(), "w", stderr) == nullptr) ::_exit(9);
    child(scenario, dir, attempt);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

struct Options {
  std::string only;
  double seconds = 1e9;
  long samples = LONG_MAX, at = -1;
  unsigned seed = 1;
  bool burst = false;
};

// The indices of the allocations to fail: the first of each sequence of callers, in random order.
std::vector<long> chosen_calls(const Options& options) {
  std::vector<long> out;
  std::unordered_set<std::uint64_t> seen;
  const long calls = std::min(shared->calls.load(), kMostCalls);
  for (long k = 0; k < calls; ++k)
    if (shared->callers[k] != kNobody && seen.insert(shared->callers[k]).second) out.push_back(k);
  std::shuffle(out.begin(), out.end(), std::mt19937(options.seed));
  if (static_cast<long>(out.size()) > options.samples)
    out.resize(static_cast<std::size_t>(options.samples));
  return out;
}

void show_fault(const Scenario& scenario, long call, int ended, const std::string& dir) {
  std::printf("FAIL %s, allocation %ld: it %s%s%s\n", scenario.name, call,
              ended == SIGALRM ? "hangs" : words(shared->outcome),
              ended != 0 ? (", ended by " + std::to_string(ended)).c_str() : "",
              shared->text[0] != '\0' ? (std::string(": ") + shared->text).c_str() : "");
  std::printf("  asked for by:\n");
  std::fflush(stdout);
  backtrace_symbols_fd(shared->stack, shared->frames, STDOUT_FILENO);
  std::istringstream lines(bytes_of(dir + "/stderr"));
  for (std::string line; std::getline(lines, line);) std::printf("  %s\n", line.c_str());
}

// Makes allocations of the scenario fail one by one; returns the number of faults.
int try_scenario(const Scenario& scenario, const std::string& dir, const Options& options,
                 double seconds) {
  const auto start = std::chrono::steady_clock::now();
  if (const int ended = run_child(scenario, dir, {.lists = true});
      ended != 0 || shared->outcome != kSame) {
    std::printf("FAIL %s does not run without failures (%d): %s\n", scenario.name, ended,
                shared->text);
    return 1;
  }
  const long all = shared->calls;
  std::vector<long> calls = chosen_calls(options);
  if (options.at >= 0) calls = {options.at};
  int faults = 0, thrown = 0;
  std::size_t tried = 0;
  for (const long call : calls) {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    if (passed.count() > seconds) break;
    ++tried;
    const int ended = run_child(scenario, dir, {.at = call, .burst = options.burst});
    thrown += shared->outcome == kTyped ? 1 : 0;
    if (ended == 0 && (shared->outcome == kSame || shared->outcome == kTyped)) continue;
    ++faults;
    show_fault(scenario, call, ended, dir);
  }
  std::printf("%s %s: %zu of %ld allocations failed in turn, %d of them as errors, %d faults\n",
              faults == 0 ? "ok  " : "FAIL", scenario.name, tried, all, thrown, faults);
  return faults;
}

Options read_options(int count, char** words) {
  Options out;
  for (int k = 1; k < count; ++k) {
    const std::string word = words[k];
    const char* next = k + 1 < count ? words[k + 1] : "0";
    if (word == "--burst") {
      out.burst = true;
      continue;
    }
    ++k;
    if (word == "--only")
      out.only = next;
    else if (word == "--seconds")
      out.seconds = std::atof(next);
    else if (word == "--samples")
      out.samples = std::atol(next);
    else if (word == "--at")
      out.at = std::atol(next);
    else if (word == "--seed")
      out.seed = static_cast<unsigned>(std::atol(next));
    else {
      std::printf(
          "usage: %s [--only NAME] [--seconds ALL] [--samples EACH] [--seed N] [--burst] [--at "
          "N]\n",
          words[0]);
      std::exit(2);
    }
  }
  return out;
}

}  // namespace

int main(int count, char** arguments) {
  const Options options = read_options(count, arguments);
  void* const memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return 2;
  shared = static_cast<Shared*>(memory);
  void* first[4];
  (void)backtrace(first, 4);  // loads its libraries now
  ::setenv("TENON_CACHE", "/nonexistent", 1);
  char folder[] = "/tmp/tenon-failing-XXXXXX";
  if (::mkdtemp(folder) == nullptr) return 2;
  std::vector<Scenario> all = scenarios();
  std::erase_if(all, [&](const Scenario& scenario) {
    return std::string(scenario.name).find(options.only) == std::string::npos;
  });
  int faults = 0;
  const auto start = std::chrono::steady_clock::now();
  // Quick scenarios run first; the others share the remaining time.
  for (std::size_t k = 0; k < all.size(); ++k) {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    faults +=
        try_scenario(all[k], std::string(folder) + "/s", options,
                     (options.seconds - passed.count()) / static_cast<double>(all.size() - k));
  }
  fs::remove_all(folder);
  return faults == 0 ? 0 : 1;
}
