// The environment, read in one place: no other file of the library calls getenv.
//
// Every variable starts with TENON_ or is a convention of the platform (HOME, XDG_CACHE_HOME,
// NO_COLOR). An empty variable counts as unset.
#pragma once

#include <cstdint>
#include <string>

namespace tenon {

/// The variable's text, or `fallback` if it is unset or empty.
std::string env_text(const char* name, const char* fallback = "");
/// The variable as an integer; throws ValueError naming the variable if it has any other value.
std::int64_t env_int(const char* name, std::int64_t fallback);
/// True: 1, true, yes, on. False: 0, false, no, off. Throws ValueError naming the variable if it
/// has any other value.
bool env_flag(const char* name, bool fallback);
/// The folder for everything that Tenon can recompute: TENON_CACHE, else XDG_CACHE_HOME/tenon, else
/// ~/.cache/tenon. "" if neither of the latter two is an absolute path. Never a folder that users
/// share.
std::string user_cache_folder();

}  // namespace tenon
