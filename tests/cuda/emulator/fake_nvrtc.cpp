// NVRTC's interface on top of the host's compiler: the "cubin" is a shared library of CPU code,
// which the emulated driver (api_launch.cpp) loads. For tests only.
//
// It accepts the options that NVRTC documents and refuses others. It sees no headers except the
// program's own and the emulator's, and writes the compiler's messages to the log. Settings in the
// environment:
//   TENON_FAKE_NVRTC_LOG      a file; each compilation adds a line with the number of its process
//   TENON_FAKE_NVRTC_HELPERS  "crash": a process that only compiles crashes on its first source
//   TENON_FAKE_NVRTC_LONG     a compilation that reads headers creates an object of static
//                             lifetime, as NVRTC does, and runs until it is stopped, a minute
//                             at most; if it still runs when the object is destroyed, the
//                             process ends
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "abi.h"
#include "rewrite.h"

#define TENON_EXPORT extern "C" __attribute__((visibility("default")))

extern char** environ;

namespace {

namespace fs = std::filesystem;
using tenon_emulator::Image;

enum Result {
  success = 0,
  program_creation_failure = 2,
  invalid_input = 3,
  invalid_program = 4,
  invalid_option = 5,
  compilation = 6,
  no_lowered_names_before_compilation = 9,
  name_expression_not_valid = 10,
  cancelled = 16,
};

constexpr int architectures[] = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};

struct Program {
  std::string text, name, log, image;
  std::map<std::string, std::string> headers;
  std::vector<std::string> expressions;
  std::map<std::string, std::string> lowered;
  bool compiled = false;
  int (*callback)(void*, void*) = nullptr;
  void* payload = nullptr;

  bool is_stopped() const { return callback != nullptr && callback(payload, nullptr) != 0; }
};

std::atomic<bool> gone{false};

struct Kept {
  ~Kept() { gone = true; }
};

void compile_long(const Program& program) {
  static const Kept kept;
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!program.is_stopped() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (gone) std::abort();
}

struct Options {
  unsigned arch = 75;
  bool exact = false, binary = false;
  std::vector<std::string> flags;
};

/// A folder that is removed with its contents.
class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "tenon-nvrtc-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const std::string& path, const std::string& text) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

