// What 'tenon predict' predicts: samples of a dataset, rows of tables, lines of text, arrays,
// images and videos, and which of them a file holds.
#pragma once

#include <tenon/train.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "image.h"
#include "predict_output.h"
#include "trained.h"

namespace tenon::cli {

struct PredictOptions {
  TrainedOptions trained;
  PartOptions part;
  std::string data, out;
  std::vector<std::string> files, texts, questions;
  std::int64_t count = 5, start = 0;
  int top = 3, threads = 0;
  std::string device = "cpu", tune = "read";
  bool json = false, plain = false, write = false;
  /// Whether every sample is predicted, not only those that are printed.
  bool all() const { return json || write || !out.empty(); }
};

using Named = std::function<std::string(const train::Prediction&)>;

/// Predicts the samples of a dataset in batches and passes them to the output.
struct SetPredictor {
  const train::TrainedModel& model;
  const PredictOptions& options;
  PredictOutput& output;
  train::SeenSamples& images;  ///< of files of one image each
  bool own = false;  ///< whether the samples are a part that the user chose of the run's own data

  void operator()(const data::Dataset& set, const std::string& name, const Named& named,
                  const std::function<Glyph(const Tensor& input)>& glyph_of = {}) const;
};

/// Prints notes; with --strict, throws FormatError for one that is not accepted.
void take_notes(const Notes& notes, const PredictOptions& options);
/// Adds a note on how many of the predicted samples training has seen.
void add_seen(const std::optional<train::SeenSamples>& seen, const std::string& name,
              const PredictOptions& options, Notes& notes);

/// The kind of a data source, "csv" for "csv:rows.csv,separator=;"; "" for a file name.
std::string source_kind(const std::string& name);
/// The lines of a file, starting at --start.
std::vector<train::TextLine> lines_of(const train::TrainedModel& model, const std::string& file,
                                      const PredictOptions& options);
/// Predicts a text. Without a name, the text itself is its name.
Predicted text_of(const train::TrainedModel& model, const std::string& name,
                  const std::string& text);
/// Predicts a part of a data source.
void predict_source(SetPredictor predict, const std::string& source);
/// Predicts a file. Its extension or its first bytes tell its kind.
void predict_file(const SetPredictor& predict, const std::string& file);
/// Writes predictions beside a file: table rows keep their fields; other files get one row per
/// sample.
void write_file(const SetPredictor& predict, const std::string& file);

}  // namespace tenon::cli
