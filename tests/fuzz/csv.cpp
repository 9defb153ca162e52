// Fuzzes the reader of tables as sets. The first byte chooses the options.
#include <memory>
#include <optional>

#include "data/csv_dataset.h"
#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  tenon::data::CsvOptions options;
  options.classes = (data[0] & 1) != 0;
  if ((data[0] & 2) != 0) options.label_column = 0;
  if ((data[0] & 4) != 0) options.image_shape = {1, 2, 2};
  options.labelled = (data[0] & 16) == 0;
  if ((data[0] & 8) != 0) options.class_names = {"0", "cat"};
  if ((data[0] & 32) != 0) options.split = {.test = 0.3, .seed = 5};
  std::optional<tenon::data::Split> part;
  if ((data[0] & 64) != 0) part = tenon::data::Split::Test;
  if ((data[0] & 128) != 0) {
    tenon::data::TableColumns known;
    known.columns = {{"a", 1.5, {}}, {"b", 0, {"cat", "dog"}}};
    options.columns = std::make_shared<tenon::data::TableColumns>(known);
  }
  return tenon::fuzz::refuse_or_read(data + 1, size - 1, [&](std::string_view bytes) {
    try {
      tenon::data::parse_csv(bytes, "input", options, part);
    } catch (const tenon::ShapeError&) {  // the columns are no picture of that shape
    } catch (const tenon::ValueError&) {  // no such column, or a part without rows
    }
  });
}
