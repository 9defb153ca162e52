// Parses row options by name; the reader of a source applies them.
#include "data/tables/row_options.h"

namespace tenon::data {

bool set_row_option(RowFormat& rows, const std::string& part) {
  const std::size_t equals = part.find('=');
  if (equals == std::string::npos || equals + 1 == part.size()) return false;
  const std::string key = part.substr(0, equals), value = part.substr(equals + 1);
  const bool answer = value == "yes" || value == "no";
  if (key == "encoding") {
    rows.encoding = value;
  } else if (key == "separator") {
    rows.separator = value;
  } else if (key == "comment") {
    rows.comment = value;
  } else if (key == "header" && answer) {
    rows.header = value == "yes";
  } else if (key == "quotes" && answer) {
    rows.quotes = value == "yes";
  } else {
    return false;
  }
  return true;
}

}  // namespace tenon::data
