// Output of predict for each sample: text beside an image, JSON, or a table row.
#pragma once

#include <tenon/train.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "image.h"
#include "json.h"

namespace tenon::cli {

/// One sample and what the model makes of it.
struct Predicted {
  std::string name;             ///< its file, row or line
  std::string text{};           ///< the line itself, if the file contains texts
  Glyph glyph{};                ///< empty when there is nothing to draw
  std::vector<float> values{};  ///< probabilities of the classes, or quantities
  std::int64_t label = -1;      ///< its class, if it is known
  std::vector<float> target{};  ///< its quantities, if they are known
};

/// Images up to this size are drawn beside the text.
inline constexpr int kLargestDrawn = 64;

/// "rows.csv" gives "rows.predictions.csv", "a.png" gives "a.png.predictions.csv".
std::string predictions_file(const std::string& file);

struct OutputOptions {
  int top = 3;
  bool json = false, plain = false;  ///< print JSON; draw nothing
  bool table = false;                ///< keep rows for write_table()
  std::string file{};                ///< of all samples, or ""
};

class PredictOutput {
 public:
  /// Throws UsageError for a file name with another extension.
  PredictOutput(const train::TrainedModel& model, OutputOptions options);
  /// Adds a sample; prints it if `shown` is set and JSON was not requested.
  void add(const Predicted& sample, bool shown);
  /// JSON of another kind.
  void add_json(const Json& row);
  /// Writes the samples added since the last call to a separate table. Returns their number.
  std::int64_t write_table(const std::string& file);
  /// Writes options.file: .csv, .txt (tabs between the fields) or .json by its ending.
  void write_file() const;
  void print_json() const;
  std::int64_t taken() const { return taken_; }
  std::int64_t labelled() const { return labelled_; }
  std::int64_t right() const { return right_; }

 private:
  using Fields = std::vector<std::string>;
  Fields fields(const Predicted& sample) const;
  std::string table(std::size_t from, char separator) const;

  const train::TrainedModel& model_;
  OutputOptions options_;
  std::shared_ptr<Json> json_;  // a list
  std::vector<Fields> rows_{};
  std::size_t width_ = 1, written_ = 0;  // quantities of a sample; rows
  std::int64_t taken_ = 0, labelled_ = 0, right_ = 0;
};

}  // namespace tenon::cli
