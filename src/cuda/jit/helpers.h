// Helper processes that compile. NVRTC processes one source at a time in a process, however many
// threads call it. A program that allows it (compile_in_processes in <tenon/device.h>) is therefore
// started several times over, only to compile.
//
// Helpers are started when all others are busy, ended when they have been idle for some seconds,
// and end by themselves when the program is gone. If a helper fails, its source is compiled in the
// program's own process. Nothing else is compiled there: a process can end at any time while
// helpers compile for it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cuda/jit/nvrtc.h"

namespace tenon::cuda {

/// From now on, helpers may be started with this command.
void enable_helpers(std::vector<std::string> command);
/// The largest number of helpers: TENON_COMPILER_PROCESSES, otherwise about the number of
/// processors; 0 without enable_helpers().
int most_helpers();
/// Ends busy helpers because the process ends; their sources are not compiled any more.
void abandon_helpers();

/// Compiles a source: by a helper, or by `here` if there are no helpers. May be called by any
/// thread.
CompileResult compile_or_have_compiled(const std::string& text, const std::string& file_name,
                                       int arch, const std::function<CompileResult()>& here);

/// The main loop of a helper: serves requests from file descriptor 0.
[[noreturn]] void serve_compilations();

}  // namespace tenon::cuda
