// Tables in the formats that pandas writes give the numbers that pandas reads
// (make_table_fixtures.py).
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include <tenon/data.h>
#include <tenon/error.h>
#include <tenon/io.h>
#include <nlohmann/json.hpp>

#include "data/samples/source_parts.h"
#include "data/tables/csv_dataset.h"

using namespace tenon;

namespace {

using Json = nlohmann::json;

// Converts characters U+0000 to U+00FF to bytes.
std::string bytes_of(const std::string& text) {
  std::string out;
  for (std::size_t k = 0; k < text.size(); ++k) {
    const auto byte = static_cast<unsigned char>(text[k]);
    out.push_back(byte < 0x80 ? text[k] : static_cast<char>((byte & 3) << 6 | (text[++k] & 0x3f)));
  }
  return out;
}

data::CsvOptions options_of(const std::string& spec) {
  data::CsvOptions out;
  for (const std::string& part : data::source_parts("file," + spec)) {
    const std::string value = part.substr(part.find('=') + 1);
    if (part.starts_with("decimal=")) out.decimal = value;
    if (part.starts_with("separator=")) out.rows.separator = value;
    if (part.starts_with("encoding=")) out.rows.encoding = value;
    if (part.starts_with("date=")) out.dates.push_back(value);
  }
  return out;
}

bool near(float a, float b) { return std::abs(a - b) <= 1e-5f * std::max(1.0f, std::abs(b)); }

}  // namespace

TEST_CASE("fixtures: tables of pandas in forty formats") {
  const Json cases = Json::parse(io::read_file("tests/e2e/fixtures/tables.json"));
  CHECK(cases.size() >= 80);
  for (const Json& one : cases) {
    const std::string name = one["name"];
    CAPTURE(name);
    data::CsvOptions options = options_of(one["spec"]);
    const std::string bytes = bytes_of(one["bytes"]);
    data::TensorDatasetParts parts;
    REQUIRE_NOTHROW(parts = data::parse_csv(bytes, name, options));
    CHECK(parts.class_names == one["classes"].get<std::vector<std::string>>());
    CHECK(parts.target.to_vector<std::int64_t>() ==
          one["targets"].get<std::vector<std::int64_t>>());
    std::vector<std::string> columns;
    for (const data::TableColumn& column : parts.table->columns)
      if (!column.name.empty() && (columns.empty() || columns.back() != column.name))
        columns.push_back(column.name);
    CHECK(columns == one["columns"].get<std::vector<std::string>>());
    std::vector<float> wanted;
    for (const Json& row : one["inputs"])
      for (const Json& value : row) wanted.push_back(value.get<float>());
    const std::vector<float> inputs = parts.input.to_vector<float>();
    REQUIRE(inputs.size() == wanted.size());
    std::size_t other = 0;
    for (std::size_t k = 0; k < inputs.size(); ++k) other += !near(inputs[k], wanted[k]);
    CHECK(other == 0);
    // Read again with the table's own columns, the result is the same.
    options.columns = parts.table;
    CHECK(data::parse_csv(bytes, name, options).input.to_vector<float>() == inputs);
  }
}
