// A plugin that was built for another version of Tenon, and whose code must therefore never run.
#include <tenon/version.h>
#undef TENON_VERSION_MINOR
#define TENON_VERSION_MINOR 99
#include <tenon/plugin.h>

#include <cstdlib>

namespace {
struct Constructed {
  Constructed() { std::abort(); }
} const constructed;
}  // namespace

TENON_PLUGIN(other_version, "1.0") { std::abort(); }
