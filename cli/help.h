// Help pages, printed from a command's table.
#pragma once

#include <string>
#include <vector>

#include "args.h"
#include "terminal.h"

namespace tenon::cli {

/// "tenon eval RUN [options]"
std::string usage_line(const Command& command, const std::string& path);
/// The whole page of one command.
void print_help(const Command& command, const std::string& path);
/// The page of `tenon` itself.
void print_overview(const std::vector<Command>& commands);

}  // namespace tenon::cli
