// Parsing of a command line against the table of a command.
#pragma once

#include <string>
#include <vector>

#include "args.h"

namespace tenon::cli {

/// Parses the words after the command's name, or throws UsageError. Returns false if help was
/// requested and printed.
bool parse(const Command& command, const std::string& path, const std::vector<std::string>& words);

}  // namespace tenon::cli
