// The names in a folder.
#pragma once

#include <string>
#include <system_error>
#include <vector>

namespace tenon {

/// Names in a folder, in no order, without "." and "..". If the folder cannot be read: none, and
/// `error` is set. std::filesystem's iterators terminate the program when they find no memory.
std::vector<std::string> names_in(const std::string& folder, std::error_code& error);
/// The same for an open folder.
std::vector<std::string> names_in(int folder, std::error_code& error);

}  // namespace tenon
