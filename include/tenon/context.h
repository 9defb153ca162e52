// Context: the settings that influence results and programs besides the inputs: precision, threads,
// device, generator and others. A Context is a value; every thread has a current one, and nothing
// is process-wide.
//
// set_precision(), set_threads(), set_device() and similar functions (eval.h, device.h) change the
// current context of the calling thread. A new thread starts with the defaults; to give it another
// thread's settings, pass the context: `ContextScope scope(context)`. A graph keeps the precision,
// device and generator that were current when it was built. A compiled function keeps the whole
// context. Neither depends on the context of the thread that evaluates or calls it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <tenon/device.h>
#include <tenon/export.h>
#include <tenon/generator.h>
#include <tenon/precision.h>

namespace tenon {

/// How an engine is chosen for matrix products and convolutions on a GPU if several engines can run
/// them. Engines add in different orders, so results are bit-identical only with the same choice.
/// The CPU has one engine for each operation.
enum class Tune : std::uint8_t {
  Off,   ///< Use each engine's own estimate.
  Read,  ///< Use measurements made earlier on the same model of GPU, if there are any (default).
  /// Also measure what is not known yet when a program is planned, which takes seconds, and store
  /// the result in the cache folder.
  Write
};
/// The name: "off", "read" or "write".
TENON_API const char* name(Tune tune);
/// The value with this name. Throws ValueError for an unknown name.
TENON_API Tune tune_from_name(const std::string& text);

/// Which engines run operations.
enum class EngineSet : std::uint8_t {
  Fast,      ///< The fast engines.
  Reference  ///< Plain loops on the CPU, one operation at a time.
};

/// The settings of a thread or of a compiled function.
struct TENON_API Context {
  /// The defaults, with a new generator: seed 0, counter 0.
  Context();

  /// Precision of products, unless a PrecisionScope or a layer sets another one.
  Precision precision = Precision::Fp32;
  int threads = 0;                      ///< Threads of a program; 0: all CPUs of the process.
  Tune tune = Tune::Read;               ///< How engines are chosen.
  EngineSet engines = EngineSet::Fast;  ///< Which engines run operations.
  /// Default device of new tensors, variables and networks. It must have been opened:
  /// `device("cuda")`.
  Device device;
  /// Limit of a program's peak memory in bytes, leaves included. Programs above it are refused
  /// before they run; 0: no limit.
  std::int64_t memory_limit = 0;
  /// Disabled passes, one bit each in the order of pass_names().
  std::uint64_t disabled_passes = 0;
  /// Default generator. Copies of a context share it; give a context its own generator if its
  /// random numbers must not depend on other draws.
  std::shared_ptr<Generator> generator;
};

/// The current context of the calling thread.
TENON_API const Context& current_context();

/// Makes a copy of a context the calling thread's current one while the scope lives. Scopes nest;
/// settings changed inside a scope end with it. Throws ValueError for a context without a generator
/// and for values that set_threads() or set_memory_limit() would refuse.
class TENON_API ContextScope {
 public:
  explicit ContextScope(const Context& context);          ///< Begins the scope.
  ~ContextScope();                                        ///< Ends the scope.
  ContextScope(const ContextScope&) = delete;             ///< Not copyable.
  ContextScope& operator=(const ContextScope&) = delete;  ///< Not copyable.

 private:
  Context context_;
  Context* outer_;
};

}  // namespace tenon