/// Runs the compiler; its messages go to `log`.
bool run(const std::vector<std::string>& arguments, const std::string& log) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 2, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, argv[0], &files, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0) {
    std::ofstream(log, std::ios::app) << "cannot start " << argv[0] << ": " << strerror(failed);
    return false;
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// Reads "sm_90a" or "compute_80".
bool read_architecture(const std::string& value, Options* options) {
  const std::size_t digits = value.find('_') + 1;
  const bool real = value.compare(0, 3, "sm_") == 0;
  if (digits == 0 || (!real && value.compare(0, 8, "compute_") != 0)) return false;
  char* end = nullptr;
  options->arch = static_cast<unsigned>(std::strtoul(value.c_str() + digits, &end, 10));
  options->exact = *end == 'a';
  options->binary = real;
  const bool whole = *end == 0 || ((*end == 'a' || *end == 'f') && end[1] == 0);
  return whole && std::find(std::begin(architectures), std::end(architectures),
                            static_cast<int>(options->arch)) != std::end(architectures);
}

/// Options that change nothing here.
bool harmless(const std::string& name) {
  static const char* const names[] = {"--device-debug",
                                      "-G",
                                      "--generate-line-info",
                                      "-lineinfo",
                                      "--restrict",
                                      "-restrict",
                                      "--extra-device-vectorization",
                                      "--dopt",
                                      "-dopt",
                                      "--ptxas-options",
                                      "-Xptxas",
                                      "--maxrregcount",
                                      "-maxrregcount",
                                      "--disable-warnings",
                                      "-w",
                                      "--diag-suppress",
                                      "--display-error-number",
                                      "--no-display-error-number",
                                      "--split-compile",
                                      "--minimal",
                                      "--no-cache",
                                      "-minimal",
                                      "--device-as-default-execution-space",
                                      "-default-device",
                                      "--ftz",
                                      "-ftz",
                                      "--prec-sqrt",
                                      "--prec-div",
                                      "--time",
                                      "-time",
                                      "--brief-diagnostics",
                                      "--relocatable-device-code",
                                      "-rdc",
                                      "--builtin-initializer-list",
                                      "--fdevice-time-trace",
                                      "--no-source-include",
                                      "--modify-stack-limit",
                                      "--std-headers"};
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

/// False when the option is unknown or asks for what Tenon forbids (--use_fast_math).
bool read_option(const std::string& name, const std::string& value, Options* options) {
  if (name == "--gpu-architecture" || name == "-arch") return read_architecture(value, options);
  if (name == "--std" || name == "-std") {
    options->flags.push_back("-std=" + value);
  } else if (name == "--fmad" || name == "-fmad") {
    options->flags.push_back(value == "false" ? "-ffp-contract=off" : "-ffp-contract=fast");
  } else if (name == "--define-macro" || name == "-D") {
    options->flags.push_back("-D" + value);
  } else if (name == "--undefine-macro" || name == "-U") {
    options->flags.push_back("-U" + value);
  } else if (name == "--include-path" || name == "-I") {
    options->flags.push_back("-I" + value);
  } else {
    return harmless(name);
  }
  return true;
}

bool takes_value(const std::string& name) {
  static const char* const names[] = {"--gpu-architecture",
                                      "-arch",
                                      "--std",
                                      "-std",
                                      "--define-macro",
                                      "-D",
                                      "--undefine-macro",
                                      "-U",
                                      "--include-path",
                                      "-I",
                                      "--ptxas-options",
                                      "-Xptxas",
                                      "--maxrregcount",
                                      "--diag-suppress"};
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

/// "--name=value", "--name value", "-Dvalue".
bool read_options(int count, const char* const* texts, Options* options, std::string* wrong) {
  for (int i = 0; i < count; ++i) {
    std::string name = texts[i], value;
    const std::size_t equals = name.find('=');
    const std::string letter = name.substr(0, 2);
    if ((letter == "-D" || letter == "-U" || letter == "-I") && name.size() > 2) {
      value = name.substr(2);
      name = letter;
    } else if (equals != std::string::npos) {
      value = name.substr(equals + 1);
      name = name.substr(0, equals);
    } else if (takes_value(name) && i + 1 < count) {
      value = texts[++i];
    }
    *wrong = texts[i];
    if (!read_option(name, value, options)) return false;
  }
  return true;
}

std::vector<std::string> instruction_flags() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("fma") != 0 && __builtin_cpu_supports("avx2") != 0) {
    return {"-mfma", "-mavx2"};
  }
#endif
  return {};
}

/// Both compiler runs; false, with messages in the log file, if one fails.
bool build(const Program& program, const Options& options, const Folder& folder,
           const std::string& log) {
  for (const auto& [name, text] : program.headers) {
    // The header with PTX and warp-wide intrinsics is replaced by the emulator's.
    if (name != "cuda/kernels/intrinsics.cuh") write(folder.file("include/" + name), text);
  }
  const std::string source = folder.file(program.name), expanded = folder.file("expanded.ii");
  write(source, program.text);
  std::vector<std::string> common = {TENON_EMULATOR_COMPILER, "-std=c++17", "-w"};
  common.insert(common.end(), options.flags.begin(), options.flags.end());
  std::vector<std::string> first = common;
  for (const std::string& flag :
       {std::string("-E"), std::string("-x"), std::string("c++"), std::string("-nostdinc"),
        std::string("-nostdinc++"), "-I" + folder.file("include"),
        std::string("-I" TENON_EMULATOR_FOLDER "/include"), std::string("-I" TENON_EMULATOR_FOLDER),
        std::string("-include"), std::string("tenon_device.h"),
        "-D__CUDA_ARCH__=" + std::to_string(options.arch * 10), source, std::string("-o"),
        expanded}) {
    first.push_back(flag);
  }
  if (!run(first, log)) return false;
  try {
    write(expanded, tenon_emulator::rewrite_kernels(read(expanded), program.expressions));
  } catch (const std::exception& error) {
    std::ofstream(log, std::ios::app) << program.name << ": error: " << error.what() << "\n";
    return false;
  }
  // Not optimised: compiling takes far longer than running. Without the C library, which the
  // process has anyway.
  std::vector<std::string> second = common;
  for (const std::string& flag : instruction_flags()) second.push_back(flag);
#if defined(__GNUC__) && !defined(__clang__)
  // Shared variables of templates go into the section of the others (GCC bug 41091).
  second.push_back("-fno-weak");
#endif
  for (const std::string& flag : {std::string("-x"),
                                  std::string("c++-cpp-output"),
                                  std::string("-O0"),
                                  std::string("-fPIC"),
                                  std::string("-shared"),
                                  std::string("-fno-exceptions"),
                                  std::string("-fno-rtti"),
                                  std::string("-fno-strict-aliasing"),
                                  std::string("-fno-math-errno"),
                                  std::string("-fno-trapping-math"),
                                  std::string("-fno-stack-protector"),
                                  std::string("-fno-asynchronous-unwind-tables"),
                                  std::string("-fno-threadsafe-statics"),
                                  std::string("-fvisibility=hidden"),
                                  expanded,
                                  std::string("-x"),
                                  std::string("none"),
                                  std::string("-nostdlib"),
                                  std::string("-lgcc"),
                                  std::string("-o"),
                                  folder.file("kernel.so")}) {
    second.push_back(flag);
  }
  return run(second, log);
}

std::string make_image(const std::string& library, const Options& options) {
  Image head{};
  std::memcpy(head.magic, tenon_emulator::image_magic, sizeof head.magic);
  head.size = sizeof head + library.size();
  head.arch = options.arch;
  head.exact = options.exact ? 1 : 0;
  return std::string(reinterpret_cast<const char*>(&head), sizeof head) + library;
}

Program* of(void* handle) { return static_cast<Program*>(handle); }

}  // namespace

