// Files of caches: written whole or not at all, by many processes at once, and lost without harm.
// Files of users are io's.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace tenon {

/// Writes the pieces one after another under a name of this process's own and gives the file its
/// name when it is whole; makes the folder. False when that fails for any reason; nothing
/// half-written stays, but for a killed process's "NAME.*.tmp".
bool write_cache_file(const std::string& path,
                      std::initializer_list<std::string_view> pieces) noexcept;

}  // namespace tenon
