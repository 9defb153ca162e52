// A head that the user gives as text, Options::head: "256,relu,dropout=0.5".
#pragma once

#include <cstdint>
#include <string>

#include <tenon/models.h>

namespace tenon::models {

/// The layers of Options::head for `in` input features, then a linear layer for the classes. Throws
/// ValueError for a text that is not a head.
nn::Sequential head_of(std::int64_t in, const Options& options);

/// The same layers of the head `text` as lines of a network file, each indented by `indent`.
std::string head_toml(const std::string& text, const std::string& indent);

}  // namespace tenon::models