TENON_EXPORT int nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return success;
}

TENON_EXPORT int nvrtcGetNumSupportedArchs(int* count) {
  *count = static_cast<int>(std::size(architectures));
  return success;
}

TENON_EXPORT int nvrtcGetSupportedArchs(int* values) {
  std::copy(std::begin(architectures), std::end(architectures), values);
  return success;
}

TENON_EXPORT const char* nvrtcGetErrorString(int result) {
  switch (result) {
    case success:
      return "NVRTC_SUCCESS";
    case program_creation_failure:
      return "NVRTC_ERROR_PROGRAM_CREATION_FAILURE";
    case invalid_input:
      return "NVRTC_ERROR_INVALID_INPUT";
    case invalid_program:
      return "NVRTC_ERROR_INVALID_PROGRAM";
    case invalid_option:
      return "NVRTC_ERROR_INVALID_OPTION";
    case compilation:
      return "NVRTC_ERROR_COMPILATION";
    case no_lowered_names_before_compilation:
      return "NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION";
    case name_expression_not_valid:
      return "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID";
    case cancelled:
      return "NVRTC_ERROR_CANCELLED";
    default:
      return "NVRTC_ERROR unknown";
  }
}

TENON_EXPORT int nvrtcCreateProgram(void** handle, const char* text, const char* name, int count,
                                    const char* const* headers, const char* const* names) {
  if (handle == nullptr || text == nullptr || count < 0) return invalid_input;
  auto* program = new Program;
  program->text = text;
  program->name = name != nullptr ? fs::path(name).filename().string() : "default_program";
  for (int i = 0; i < count; ++i) program->headers[names[i]] = headers[i];
  *handle = program;
  return success;
}

