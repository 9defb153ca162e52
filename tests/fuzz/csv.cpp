// Fuzzes the table reader. The first two bytes choose the options. A table that was read is read
// again with its own columns and must give the same numbers.
#include <memory>
#include <optional>
#include <string>

#include "data/tables/csv_dataset.h"
#include "fuzz/fuzz.h"

namespace {

using tenon::data::CsvOptions;

CsvOptions options_of(unsigned first, unsigned second) {
  CsvOptions options;
  options.classes = (first & 1) != 0;
  if ((first & 2) != 0) options.label_column = 0;
  if ((first & 4) != 0) options.image_shape = {1, 2, 2};
  options.labelled = (first & 16) == 0;
  if ((first & 8) != 0) options.class_names = {"0", "cat"};
  if ((first & 32) != 0) options.split.seed = 5, options.split.test = 0.3;
  if ((first & 128) != 0) {
    tenon::data::TableColumns known;
    known.columns = {{"a", 1.5, {}}, {"b", 0, {"cat", "dog"}}};
    options.columns = std::make_shared<tenon::data::TableColumns>(known);
  }
  const char* encodings[] = {"", "latin1", "cp1252", "utf-16"};
  options.rows.encoding = encodings[second & 3];
  if ((second & 4) != 0) options.decimal = ",";
  if ((second & 8) != 0) options.thousands = (second & 4) != 0 ? "." : ",";
  if ((second & 16) != 0) options.dates = {"a"};
  if ((second & 32) != 0) options.rows.comment = (second & 64) != 0 ? "none" : "%";
  if ((second & 64) != 0) options.rows.quotes = false;
  if ((second & 128) != 0) options.rows.header = true, options.categories = {"b"};
  options.memory = 64u << 20;
  return options;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  CsvOptions options = options_of(data[0], data[1]);
  std::optional<tenon::data::Split> part;
  if ((data[0] & 64) != 0) part = tenon::data::Split::Test;
  return tenon::fuzz::refuse_or_read(data + 2, size - 2, [&](std::string_view bytes) {
    const std::string text(bytes);
    tenon::data::TensorDatasetParts parts;
    try {
      parts = tenon::data::parse_csv(text, "input", options, part);
    } catch (const tenon::ShapeError&) {  // the columns do not fit the image shape
      return;
    } catch (const tenon::ValueError&) {  // no such column, or a part without rows
      return;
    }
    if (part || !parts.table || options.columns) return;
    options.columns = parts.table;
    try {
      const auto again = tenon::data::parse_csv(text, "input", options);
      if (again.input.to_vector<float>() != parts.input.to_vector<float>()) __builtin_trap();
    } catch (const tenon::Error&) {
      __builtin_trap();
    }
  });
}
