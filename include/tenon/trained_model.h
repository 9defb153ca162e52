// Trained models: opens a run folder or a model file, to evaluate it and to predict images, rows of
// tables and texts, to answer questions, to generate and to translate.
//
// Nothing here prints.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenon/context.h>
#include <tenon/data.h>
#include <tenon/runs.h>
#include <tenon/task.h>
#include <tenon/train_reports.h>

namespace tenon::data {
class ImageFiles;
class Tokenizer;
class Vocabulary;
struct CsvSpec;  // (library use)
}  // namespace tenon::data
namespace tenon::io {
struct Image;
struct ImageReading;
}  // namespace tenon::io

namespace tenon::train {

struct DataSource;     // (library use)
struct ResolvedModel;  // (library use)
struct Session;        // (library use)
class SampleRecord;

/// An answer that is a span of a text.
struct Answer {
  std::string text{};      ///< the answer; "": the text has none
  std::int64_t place = 0;  ///< offset of the answer in the text, in bytes
  /// Probability of the pair of first and last token, among the pairs that were considered.
  double probability = 0;
};

/// A question of a question-answering dataset with the model's answer and the correct ones.
struct AskedQuestion {
  std::string name{};                ///< Dataset::sample_name()
  std::string question{};            ///< the question
  Answer answer{};                   ///< the model's answer
  std::vector<std::string> right{};  ///< the correct answers; empty: the text has none
  double exact = 0;                  ///< 1 if the answer is correct, else 0
  double f1 = 0;                     ///< F1 of the answer's words
};

/// Options of TrainedModel::generate().
struct GenerateOptions {
  std::int64_t tokens = 200;  ///< tokens to generate
  double temperature = 1;     ///< divides the scores; 0: always the most likely token
  std::int64_t top_k = 0;     ///< sample among the k most likely tokens; 0: among all
  double top_p = 1;  ///< sample among the most likely tokens that together reach this probability
  std::uint64_t seed = 0;  ///< seed of the sampling
  /// A tokenizer to use instead of the model's own tokens, for weights from elsewhere; null: the
  /// model's own.
  std::shared_ptr<const data::Tokenizer> tokenizer{};
  /// Receives each piece of text as it is generated; return false to stop.
  std::function<bool(const std::string& piece)> on_text{};
};

/// Options of TrainedModel::translate().
struct TranslateOptions {
  std::int64_t beam = 4;  ///< beam size
  /// Scores are divided by ((5 + length) / 6) to this power (Wu et al., "Google's neural machine
  /// translation system", 2016).
  double length_penalty = 0.6;
  std::int64_t batch = 64;  ///< texts in a batch
};

/// The samples that an evaluation or prediction reads.
struct Selection {
  std::string data{};                   ///< the data source, as data::open_dataset() takes it
  data::Split part = data::Split::All;  ///< the part of the source
  bool own = false;                     ///< whether this is the run's own data
  Notes notes{};                        ///< where the source is read other than it was named
  /// The source, where select_data() has read it; null: open_set() opens it.
  std::shared_ptr<const data::Source> source{};
};

/// Options of TrainedModel::evaluate().
struct EvaluateOptions {
  std::optional<data::Split> part{};  ///< unset: the part that select_data() chooses
  std::int64_t batch = 0;             ///< batch size; 0: chosen for speed
  bool strict = false;                ///< a note of the data is a FormatError
  bool allow_seen = false;            ///< `strict` accepts samples that equal training samples
  /// Called after each batch with the number of finished batches and of all batches.
  std::function<void(std::int64_t, std::int64_t)> progress{};
};

/// A text to predict.
struct TextLine {
  std::string name{};       ///< where the text is from: "texts.txt, line 17"
  std::string text{};       ///< the text; a tab separates two texts
  std::int64_t label = -1;  ///< its class; -1: unknown
};
/// What TrainedModel::read_texts() returns.
struct TextLines {
  std::vector<TextLine> lines{};  ///< the texts, in the order of the file
  Notes notes{};                  ///< what the reader skipped, converted or assumed
};

/// A prediction for one sample of a dataset.
struct Prediction {
  std::int64_t index = 0;       ///< the sample's index in the dataset
  std::string name{};           ///< Dataset::sample_name()
  std::vector<float> values{};  ///< Task::predictions(): probabilities or quantities
  std::int64_t label = -1;      ///< the sample's class; -1: unknown
  std::vector<float> target{};  ///< the sample's quantities or labels; empty: unknown
};

/// A trained model from a run folder or from a model.safetensors file.
class TENON_API TrainedModel {
 public:
  /// Opens a run folder or a model file. Throws IoError, or FormatError for a file without the
  /// settings of its model.
  static TrainedModel open(const std::string& run_or_file);
  /// Opens what a Trainer wrote, for a module of your own, which gets the weights. The model
  /// computes in the current context. predict() passes inputs to the module unchanged, evaluate()
  /// throws NotSupported. Throws IoError, and as load_state_dict() if the weights do not fit the
  /// module.
  static TrainedModel open(const std::string& run_or_file, const nn::AnyModule& net);
  /// The network of the settings with weights from another framework (<tenon/weights.h>). The
  /// number of outputs is Settings::classes, or that of the published network if it is 0. All
  /// weights of the network must be in the file. Throws ValueError that lists missing, unexpected
  /// and differently shaped weights. With Settings::strict, throws FormatError for what the reader
  /// of the file or of the config beside the file skipped, converted or assumed.
  static TrainedModel with_weights(const Settings& settings, const std::string& file);
  /// How with_weights() converted the weights, as a sentence.
  const std::string& weights_note() const { return weights_note_; }
  /// The settings of the run.
  const Settings& settings() const { return settings_; }
  /// What is known of the network (Settings::model_info()), found when the model was opened. Says
  /// nothing about a module that was passed to open().
  const models::Info& info() const;
  /// Sets the precision of computation. By default it is that of the run.
  void set_precision(Precision precision);
  /// Sets how images are resized and cropped to the network's input, "resize,ten_crop". By default
  /// as in the run. Throws ValueError.
  void set_preprocess(const std::string& steps);
  /// Sets the background of transparent images: a colour (io::parse_colour()) or "none". By default
  /// as in the run. Throws ValueError.
  void set_background(const std::string& colour);
  /// The network.
  const nn::AnyModule& net() const { return net_; }
  /// Path of the file with the weights.
  const std::string& file() const { return file_; }
  /// Names of the classes, one for each output: the names in the training data, or numbers. "<N>"
  /// for an output that no token of a text model has.
  const std::vector<std::string>& class_names() const { return class_names_; }
  /// How rows of a table become inputs, from the training data; null unless the model was trained
  /// on a table.
  const std::shared_ptr<const data::TableColumns>& table() const { return table_; }
  /// The tokenizer of a text model; null for a model without one.
  const std::shared_ptr<const data::Tokenizer>& tokenizer() const { return tokenizer_; }
  /// Measures the model on the samples that select_data() chooses.
  Evaluation evaluate(const std::string& data = "", const EvaluateOptions& options = {}) const;
  /// The data and the part of it that evaluate() measures.
  ///
  /// @param data  a data source; "": the run's own data, also found if the run folder was moved. A
  ///              source with the same files as the run's own data counts as the run's own data and
  ///              is read with the run's options, whatever options it has here. If the run's files
  ///              are gone, files of the same names count as the run's if they hold the same
  ///              training samples.
  /// @param part  the part to measure. Unset: Test for the run's own data, for generated data and
  ///              for a source with a test file; All for other sources.
  ///
  /// Throws IoError if the run's data is missing.
  Selection select_data(const std::string& data, std::optional<data::Split> part = {}) const;
  /// Opens a part of a data source as this model takes it, with the model's classes. Throws
  /// ValueError if the source has no such part; if `strict`, FormatError for anything that would be
  /// a note.
  std::shared_ptr<data::Dataset> open_set(const Selection& selection, bool strict = false) const;
  /// How many of the samples start … start + count - 1 (count -1: all from `start` on) the run was
  /// trained on, by the record in its folder. Samples are recognized by content, whatever their
  /// path or source. Unset if that is unknown: there is no record, or its samples are of another
  /// kind.
  std::optional<SeenSamples> seen_samples(const data::Dataset& set, std::int64_t start = 0,
                                          std::int64_t count = -1) const;
  /// Whether the run was trained on an image, given the bytes of its file.
  std::optional<SeenSamples> seen_image(std::string_view file) const;
  /// Opens the test part of a data source, as open_set() does.
  std::shared_ptr<data::Dataset> test_set(const std::string& data) const;
  /// Whether fit() can resize images of any size to the network's input.
  bool fits_images() const;
  /// Resizes and crops an image as the run did: uint8 [1, C, H, W], or [1, crops, C, H, W]. Throws
  /// ValueError for a model that does not take images.
  Tensor fit(const io::Image& image) const;
  /// Image files as a dataset for this model, as test_set() gives it.
  std::shared_ptr<data::Dataset> fit(std::shared_ptr<const data::ImageFiles> images) const;
  /// How image files are decoded for this model (io::load_image()): `channels`, and the run's
  /// background.
  io::ImageReading image_reading(int channels) const;
  /// The steps of fit() as text: "resize,center_crop".
  std::string fitting() const;
  /// What the model was trained for. Of a module that was passed to open(): classification.
  const Task& task() const { return *task_; }
  /// Predictions for a batch.
  ///
  /// The first request with a shape plans a program. Later requests with this shape only scale the
  /// pixels and run the program. Any number of threads may predict at once. set_cache_limit()
  /// limits the programs that are kept.
  ///
  /// A program reads the current weights at each request. Other changes of net(), such as training
  /// mode or the precision of a layer, have no effect on shapes that were requested before.
  ///
  /// For a module that was passed to open() no program is kept, and its modes count at each call.
  ///
  /// @param images  images, uint8 [N, C, H, W] (0 to 255) or floats (0 to 1); crops, [N, crops, C,
  ///                H, W]; or rows of a table, [N, columns]
  /// @return Task::predictions(): class probabilities [N, classes], the mean over the crops; of a
  ///         regression the quantities [N, outputs]. For a module that was passed to open(): its
  ///         output.
  Tensor predict(const Tensor& images) const;
  /// Predictions for samples of a dataset that fits the model, computed in batches.
  ///
  /// @param set    the dataset
  /// @param start  index of the first sample
  /// @param count  number of samples; -1: all from `start` on
  /// @param take   receives each prediction, in order, with the sample's input [1, …] as the
  ///               dataset gives it. Samples that cannot be decoded are left out; Dataset::broken()
  ///               names them.
  void predict(const data::Dataset& set, std::int64_t start, std::int64_t count,
               const std::function<void(Prediction&&, const Tensor& input)>& take) const;
  /// Prediction for a text, or for two texts with a tab between them. Of a classifier: class
  /// probabilities [classes]. Of a masked language model: token probabilities [vocabulary] for the
  /// first [MASK]. Of a language model: probabilities of the next token. Throws ValueError for a
  /// model that takes no text, or a text for which there is nothing to predict.
  Tensor predict_text(const std::string& text) const;
  /// Of a language model: probabilities [classes] of the next token. The model sees as many of the
  /// last tokens as its context holds. Throws ValueError for another model, for no tokens, and if
  /// the tokenizer has more tokens than the model.
  Tensor next_token(const std::vector<std::int64_t>& tokens) const;
  /// Decodes tokens to text. Throws ValueError for a model without tokens, and for a token out of
  /// range.
  std::string text_of(std::span<const std::int64_t> tokens) const;
  /// The answer to a question, a span of the text. Throws ValueError unless the model answers
  /// questions.
  Answer answer(const std::string& question, const std::string& text) const;
  /// Answers `count` questions of a part of "spans:FILE" from `start` on; a count of -1 is all.
  /// Throws ShapeError for other data, ValueError unless the model answers questions.
  std::vector<AskedQuestion> answers(const Selection& data, std::int64_t start,
                                     std::int64_t count) const;
  /// Reads texts, one a line, from "lines:FILE" with the options of that source, or from FILE.
  /// Options that are not given are those of the run's data.
  ///
  /// For a classifier the lines may hold a class in the format of the run's data. They are read
  /// that way if at least half of them hold a class that the model knows; an unknown or missing
  /// class then is a label of -1 and a note. Throws IoError, FormatError, or ValueError for an
  /// unknown option.
  TextLines read_texts(const std::string& source) const;
  /// Notes on what predict_text() ignores in these texts (unknown tokens, and tokens beyond the
  /// model's sequence length) and on how many of them the run was trained on, which refuse_notes()
  /// accepts if `allow_seen`.
  Notes notes_on_texts(const std::vector<TextLine>& texts, bool allow_seen = false) const;
  /// Opens all rows of a table, "csv:FILE" with the options of that source, or FILE. Options that
  /// are not given are those of the run's data. Columns are found by name if both this table and
  /// the training data have a header. If the table has the label column with classes that the model
  /// knows, the targets are these labels; otherwise the targets are not classes. Throws IoError,
  /// and FormatError, ValueError or ShapeError for rows that do not fit.
  std::shared_ptr<data::Dataset> open_rows(const std::string& file) const;
  /// Predicts every row of open_rows() and writes the rows to `out`, unchanged, with a column
  /// "prediction" added, for classes also "probability". Calls `check` with the rows before it
  /// predicts them; if `check` throws, nothing is written. Returns the number of rows.
  std::int64_t predict_csv(const std::string& file, const std::string& out,
                           const std::function<void(const data::Dataset& rows)>& check = {}) const;
  /// The text that a language model generates after `prompt`. Throws ValueError for another model,
  /// an option out of range, or a prompt with characters that the model does not know.
  std::string generate(const std::string& prompt, const GenerateOptions& options = {}) const;
  /// Translates texts by beam search. A translation has at most 50 tokens more than its source.
  /// Throws ValueError for a model that does not translate, an option out of range, or a text with
  /// characters that the model does not know.
  std::vector<std::string> translate(const std::vector<std::string>& texts,
                                     const TranslateOptions& options = {}) const;

