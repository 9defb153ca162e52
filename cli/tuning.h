// Options shared by several commands: --tune, the choice of GPU engines, and --threads.
#pragma once

#include <string>

#include "args.h"

namespace tenon::cli {

inline constexpr char kTuneHelp[] =
    "choice of GPU engines for products: off (cost model), read (measured before), write (measure "
    "unknown shapes)";

/// Adds --tune; `mode` holds the default.
void add_tune_option(Command& command, std::string& mode);
/// Sets the mode for the process and shows a progress bar while engines are measured. Call it after
/// set_device(): throws UsageError if the mode has no effect on the device.
void set_tuning(const std::string& mode);
/// Applies --threads; throws UsageError for an invalid number.
void use_threads(int count);
/// Shows only the progress bar.
void show_tuning();

}  // namespace tenon::cli
