// "encoding=latin1", "header=no": options of a data source about the format of its rows.
#pragma once

#include <string>

#include <tenon/data.h>

namespace tenon::data {

/// Those that there are, for messages.
inline constexpr char kRowOptions[] =
    "encoding=NAME, separator=SIGN, comment=SIGN|none, header=yes|no, quotes=yes|no";

/// Sets what the part of a spec says; false for one that is none of kRowOptions.
bool set_row_option(RowFormat& rows, const std::string& part);

}  // namespace tenon::data
