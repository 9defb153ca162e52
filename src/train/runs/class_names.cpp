// Maps the classes of a dataset to those of a model.
#include "train/runs/class_names.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include <tenon/error.h>
#include <tenon/io.h>

#include "base/index.h"
#include "base/str.h"
#include "base/system/log.h"
#include "data/samples/derived_dataset.h"
#include "data/samples/sampling.h"
#include "io/file.h"
#include "train/runs/model_file.h"

namespace tenon::train {
namespace {

// A dataset in memory or generated, with its class numbers replaced.
class RenumberedClasses final : public data::DerivedDataset {
 public:
  RenumberedClasses(const std::shared_ptr<const data::Dataset>& of,
                    std::vector<std::int64_t> numbers, const std::vector<std::string>& names)
      : DerivedDataset(renumbered(of->info(), names), {of}), numbers_(std::move(numbers)) {}

 private:
  static data::DatasetInfo renumbered(data::DatasetInfo info,
                                      const std::vector<std::string>& names) {
    info.classes = std::ssize(names);
    info.class_names = names;
    return info;
  }
  void capabilities(data::Capabilities& offered) const override {
    DerivedDataset::capabilities(offered);
    if (offered.wants<data::GeneratedSamples>() && source().made_on_demand())
      offered.add<data::GeneratedSamples>(this);
  }
  bool changes_samples() const override { return true; }
  void write(std::span<const std::int64_t> indices, const Version& version, void* inputs,
             void* targets) const override {
    read(indices, version, inputs, targets);
    for (std::int64_t& target : std::span(static_cast<std::int64_t*>(targets), indices.size()))
      target = numbers_[at(target)];
  }

  std::vector<std::int64_t> numbers_;
};

bool is_number(const std::string& name) {
  const std::size_t sign = name.starts_with('-') ? 1 : 0;
  return name.size() > sign && name.find_first_not_of("0123456789", sign) == std::string::npos;
}

// "earth, water", or the first names of a long list.
std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 10;
  std::string out;
  for (std::size_t k = 0; k < std::min(names.size(), kShown); ++k)
    out += cat(k > 0 ? ", " : "", names[k]);
  return names.size() > kShown ? cat(out, ", …") : out;
}

// The first sample of a class and the number of the others: "rows.txt, line 3 (and 4 others)".
std::string samples_of_class(const data::Dataset& set, std::int64_t number) {
  const std::vector<std::int64_t> labels = data::labels_of(set, "class names");
  const auto count = std::count(labels.begin(), labels.end(), number);
  if (count == 0) return "";
  const auto first = std::find(labels.begin(), labels.end(), number);
  return cat(set.sample_name(first - labels.begin()),
             count == 1 ? "" : cat(" (and ", count - 1, count == 2 ? " other" : " others", ")"));
}

// Reads the class names of a run; false if it has not finished an epoch, so that no file has them.
bool read_classes_of_run(const std::string& run_dir, std::vector<std::string>& names) {
  for (const char* name : {"model.safetensors", "best.safetensors"}) {
    const std::string file = cat(run_dir, "/", name);
    if (!io::file_exists(file)) continue;
    try {
      const io::Metadata metadata = io::inspect_safetensors(file).metadata;
      const auto text = metadata.find(kModelKey);
      if (text == metadata.end()) continue;
      names = model_from_json(text->second, file).class_names;
      return true;
    } catch (const Error& error) {  // a run that continues writes it again
      log_message(LogLevel::Warning,
                  cat("the run's weight file cannot be read, so its class names are not compared: ",
                      error.what()));
    }
  }
  return false;
}

}  // namespace

std::vector<std::string> class_words(std::vector<std::string> names) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] != std::to_string(i)) return names;
  return {};
}

std::shared_ptr<data::Dataset> numbered_as(std::shared_ptr<data::Dataset> set,
                                           const std::vector<std::string>& known,
                                           const std::string& data) {
  const std::vector<std::string> names = set->class_names();
  if (names == known) return set;
  std::map<std::string, std::int64_t> number_of;
  for (std::size_t k = 0; k < known.size(); ++k)
    number_of.emplace(known[k], static_cast<std::int64_t>(k));
  const bool model_has_words = !class_words(known).empty(),
             set_has_words = !class_words(names).empty(),
             // Numeric labels match by value: 0 and 1 are not classes of a model with 10 and 20.
      by_value = model_has_words && std::all_of(known.begin(), known.end(), is_number);
  std::vector<std::int64_t> numbers;
  for (std::size_t k = 0; k < names.size(); ++k) {
    const std::string& name = names[k];
    const auto found = number_of.find(name);
    if (found != number_of.end()) {
      numbers.push_back(found->second);
    } else if (by_value || (set_has_words && (model_has_words || is_number(name)))) {
      const std::string where = samples_of_class(*set, static_cast<std::int64_t>(k));
      throw FormatError(cat("'", data, "': ", where.empty() ? "" : cat(where, ": "), "its class '",
                            name, "' is not one of the model's classes (", some_of(known),
                            "): correct the class, or leave the samples out"));
    }
  }
  if (names.size() > known.size())
    throw ShapeError(cat("'", data, "' has ", names.size(), " classes, and the model knows ",
                         known.size(), known.size() == 1 ? " class" : " classes"));
  if (numbers.size() < names.size()) return set;
  return std::make_shared<RenumberedClasses>(set, std::move(numbers), known);
}

void require_classes_of_run(const std::string& run_dir, const data::Dataset& set,
                            const std::string& data) {
  std::vector<std::string> before;
  if (!read_classes_of_run(run_dir, before)) return;
  const std::vector<std::string> now = class_words(set.class_names());
  if (now == before) return;
  const auto told = [](const std::vector<std::string>& names) {
    return names.empty() ? std::string("numbers") : some_of(names);
  };
  throw ValueError(cat("the classes of '", data, "' (", told(now), ") differ from those that ",
                       run_dir, " learns (", told(before),
                       "), or have another order: start a new run"));
}

}  // namespace tenon::train
