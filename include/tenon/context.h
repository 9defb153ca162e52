// Context: what decides results and programs besides inputs. A value, and a current one in every
// thread; nothing here belongs to the process.
//
// set_precision(), set_threads(), set_device() and their like change the calling thread's current
// context. A new thread begins with the defaults; what another thread set is handed to it as a
// value: ContextScope scope(context). A graph keeps the precision, the device and the generator
// that were current when it was built, a compiled function the whole context, so neither depends on
// who evaluates or calls it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <tenon/device.h>
#include <tenon/export.h>
#include <tenon/generator.h>
#include <tenon/precision.h>

namespace tenon {

/// Who runs a product or a convolution on a GPU, where several engines can: Off asks them where
/// they expect to be good; Read (the default) takes what was measured before on such a GPU, where
/// that is known; Write measures what is not known yet when a program is planned, which takes
/// seconds, and keeps it in the cache folder. The choice changes the order of sums, so bits
/// repeat only under the same one. The CPU has one engine for each.
enum class Tune : std::uint8_t { Off, Read, Write };
TENON_API const char* name(Tune tune);
/// "off", "read", "write"; throws ValueError for another text.
TENON_API Tune tune_from_name(const std::string& text);

/// Fast, or Reference: plain loops on the CPU, every op, one at a time.
enum class EngineSet : std::uint8_t { Fast, Reference };

struct TENON_API Context {
  /// The defaults, with a generator of its own: seed 0, counter 0.
  Context();

  Precision precision = Precision::Fp32;  ///< of products that no layer has an own precision for
  int threads = 0;                        ///< that a program may use; 0: all CPUs of the process
  Tune tune = Tune::Read;
  EngineSet engines = EngineSet::Fast;
  /// Where tensors, variables and networks are made that are told no other. One that was opened:
  /// device("cuda").
  Device device;
  /// Programs whose peak (leaves included) would exceed this many bytes are refused before they
  /// run; 0: no limit.
  std::int64_t memory_limit = 0;
  /// Passes that are switched off, a bit each in the order of pass_names().
  std::uint32_t disabled_passes = 0;
  /// Of draws that are given no other. Copies of a context share it; give one of its own to a
  /// context whose numbers must not depend on what others draw.
  std::shared_ptr<Generator> generator;
};

/// The calling thread's.
TENON_API const Context& current_context();

/// Makes a copy of the context the calling thread's current one while it lives. Scopes nest; what
/// is set inside one ends with it. Throws ValueError for a context without a generator, and for
/// numbers that set_threads() or set_memory_limit() would refuse.
class TENON_API ContextScope {
 public:
  explicit ContextScope(const Context& context);
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  Context context_;
  Context* outer_;
};

}  // namespace tenon
