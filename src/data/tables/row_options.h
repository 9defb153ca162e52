// "encoding=latin1", "header=no": options of a data source about the format of its rows.
#pragma once

#include <string>

#include <tenon/data.h>

namespace tenon::data {

/// The known options, for messages.
inline constexpr char kRowOptions[] =
    "encoding=NAME, separator=CHAR, comment=CHAR|none, header=yes|no, quotes=yes|no";

/// Applies one option of a data source; false if it is not in kRowOptions.
bool set_row_option(RowFormat& rows, const std::string& part);

}  // namespace tenon::data