 private:
  struct Opened;
  friend struct Session;  // a run reads how its teacher scales pixels
  TrainedModel();
  const ResolvedModel& resolved() const;
  void hold(ResolvedModel&& model);
  std::shared_ptr<const data::Source> source_of(const Selection& selection) const;
  std::shared_ptr<data::Dataset> open_part(const Selection& selection, bool strict) const;
  std::int64_t size_of_whole(const Selection& selection) const;
  std::shared_ptr<data::Dataset> open_rows(const data::CsvSpec& spec,
                                           const std::string& bytes) const;
  std::optional<Selection> own_selection(const DataSource& given) const;
  std::optional<bool> trained_on(Selection& selection) const;
  Selection locate_own() const;
  void note_seen(Selection& selection, const data::Dataset& set, bool allowed,
                 Evaluation& out) const;
  bool has_changed(const data::Dataset& part, data::Split which) const;
  void load_record();
  void predict_batch(const data::Dataset& set, std::int64_t first, std::int64_t end,
                     const std::function<void(Prediction&&, const Tensor& input)>& take) const;
  void name_classes(std::int64_t classes);
  void require_spans() const;
  std::vector<std::int64_t> tokens_of(const std::string& text) const;
  Settings settings_;                 // those of opened_; references to them stay valid
  std::shared_ptr<const Task> task_;  // of settings_; not null
  Context context_;
  nn::AnyModule net_;
  std::shared_ptr<const Opened> opened_;  // settings_, context_ and net_, ready for requests
  std::string file_, run_;                // run_: "" if it was opened from a file
  std::string weights_note_;
  bool given_net_ = false;  // open() was given the network: settings() do not describe it
  bool foreign_ = false;    // weights of another framework: settings() do not name its data
  std::vector<std::string> class_names_;
  std::string text_unit_;                               // the unit of tokens, or ""
  std::shared_ptr<const data::Vocabulary> vocabulary_;  // by text_unit_; null without one
  std::shared_ptr<const data::TableColumns> table_;
  std::shared_ptr<const data::Tokenizer> tokenizer_;
  std::string data_digest_;                     // of the training samples; "" if unknown
  std::shared_ptr<const SampleRecord> record_;  // of the training samples; null without one
  std::string record_problem_;                  // why there is no record
  Notes record_notes_;                          // where the record is damaged
};

}  // namespace tenon::train
