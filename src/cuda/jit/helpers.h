// Processes that compile. NVRTC reads one source at a time in a process, however many threads call
// it; so a program that allows it (compile_in_processes in <tenon/device.h>) is started several
// times over, to do nothing else.
//
// They are started when all others are at work, ended when they have had nothing to do for some
// seconds, end by themselves when the program is gone, and are never relied on: what goes wrong
// with one is compiled here. Nothing else is: a process can end at any time while others compile
// for it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cuda/jit/nvrtc.h"

namespace tenon::cuda {

/// From now on, helpers may be started by this command.
void enable_helpers(std::vector<std::string> command);
/// How many at once at most: TENON_COMPILER_PROCESSES, else about as many as there are processors;
/// 0 without enable_helpers().
int most_helpers();
/// Ends those at work, for a process that ends: what they were asked for is not compiled any more.
void abandon_helpers();

/// What this process's compiler makes of a source: by a helper, or by `here` where there are none.
/// Any thread may call it.
CompileResult compile_or_have_compiled(const std::string& text, const std::string& file_name,
                                       int arch, const std::function<CompileResult()>& here);

/// What a helper does: serves whoever is at the other end of file descriptor 0.
[[noreturn]] void serve_compilations();

}  // namespace tenon::cuda
