// A row for each epoch and a column for each value. Float64 holds every value exactly; a second
// tensor says which values there are.
#include "train/runs/epoch_table.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>

#include <tenon/error.h>

#include "base/index.h"
#include "base/make_error.h"
#include "base/str.h"

namespace tenon::train {
namespace {

constexpr char kValues[] = "epochs.values", kPresent[] = "epochs.present";
// The columns before those of metrics.
constexpr const char* kColumns[] = {"epoch", "step",    "train_loss", "train_accuracy", "lr",
                                    "loss",  "samples", "seconds",    "items_per_s",    "best"};
constexpr std::size_t kFixed = std::size(kColumns);

// The names of all metrics, in the order in which they first occur.
std::vector<std::string> metrics_of(const std::vector<EpochReport>& history) {
  std::vector<std::string> out;
  for (const EpochReport& e : history) {
    std::size_t k = 0;
    for (const auto& [name, value] : e.validation_metrics) {
      const bool usual = k < out.size() && out[k] == name;
      if (!usual && std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
      ++k;
    }
  }
  return out;
}

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t end = std::min(text.find(',', from), text.size());
    out.push_back(text.substr(from, end - from));
    from = end + 1;
  }
  return out;
}

struct Row {
  double* values;
  bool* present;
  void set(std::size_t column, std::optional<double> value) const {
    values[column] = value.value_or(0);
    present[column] = value.has_value();
  }
};

void write(const EpochReport& e, const std::vector<std::string>& metrics, const Row& row) {
  std::size_t column = 0;
  for (const std::optional<double>& value :
       {std::optional<double>(e.epoch), std::optional(static_cast<double>(e.step)),
        std::optional(e.train_loss), e.train_accuracy, std::optional(e.lr), e.validation_loss,
        std::optional(static_cast<double>(e.validation_samples)), std::optional(e.seconds),
        std::optional(e.items_per_s), std::optional<double>(e.best)})
    row.set(column++, value);
  auto next = e.validation_metrics.begin();
  for (const std::string& name : metrics) {
    // Epochs have the same metrics in the same order, as a rule.
    if (next != e.validation_metrics.end() && next->first == name)
      row.set(column++, (next++)->second);
    else
      row.set(column++, e.validation_metrics[name]);
  }
}

}  // namespace

std::string add_epochs(const std::vector<EpochReport>& history, io::TensorMap& tensors) {
  if (history.empty()) return "";
  const std::vector<std::string> metrics = metrics_of(history);
  const Shape shape{std::ssize(history), static_cast<std::int64_t>(kFixed + metrics.size())};
  std::vector<double> values(at(shape.numel()));
  const auto present = std::make_unique<bool[]>(values.size());
  for (std::size_t k = 0; k < history.size(); ++k) {
    const std::size_t from = k * (kFixed + metrics.size());
    write(history[k], metrics, {values.data() + from, present.get() + from});
  }
  tensors.emplace(kValues, Tensor::from_data(values.data(), shape, DType::Float64, Device{}));
  tensors.emplace(kPresent, Tensor::from_data(present.get(), shape, DType::Bool, Device{}));
  std::string columns;
  for (const char* name : kColumns) columns += cat(columns.empty() ? "" : ",", name);
  for (const std::string& name : metrics) columns += "," + name;
  return columns;
}

std::vector<EpochReport> take_epochs(const std::string& columns, io::TensorMap& tensors,
                                     const std::string& source) {
  if (columns.empty()) return {};
  const auto refuse = [&](const char* why) {
    throw make_error<FormatError>(FileName{source}, ": the reports of its epochs ", why,
                                  ": the checkpoint is damaged");
  };
  const std::vector<std::string> names = split_at_commas(columns);
  if (names.size() < kFixed || !std::equal(std::begin(kColumns), std::end(kColumns), names.begin()))
    refuse("have other columns");
  const auto values = tensors.find(kValues), present = tensors.find(kPresent);
  if (values == tensors.end() || present == tensors.end()) refuse("are missing");
  const Shape shape = values->second.shape();
  if (shape.rank() != 2 || shape[1] != std::ssize(names) || present->second.shape() != shape ||
      values->second.dtype() != DType::Float64 || present->second.dtype() != DType::Bool)
    refuse("have another shape or type");
  const auto* number = static_cast<const double*>(values->second.data());
  const auto* known = static_cast<const bool*>(present->second.data());
  const auto whole = [&](double value) {
    constexpr double kMost = 9007199254740992.0;  // 2^53
    if (!(value >= 0 && value <= kMost)) refuse("have counts out of range");
    return static_cast<std::int64_t>(value);
  };
  std::vector<EpochReport> out(at(shape[0]));
  for (EpochReport& e : out) {
    const auto optional = [&](std::size_t column) {
      return known[column] ? std::optional(number[column]) : std::nullopt;
    };
    e.epoch = static_cast<int>(std::min<std::int64_t>(whole(number[0]), INT32_MAX));
    e.step = whole(number[1]);
    e.train_loss = number[2];
    e.train_accuracy = optional(3);
    e.lr = number[4];
    e.validation_loss = optional(5);
    e.validation_samples = whole(number[6]);
    e.seconds = number[7];
    e.items_per_s = number[8];
    e.best = number[9] != 0;
    for (std::size_t k = kFixed; k < names.size(); ++k)
      if (known[k]) e.validation_metrics.set(names[k], number[k]);
    number += names.size();
    known += names.size();
  }
  tensors.erase(values);
  tensors.erase(present);
  return out;
}

}  // namespace tenon::train
