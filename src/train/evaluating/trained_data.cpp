// Evaluation and prediction of a trained model on data: chooses the part, opens it, and predicts
// each sample.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/error.h>
#include <tenon/images.h>
#include <tenon/train.h>

#include "base/make_error.h"
#include "base/str.h"
#include "base/system/option_ranges.h"
#include "data/samples/not_finite_samples.h"
#include "data/samples/sample_pieces.h"
#include "train/batches/batches.h"
#include "train/batches/resident.h"
#include "train/evaluating/opened.h"
#include "train/fitting/evaluate.h"
#include "train/fitting/step.h"
#include "train/runs/class_names.h"
#include "train/runs/data_digest.h"
#include "train/runs/run_data.h"
#include "train/runs/sample_record.h"
#include "train/sessions/session.h"
#include "train/settings/images.h"
#include "train/tasks/tasks.h"

namespace tenon::train {
namespace {

// A note that says why the loss is not finite.
Note note_on_loss(const Evaluation& evaluation, const data::Dataset& set) {
  constexpr char kSo[] = ", so the metrics have no meaning";
  if (evaluation.targets == 0) return {cat("no target counts", kSo), 1, {}};
  if (const data::NotFiniteSamples found = data::not_finite_samples(set); found.any())
    return {cat(found.text(), kSo), found.inputs + found.targets, {}};
  return {cat("the outputs of the network are not finite", kSo), 1, {}};
}

}  // namespace

Selection TrainedModel::select_data(const std::string& data,
                                    std::optional<data::Split> part) const {
  if (given_net_)
    throw make_error<NotSupported>(
        FileName{file_},
        " was opened with a custom module, so its data is unknown: evaluate with "
        "Trainer::evaluate(), or evaluate the results of predict()");
  if (data.empty() && settings().data.empty())
    throw make_error<ValueError>(
        FileName{file_},
        " does not name its test data, which was a file of the machine that "
        "trained it: name data, as with --data SPEC");
  const auto own_part = [&part](Selection own) {
    own.part = part.value_or(data::Split::Test);
    return own;
  };
  if (data.empty()) return own_part(locate_own());
  const DataSource given(data);
  if (!foreign_ && !given.is_generated())
    if (std::optional<Selection> own = own_selection(given)) {
      if (data != own->data)
        own->notes.push_back({cat(data,
                                  " is the data that the run was trained on: it is read and "
                                  "divided as the run did, as ",
                                  own->data),
                              1,
                              {}});
      return own_part(std::move(*own));
    }
  const bool apart = given.is_generated() || given.names_test_part();
  return {.data = foreign_ ? data : read_as_run(given, opened_->model.data).text,
          .part = part.value_or(apart ? data::Split::Test : data::Split::All),
          .own = !foreign_ && data == settings().data};
}

// The run's data, if `given` names the same files; else none.
std::optional<Selection> TrainedModel::own_selection(const DataSource& given) const {
  if (settings().data.empty()) return std::nullopt;
  try {
    Selection here = locate_own();
    return is_own_data(given, DataSource(here.data)) ? std::optional(std::move(here))
                                                     : std::nullopt;
  } catch (const IoError&) {  // the run's files were moved: try the given path
    const auto moved = moved_data(given, opened_->model.data);
    if (!moved) return std::nullopt;
    Selection there{.data = moved->text, .own = true};
    return trained_on(there) == true ? std::optional(there) : std::nullopt;
  }
}

// The path as written, from the working folder; else from the run's folder or one above it. If the
// first file that is found has other samples than the run was trained on, later places are tried.
Selection TrainedModel::locate_own() const {
  const DataSource& data = opened_->model.data;
  Selection first{.data = locate_data(data, run_).text, .own = true};
  if (!data.has_path() || trained_on(first) != false) return first;
  for (const DataSource& place : data_near(data, run_)) {
    Selection other{.data = place.text, .own = true};
    if (place.text != first.data && trained_on(other) == true) return other;
  }
  if (first.data == settings().data) return first;
  throw make_error<IoError>(
      "the data of ", run_, ", '", settings().data, "', was not found: '", FileName{first.data},
      "' has the same name, but the run was trained on other samples; give its new "
      "path with --data");
}

// Whether the data at this place contains the samples that the run was trained on; unset if the run
// did not record its samples. `selection` keeps the opened source.
std::optional<bool> TrainedModel::trained_on(Selection& selection) const {
  if (data_digest_.empty() && record_ == nullptr) return std::nullopt;
  try {
    selection.source = source_of(selection);
    Selection part = selection;
    part.part = data::Split::Train;
    const auto training = open_part(part, false);
    if (training == nullptr) return false;
    if (!data_digest_.empty() && data_digest(*training) != data_digest_) return false;
    // The digest of image files may cover names only, so images are also compared by the record.
    if (record_ == nullptr || (!data_digest_.empty() && training->images() == nullptr)) return true;
    return record_->is_of(*training);
  } catch (const Error&) {  // the data cannot be read in the way the run read it
    return false;
  }
}

Evaluation TrainedModel::evaluate(const std::string& data, const EvaluateOptions& options) const {
  require_range("evaluate", "batch", options.batch, at_least(0));
  Selection selection = select_data(data, options.part);
  selection.source = source_of(selection);
  const ContextScope scope(context_);
  const std::shared_ptr<data::Dataset> set = open_set(selection, options.strict);
  const std::unique_ptr<data::Loader> loader = test_loader(opened_->model, set, options.batch);
  EvalStep step(net_, loss_of(opened_->model, net_, 0), task_);
  Evaluation out = train::evaluate(step, *loader, options.progress);
  out.data = selection.data;
  out.part = selection.part;
  out.notes.insert(out.notes.begin(), selection.notes.begin(), selection.notes.end());
  note_seen(selection, *set, options.allow_seen, out);
  if (!std::isfinite(out.loss)) out.notes.push_back(note_on_loss(out, *set));
  if (options.strict) refuse_notes(out.notes);
  out.of_items = selection.part == data::Split::All ? set->size() : size_of_whole(selection);
  task_->measure_network(net_, *set, out);
  return out;
}

std::optional<SeenSamples> TrainedModel::seen_samples(const data::Dataset& set, std::int64_t start,
                                                      std::int64_t count) const {
  if (record_ == nullptr) return std::nullopt;
  const std::int64_t first = std::min(start, set.size());
  return record_->seen(set, first,
                       count < 0 ? set.size() : first + std::min(count, set.size() - first));
}

std::optional<SeenSamples> TrainedModel::seen_image(std::string_view file) const {
  return record_ == nullptr ? std::nullopt : record_->seen_image(file);
}

// If the data of the run is unchanged, a test sample may equal a training sample without a warning.
// If the file has changed, the split is different, and samples of the present test part may have
// been training samples.
void TrainedModel::note_seen(Selection& selection, const data::Dataset& set, bool allowed,
                             Evaluation& out) const {
  out.seen = seen_samples(set);
  if (!out.seen)
    out.seen_unknown = record_ != nullptr ? "they are of another kind than the training samples"
                       : foreign_         ? "the weights are not those of a run"
                                          : record_problem_;
  out.notes.insert(out.notes.end(), record_notes_.begin(), record_notes_.end());
  const bool held_out =
      selection.part == data::Split::Validation || selection.part == data::Split::Test;
  const bool none = out.seen && out.seen->is_exact() && out.seen->seen == 0;
  if (selection.own && held_out && !none && trained_on(selection) == false)
    out.notes.push_back({cat("the data has changed since the run was trained on it: ",
                             out.seen ? cat("training has seen ", to_string(*out.seen))
                                      : "training may have seen some of the evaluated samples"),
                         1, selection.data});
  else if (selection.own && held_out && has_changed(set, selection.part))
    out.notes.push_back({cat("the ", data::name(selection.part),
                             " part has changed since the run began: the metrics are not "
                             "comparable with those that the run printed"),
                         1, selection.data});
  if (selection.own || !out.seen || out.seen->seen == 0) return;
  Note note = note_on_seen(*out.seen, "", allowed);
  note.first = selection.data;
  out.notes.push_back(std::move(note));
}

// Whether a held-out part differs from the one that the run recorded.
bool TrainedModel::has_changed(const data::Dataset& part, data::Split which) const {
  if (record_ == nullptr) return false;
  const HeldOutDigests& recorded = record_->held_out();
  const std::string& before = which == data::Split::Test ? recorded.test : recorded.validation;
  return !before.empty() && held_out_digest(part) != before;
}

// The number of samples of all parts; 0 if unknown, because one part may be readable although the
// whole source is not.
std::int64_t TrainedModel::size_of_whole(const Selection& selection) const {
  try {
    Selection whole = selection;
    whole.part = data::Split::All;
    return open_set(whole)->size();
  } catch (const Error&) {
    return 0;
  }
}

std::shared_ptr<data::Dataset> TrainedModel::open_set(const Selection& selection,
                                                      bool strict) const {
  const std::string& data = selection.data;
  if (strict) refuse_notes(selection.notes);
  std::shared_ptr<data::Dataset> set = open_part(selection, strict);
  if (set == nullptr || set->size() == 0)
    throw ValueError(cat("'", data, "' has no ", data::name(selection.part),
                         " part: measure another one, as --part all does"));
  return set;
}

std::shared_ptr<const data::Source> TrainedModel::source_of(const Selection& selection) const {
  const std::string& data = selection.data;
  if (selection.source != nullptr) return selection.source;
  const DataSource given(data);
  if (given.has_images())
    return std::make_shared<const data::Source>(data,
                                                data::SourceOptions{.class_names = class_names_});
  data::SourceOptions options = source_options(opened_->model, table_, tokenizer_);
  // A vocabulary would report an unknown token first. It is not set if the kind of data is wrong
  // for the task, so that the error names the kind.
  if ((task_->output_form() == OutputForm::Translation) != (given.kind == "text"))
    options.vocabulary = vocabulary_;
  return std::make_shared<const data::Source>(with_context_length(given, info()).text, options);
}

std::shared_ptr<data::Dataset> TrainedModel::open_part(const Selection& selection,
                                                       bool strict) const {
  const std::string& data = selection.data;
  std::shared_ptr<data::Dataset> set = source_of(selection)->open(selection.part);
  if (const DataSource source(data); source.has_images())
    return fitted(with_images_of_source(opened_->model, source), set);
  if (strict && set != nullptr) refuse_notes(set->notes());
  const bool classes = set != nullptr && task_->output_form() == OutputForm::Classes &&
                       set->classes() > 0 && set->target_shape().rank() == 0 &&
                       !class_names_.empty();
  return classes ? numbered_as(std::move(set), class_names_, data) : set;
}

std::shared_ptr<data::Dataset> TrainedModel::test_set(const std::string& data) const {
  return open_set({.data = data, .part = data::Split::Test});
}

void TrainedModel::predict(
    const data::Dataset& set, std::int64_t start, std::int64_t count,
    const std::function<void(Prediction&&, const Tensor& input)>& take) const {
  constexpr std::int64_t kMostAtOnce = 1024, kBytesAtOnce = std::int64_t{64} << 20;
  const std::int64_t sample_bytes =
      set.input_shape().numel() * static_cast<std::int64_t>(item_size(set.input_dtype()));
  const std::int64_t at_once = std::clamp<std::int64_t>(
      kBytesAtOnce / std::max<std::int64_t>(sample_bytes, 1), 1, kMostAtOnce);
  const std::int64_t end =
      count < 0 ? set.size() : std::min(set.size(), start + std::min(count, set.size()));
  for (std::int64_t first = start; first < end; first += at_once)
    predict_batch(set, first, std::min(end, first + at_once), take);
}

void TrainedModel::predict_batch(
    const data::Dataset& set, std::int64_t first, std::int64_t end,
    const std::function<void(Prediction&&, const Tensor& input)>& take) const {
  data::Batch batch;
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(end - first));
  std::iota(numbers.begin(), numbers.end(), first);
  const Shape inputs = with_count(end - first, set.input_shape()),
              targets = with_count(end - first, set.target_shape());
  std::vector<std::byte> input(static_cast<std::size_t>(inputs.numel()) *
                               item_size(set.input_dtype())),
      target(static_cast<std::size_t>(targets.numel()) * item_size(set.target_dtype()));
  set.get(numbers, input.data(), target.data());
  batch = {Tensor::from_data(input.data(), inputs, set.input_dtype()),
           Tensor::from_data(target.data(), targets, set.target_dtype()), end - first};
  const bool classes = set.classes() > 0 && set.target_shape().rank() == 0;
  if (classes && set.any_broken()) {  // samples that cannot be decoded have no class
    const std::vector<std::int64_t> labels = batch.target.to_vector<std::int64_t>();
    std::erase_if(numbers, [&](std::int64_t n) {
      return labels[static_cast<std::size_t>(n - first)] == data::kIgnoredTarget;
    });
  }
  if (numbers.empty()) return;
  if (!leave_out_absent(batch, set)) return;
  const Tensor found = predict(batch.input);
  const std::vector<float> values = found.to_vector<float>();
  const std::int64_t width = found.numel() / batch.size;
  const bool quantities = is_numeric(task_->output_form()) && targets.numel() == found.numel();
  const Tensor truth = classes || quantities ? batch.target.to(DType::Float32) : Tensor();
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    const auto row = values.begin() + static_cast<std::ptrdiff_t>(k) * width;
    const auto at = static_cast<std::int64_t>(k);
    Prediction p{
        .index = numbers[k], .name = set.sample_name(numbers[k]), .values = {row, row + width}};
    if (classes)  // -1 if the row has no class
      p.label =
          std::max<std::int64_t>(static_cast<std::int64_t>(narrow(truth, 0, at, 1).item()), -1);
    if (quantities) p.target = narrow(truth, 0, at, 1).to_vector<float>();
    if (std::any_of(p.target.begin(), p.target.end(), [](float v) { return std::isnan(v); }))
      p.target.clear();  // the targets of this row are unknown
    take(std::move(p), narrow(batch.input, 0, at, 1).compute());
  }
}

}  // namespace tenon::train