TENON_EXPORT int nvrtcDestroyProgram(void** handle) {
  if (handle == nullptr || *handle == nullptr) return invalid_program;
  delete of(*handle);
  *handle = nullptr;
  return success;
}

TENON_EXPORT int nvrtcSetFlowCallback(void* handle, int (*callback)(void*, void*), void* payload) {
  if (handle == nullptr) return invalid_program;
  of(handle)->callback = callback;
  of(handle)->payload = payload;
  return success;
}

TENON_EXPORT int nvrtcCompileProgram(void* handle, int count, const char* const* texts) {
  if (handle == nullptr) return invalid_program;
  if (const char* file = std::getenv("TENON_FAKE_NVRTC_LOG"))
    std::ofstream(file, std::ios::app) << std::to_string(getpid()) + "\n" << std::flush;
  if (std::getenv("TENON_FAKE_NVRTC_HELPERS") != nullptr &&
      read("/proc/self/cmdline").find("--compile-kernels-for-tenon") != std::string::npos)
    _exit(1);
  Program& program = *of(handle);
  if (std::getenv("TENON_FAKE_NVRTC_LONG") != nullptr && !program.headers.empty())
    compile_long(program);
  if (program.is_stopped()) return cancelled;
  Options options;
  std::string wrong;
  if (!read_options(count, texts, &options, &wrong)) {
    program.log = "nvrtc: error: unrecognized option " + wrong + "\n";
    return invalid_option;
  }
  try {
    const Folder folder;
    const std::string log = folder.file("log");
    const bool built = build(program, options, folder, log);
    program.log = read(log);
    if (!built) return compilation;
    program.image = options.binary ? make_image(read(folder.file("kernel.so")), options) : "";
  } catch (const std::exception& error) {
    program.log += error.what();
    return compilation;
  }
  for (std::size_t i = 0; i < program.expressions.size(); ++i) {
    program.lowered[program.expressions[i]] = tenon_emulator::lowered_name(i);
  }
  program.compiled = true;
  return success;
}

TENON_EXPORT int nvrtcGetProgramLogSize(void* handle, std::size_t* size) {
  if (handle == nullptr) return invalid_program;
  *size = of(handle)->log.size() + 1;
  return success;
}

TENON_EXPORT int nvrtcGetProgramLog(void* handle, char* log) {
  if (handle == nullptr) return invalid_program;
  std::memcpy(log, of(handle)->log.c_str(), of(handle)->log.size() + 1);
  return success;
}

TENON_EXPORT int nvrtcGetCUBINSize(void* handle, std::size_t* size) {
  if (handle == nullptr || !of(handle)->compiled) return invalid_program;
  *size = of(handle)->image.size();
  return success;
}

TENON_EXPORT int nvrtcGetCUBIN(void* handle, char* image) {
  if (handle == nullptr || !of(handle)->compiled) return invalid_program;
  std::memcpy(image, of(handle)->image.data(), of(handle)->image.size());
  return success;
}

/// There is no PTX here: the text is empty.
TENON_EXPORT int nvrtcGetPTXSize(void* handle, std::size_t* size) {
  if (handle == nullptr || !of(handle)->compiled) return invalid_program;
  *size = 1;
  return success;
}

TENON_EXPORT int nvrtcGetPTX(void* handle, char* text) {
  if (handle == nullptr || !of(handle)->compiled) return invalid_program;
  *text = 0;
  return success;
}

TENON_EXPORT int nvrtcAddNameExpression(void* handle, const char* expression) {
  if (handle == nullptr) return invalid_program;
  of(handle)->expressions.emplace_back(expression);
  return success;
}

TENON_EXPORT int nvrtcGetLoweredName(void* handle, const char* expression, const char** name) {
  if (handle == nullptr) return invalid_program;
  if (!of(handle)->compiled) return no_lowered_names_before_compilation;
  const auto found = of(handle)->lowered.find(expression);
  if (found == of(handle)->lowered.end()) return name_expression_not_valid;
  *name = found->second.c_str();
  return success;
}
