// The kinds of data sources that a program has registered.
#pragma once

#include <string>

#include <tenon/data.h>

namespace tenon::data {

/// The registered kind of this name; null if there is none. Stays valid.
const RegisteredSource* registered_source(const std::string& name);

}  // namespace tenon::data
