// Options shared by several commands: --tune, the choice of GPU engines, and --threads.
#pragma once

#include <string>

#include "args.h"

namespace tenon::cli {

inline constexpr char kTuneHelp[] =
    "choice of GPU engines for products: off (cost model), read (measured before), write (measure "
    "unknown shapes)";

/// Adds it; `mode` holds the default.
void add_tune_option(Command& command, std::string& mode);
/// Sets it for the process, with a bar while engines are timed. Called when the device is known:
/// throws UsageError where it would do nothing on that.
void set_tuning(const std::string& mode);
/// Sets the number of threads that --threads says; throws UsageError naming it.
void use_threads(int count);
/// The bar alone.
void show_tuning();

}  // namespace tenon::cli
