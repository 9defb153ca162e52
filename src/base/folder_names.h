// What lies in a folder.
#pragma once

#include <string>
#include <system_error>
#include <vector>

namespace tenon {

/// Names in a folder, in no order, without "." and ".."; none, and the error, where it cannot be
/// read. std::filesystem's iterators end the program when they find no memory.
std::vector<std::string> names_in(const std::string& folder, std::error_code& error);
/// The same of a folder that is open.
std::vector<std::string> names_in(int folder, std::error_code& error);

}  // namespace tenon
