// Numbers of parameters as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace tenon::nn {

/// The number with a comma after every three digits: "61,706".
std::string grouped(std::int64_t value);

}  // namespace tenon::nn
