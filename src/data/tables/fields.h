// Fields of tables as texts: without the spaces around them, in lower case, and missing values.
#pragma once

#include <string>
#include <string_view>

namespace tenon::data {

/// Whether a field means a missing value: empty, NA, N/A, NaN, null, none or ?, in any case, also
/// in < and >.
bool is_missing(std::string_view field);
/// Trims spaces, including no-break spaces.
std::string_view trimmed(std::string_view field);
/// Lower-cases a name, trims it, and reduces runs of spaces to one.
std::string folded(std::string_view name);

}  // namespace tenon::data
