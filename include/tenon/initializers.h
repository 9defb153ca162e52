// Initializers of your own by name, for nn::init::by_name() and network files.
#pragma once

#include <string>
#include <vector>

#include <tenon/nn.h>

namespace tenon::nn::init {

/// Adds an initializer under a name, for by_name() and for `init` in network files. Throws
/// ValueError for an empty function, for a name that is empty or has other characters than
/// lower-case letters, digits and underscores, and for a name that is taken.
TENON_API void register_initializer(const std::string& name, Initializer initializer);
/// The names that by_name() takes: those of the library, then the registered ones in order.
TENON_API std::vector<std::string> names();

}  // namespace tenon::nn::init
