// tenon weights: lists, converts and compares weight files. The format is detected from the content
// when reading, and from the extension when writing.
#include <fmt/core.h>
#include <tenon/compute.h>
#include <tenon/models.h>
#include <tenon/ops.h>
#include <tenon/published_weights.h>
#include <tenon/shapes_only.h>
#include <tenon/weights.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "errors.h"
#include "json.h"
#include "terminal.h"

namespace tenon::cli {
namespace {

// ---- Values as doubles

// Calls use(value) for every element of a tensor.
template <class Use>
void each_value(const Tensor& t, const Use& use) {
  const Tensor wide =
      cast(t,
           t.dtype() == DType::Float64 || !is_floating(t.dtype()) ? DType::Float64 : DType::Float32)
          .compute();
  const auto count = static_cast<std::size_t>(wide.numel());
  if (wide.dtype() == DType::Float32) {
    const auto* at = static_cast<const float*>(wide.data());
    for (std::size_t i = 0; i < count; ++i) use(static_cast<double>(at[i]));
  } else {
    const auto* at = static_cast<const double*>(wide.data());
    for (std::size_t i = 0; i < count; ++i) use(at[i]);
  }
}

std::vector<double> values_of(const Tensor& t) {
  std::vector<double> out;
  out.reserve(static_cast<std::size_t>(t.numel()));
  each_value(t, [&](double value) { out.push_back(value); });
  return out;
}

struct TensorStatistics {
  double least = std::numeric_limits<double>::infinity(), most = -least;
  double mean = 0, deviation = 0;  // over finite values
  std::int64_t zeros = 0, infinite = 0, nan = 0;
};

TensorStatistics statistics_of(const Tensor& t) {
  TensorStatistics s;
  double squares = 0;  // Welford's algorithm: accurate even if the mean is far from zero
  std::int64_t finite = 0;
  each_value(t, [&](double value) {
    if (std::isnan(value)) {
      ++s.nan;
      return;
    }
    s.least = std::min(s.least, value);
    s.most = std::max(s.most, value);
    s.zeros += value == 0 ? 1 : 0;
    if (std::isinf(value)) {
      ++s.infinite;
      return;
    }
    const double apart = value - s.mean;
    s.mean += apart / static_cast<double>(++finite);
    squares += apart * (value - s.mean);
  });
  if (finite == 0) s.mean = std::nan("");
  if (t.numel() == s.nan) s.least = s.most = std::nan("");
  s.deviation = finite == 0 ? std::nan("") : std::sqrt(squares / static_cast<double>(finite));
  return s;
}

// ---- Tables

// Prints rows under a heading; the first `left` columns are left-aligned.
void print_rows(std::vector<std::vector<std::string>> rows, std::size_t left) {
  std::vector<int> width(rows[0].size(), 0);
  for (auto& row : rows)
    for (std::size_t k = 0; k < row.size(); ++k) {
      row[k] = printable(row[k]);
      width[k] = std::max(width[k], columns(row[k]));
    }
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::string line;
    for (std::size_t k = 0; k < rows[r].size(); ++k) {
      const std::string cell =
          k < left ? pad_right(rows[r][k], width[k]) : pad_left(rows[r][k], width[k]);
      line += (k == 0 ? "" : "  ") + cell;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    fmt::print("{}\n", r == 0 ? stdout_terminal().paint(TextStyle::Bold, line) : line);
  }
}

std::string short_number(double value) {
  return std::isnan(value) ? "nan" : fmt::format("{:.4g}", value);
}

std::string type_text(const io::StoredTensor& tensor) {
  return tensor.stored.empty() ? name(tensor.dtype) : tensor.stored;
}

Json sizes_of(const Shape& shape) { return std::vector<std::int64_t>(shape.begin(), shape.end()); }

// ---- show

struct ShowOptions {
  std::string file;
  bool json = false, quick = false, strict = false;
};

// Prints notes on what was left out or converted, or throws them as an error with --strict.
void say_notes(const Notes& notes, bool strict) {
  if (strict) refuse_notes(notes);
  for (const Note& note : notes) print_note(to_string(note));
}

struct Extent {
  std::int64_t tensors = 0, elements = 0, bytes = 0;  // tied ones once
};

Extent extent_of(const io::WeightFile& file) {
  Extent out;
  std::map<std::size_t, bool> seen;
  for (const io::StoredTensor& tensor : file.tensors()) {
    ++out.tensors;
    if (!seen.emplace(tensor.value, true).second) continue;
    out.elements += tensor.shape.numel();
    out.bytes += tensor.shape.numel() * static_cast<std::int64_t>(item_size(tensor.dtype));
  }
  return out;
}

int show_json(const ShowOptions& options, const io::WeightFile& file) {
  Json tensors = Json::array();
  for (std::size_t i = 0; i < file.tensors().size(); ++i) {
    const io::StoredTensor& tensor = file.tensors()[i];
    Json row{{"name", tensor.name},
             {"shape", sizes_of(tensor.shape)},
             {"dtype", name(tensor.dtype)},
             {"stored", type_text(tensor)}};
    if (!options.quick) {
      const TensorStatistics s = statistics_of(file.read(i));
      row.update({{"min", s.least},
                  {"max", s.most},
                  {"mean", s.mean},
                  {"std", s.deviation},
                  {"zeros", s.zeros},
                  {"infinite", s.infinite},
                  {"nan", s.nan}});
    }
    tensors.push_back(std::move(row));
  }
  Json unread = Json::array();
  for (const io::Unread& one : file.unread())
    unread.push_back({{"name", one.name}, {"what", one.what}});
  const Extent extent = extent_of(file);
  print(Json{{"file", file.path()},
             {"format", file.format()},
             {"family", models::weight_family(file)},
             {"elements", extent.elements},
             {"bytes", extent.bytes},
             {"metadata", file.metadata()},
             {"tensors", std::move(tensors)},
             {"unread", std::move(unread)}},
        2);
  return kOk;
}

// "9" or, where there are some, a warning.
std::string count_text(std::int64_t count) { return count == 0 ? "." : thousands(count); }

int show(const ShowOptions& options) {
  const io::WeightFile file(options.file);
  say_notes(file.notes(), options.strict);
  if (options.json) return show_json(options, file);
  std::vector<std::vector<std::string>> rows{{"name", "dtype", "shape"}};
  if (!options.quick)
    rows[0].insert(rows[0].end(), {"min", "max", "mean", "std", "zeros", "inf", "nan"});
  std::map<std::size_t, std::string> first;
  for (std::size_t i = 0; i < file.tensors().size(); ++i) {
    const io::StoredTensor& tensor = file.tensors()[i];
    rows.push_back({tensor.name, type_text(tensor), tensor.shape.str()});
    const auto [of_value, is_first] = first.emplace(tensor.value, tensor.name);
    if (!is_first) {
      rows.back()[2] += fmt::format(" is {}", of_value->second);
    } else if (!options.quick) {
      const TensorStatistics s = statistics_of(file.read(i));
      rows.back().insert(rows.back().end(),
                         {short_number(s.least), short_number(s.most), short_number(s.mean),
                          short_number(s.deviation), count_text(s.zeros), count_text(s.infinite),
                          count_text(s.nan)});
    }
  }
  for (const io::Unread& one : file.unread()) rows.push_back({one.name, "not read", one.what});
  print_rows(std::move(rows), 3);
  const Extent extent = extent_of(file);
  const std::string family = models::weight_family(file);
  fmt::print("{}: {}{}, {} tensors, {} elements, {}\n", printable(options.file), file.format(),
             family.empty() ? "" : fmt::format(" by the names of {}", family),
             thousands(extent.tensors), thousands(extent.elements), bytes_text(extent.bytes));
  return kOk;
}

// ---- convert

struct ConvertOptions {
  std::string from, to, dtype, model;
  bool strict = false;
};

// Values that another floating type has no number for.
struct LostValues {
  std::int64_t infinite = 0, zero = 0;
  double largest = 0;
};

LostValues lost_values(const Tensor& before, const Tensor& after) {
  LostValues out;
  const Tensor from =
                   cast(before, before.dtype() == DType::Float64 ? DType::Float64 : DType::Float32)
                       .compute(),
               to = cast(after, from.dtype()).compute();
  const auto compare = [&](const auto* x, const auto* y) {
    for (std::int64_t i = 0; i < from.numel(); ++i) {
      if (std::isinf(y[i]) && std::isfinite(x[i])) {
        ++out.infinite;
        out.largest = std::max(out.largest, static_cast<double>(std::fabs(x[i])));
      }
      out.zero += y[i] == 0 && x[i] != 0 ? 1 : 0;
    }
  };
  if (from.dtype() == DType::Float64)
    compare(static_cast<const double*>(from.data()), static_cast<const double*>(to.data()));
  else
    compare(static_cast<const float*>(from.data()), static_cast<const float*>(to.data()));
  return out;
}

// Floating tensors as another type; tied ones stay one.
struct Converted {
  io::TensorMap tensors;
  std::int64_t cast = 0;
  Notes notes;  // values that became infinite or zero
};

Converted converted(const io::TensorMap& tensors, DType dtype) {
  std::map<const Node*, Tensor> made;
  Converted out;
  std::int64_t zeros = 0, with_zeros = 0;
  std::string first_zero;
  for (const auto& [name_of_one, tensor] : tensors) {
    Tensor& is = made[tensor.node()];
    if (!is.defined()) {
      const bool changes = is_floating(tensor.dtype()) && tensor.dtype() != dtype;
      is = changes ? cast(tensor, dtype).compute() : tensor;
      const LostValues lost = changes ? lost_values(tensor, is) : LostValues();
      out.cast += changes ? 1 : 0;
      if (lost.infinite > 0)
        out.notes.push_back({fmt::format("{} of its {} values are too large for {} and became "
                                         "infinite, the largest {}",
                                         thousands(lost.infinite), thousands(tensor.numel()),
                                         name(dtype), short_number(lost.largest)),
                             lost.infinite, name_of_one});
      if (lost.zero > 0 && with_zeros++ == 0) first_zero = name_of_one;
      zeros += lost.zero;
    }
    out.tensors.emplace(name_of_one, is);
  }
  if (zeros > 0)
    out.notes.push_back({fmt::format("{} values in {} tensors are too small for {} and became 0",
                                     thousands(zeros), thousands(with_zeros), name(dtype)),
                         zeros, first_zero});
  return out;
}

io::TensorMap as_network(const io::WeightFile& file, const ConvertOptions& options, Notes& notes) {
  const models::PublishedNetwork network = models::published_network(options.from, options.model);
  if (!network.config.empty())
    print_note(fmt::format("the network is {} by {}", network.model, network.config));
  notes.insert(notes.end(), network.notes.begin(), network.notes.end());
  StateDict own;
  {
    const ShapesOnly shapes_only;
    own = models::create(network.model, {.classes = network.classes}).state_dict();
  }
  const models::WeightFit fit = models::fit_weights(file, own);
  if (fit.tensors.empty())
    throw ValueError(
        fmt::format("{}: no tensor fits {}: {}", file.path(), network.model, fit.differences()),
        {.file = file.path()});
  if (!fit.family.empty()) print_note(fmt::format("by the names of {}", fit.family));
  for (const std::string& deed : fit.done) notes.push_back({deed, 1, ""});
  if (const std::string left = fit.differences(); !left.empty()) notes.push_back({left, 1, ""});
  return fit.tensors;
}

int convert(const ConvertOptions& options) {
  const io::WeightFile file(options.from);
  Notes notes = file.notes();
  io::TensorMap tensors =
      options.model.empty() ? file.read_all() : as_network(file, options, notes);
  std::string cast_words;
  if (!options.dtype.empty()) {
    const DType dtype = dtype_from_name(options.dtype.c_str());
    if (!is_floating(dtype))
      throw UsageError(fmt::format("--dtype: {} is not a floating-point type", options.dtype));
    Converted made = converted(tensors, dtype);
    tensors = std::move(made.tensors);
    notes.insert(notes.end(), made.notes.begin(), made.notes.end());
    cast_words = fmt::format(", {} cast to {}", thousands(made.cast), name(dtype));
  }
  if (!file.metadata().empty() && !options.to.ends_with(".safetensors"))
    notes.push_back({fmt::format("{} entries of metadata are not written: only .safetensors stores "
                                 "them",
                                 thousands(std::ssize(file.metadata()))),
                     std::ssize(file.metadata()), options.to});
  say_notes(notes, options.strict);
  try {
    io::save_weights(options.to, tensors, file.metadata());
  } catch (const DTypeError& error) {  // of a type that this format does not have
    throw UsageError(fmt::format("{}: {}", options.to, error.what()),
                     "convert them with --dtype fp32");
  }
  fmt::print("{}: {} tensors from {}{}\n", printable(options.to), thousands(std::ssize(tensors)),
             printable(options.from), cast_words);
  return kOk;
}

// ---- diff

struct DiffOptions {
  std::string a, b;
  double tolerance = 0;
  bool json = false;
};

struct Difference {
  std::string name, what;
  double largest = std::nan(""), relative = std::nan("");  // of values: |a - b| / |b|
};

// Of the values of two tensors of one shape. NaN is equal to NaN.
Difference difference_of(const std::string& name, const Tensor& a, const Tensor& b) {
  const std::vector<double> x = values_of(a), y = values_of(b);
  double largest = 0, squares = 0, norm = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]))) {
      norm += std::isfinite(y[i]) ? y[i] * y[i] : 0;
      continue;
    }
    double apart = std::fabs(x[i] - y[i]);
    if (std::isnan(apart)) apart = std::numeric_limits<double>::infinity();
    largest = std::max(largest, apart);
    squares += apart * apart;
    norm += y[i] * y[i];
  }
  const double relative = squares == 0 ? 0
                          : norm > 0 && std::isfinite(squares)
                              ? std::sqrt(squares / norm)
                              : std::numeric_limits<double>::infinity();
  return {name, "values", largest, relative};
}

std::vector<Difference> differences(const DiffOptions& options) {
  const io::WeightFile a(options.a), b(options.b);
  say_notes(a.notes(), false);
  say_notes(b.notes(), false);
  std::map<std::string_view, std::size_t> in_b;
  for (std::size_t i = 0; i < b.tensors().size(); ++i) in_b.emplace(b.tensors()[i].name, i);
  std::vector<Difference> out;
  for (std::size_t i = 0; i < a.tensors().size(); ++i) {
    const io::StoredTensor& x = a.tensors()[i];
    const auto found = in_b.find(x.name);
    if (found == in_b.end()) {
      out.push_back({x.name, fmt::format("only in {}", options.a)});
      continue;
    }
    const std::size_t j = found->second;
    in_b.erase(found);
    const io::StoredTensor& y = b.tensors()[j];
    if (x.shape != y.shape) {
      out.push_back({x.name, fmt::format("{} and {}", x.shape.str(), y.shape.str())});
      continue;
    }
    Difference d = difference_of(x.name, a.read(i), b.read(j));
    const bool types = x.dtype != y.dtype;
    if (types) d.what = fmt::format("{} and {}", name(x.dtype), name(y.dtype));
    if (d.relative > options.tolerance || (types && options.tolerance == 0)) out.push_back(d);
  }
  for (const io::StoredTensor& y : b.tensors())
    if (in_b.contains(y.name)) out.push_back({y.name, fmt::format("only in {}", options.b)});
  return out;
}

int diff(const DiffOptions& options) {
  if (options.tolerance < 0) throw UsageError("--tolerance: give 0 or more");
  const std::vector<Difference> found = differences(options);
  const int code = found.empty() ? kOk : kFailed;
  if (options.json) {
    Json rows = Json::array();
    for (const Difference& d : found)
      rows.push_back(
          {{"name", d.name}, {"what", d.what}, {"largest", d.largest}, {"relative", d.relative}});
    print(Json{{"equal", found.empty()}, {"differences", std::move(rows)}}, 2);
    return code;
  }
  if (found.empty()) return code;
  std::vector<std::vector<std::string>> rows{{"name", "differs in", "largest", "relative"}};
  for (const Difference& d : found) {
    const bool of_values = !std::isnan(d.largest);
    rows.push_back({d.name, d.what, of_values ? short_number(d.largest) : "",
                    of_values ? short_number(d.relative) : ""});
  }
  print_rows(std::move(rows), 2);
  return code;
}

// ---- tables

constexpr char kFormats[] =
    "weight file: .safetensors, .pt, .pth, .npz, .npy, .gguf, a safetensors index, or the folder "
    "of one";
constexpr char kStrict[] = "treat notes as errors: tensors left out, renamed or converted";

Command show_command() {
  auto options = std::make_shared<ShowOptions>();
  Command command;
  command.name = "show";
  command.summary = "list tensors with shapes, types and statistics";
  command.about =
      "Lists the tensors of a file: name, dtype, shape, minimum, maximum, mean, standard deviation "
      "(of finite values), and the number of zero, infinite and NaN values. A tied tensor names "
      "the tensor whose values it shares. Objects of other classes and unsupported types are "
      "listed as not read. No code in a file is executed.";
  command.examples = {{"tenon weights show resnet18.pth", "Weights of torchvision."},
                      {"tenon weights show model.safetensors.index.json --quick",
                       "Names and shapes of a sharded file, without reading values."}};
  command.positional(options->file, "FILE", kFormats).completes = Completes::Files;
  command.flag(options->quick, "--quick", "do not read values: no statistics");
  command.flag(options->json, "--json", "print JSON, with the metadata");
  command.flag(options->strict, "--strict", kStrict);
  command.run = [options] { return show(*options); };
  return command;
}

Command convert_command() {
  auto options = std::make_shared<ConvertOptions>();
  Command command;
  command.name = "convert";
  command.summary = "convert to another format or dtype";
  command.about =
      "Writes the tensors of FROM to TO in the format of TO's extension; TO is written completely "
      "or not at all. Metadata is kept in .safetensors, tied tensors in .pt. Notes count what is "
      "left out, renamed or converted, and values that the new dtype cannot represent.";
  command.examples = {
      {"tenon weights convert resnet18.pth resnet18.safetensors", "To Hugging Face's format."},
      {"tenon weights convert model.safetensors half.pt --dtype bf16", "For torch.load()."},
      {"tenon weights convert hub/gpt2 gpt2.safetensors --as gpt2",
       "With the names of Tenon's gpt2; hub/gpt2/config.json gives its sizes."}};
  command.positional(options->from, "FROM", kFormats).completes = Completes::Files;
  command.positional(options->to, "TO", "file to write: .safetensors, .pt, .pth, .bin or .npz")
      .completes = Completes::Files;
  command.option(options->dtype, "--dtype", "NAME", "dtype of floating-point tensors", "unchanged")
      .choices = {"fp16", "bf16", "fp32", "fp64"};
  command
      .option(options->model, "--as", "MODEL",
              "rename tensors for this network and keep those it takes ('tenon models' lists "
              "networks; a config.json next to the weights gives the sizes)")
      .suggestions = models::names();
  command.flag(options->strict, "--strict", kStrict);
  command.run = [options] { return convert(*options); };
  return command;
}

Command diff_command() {
  auto options = std::make_shared<DiffOptions>();
  Command command;
  command.name = "diff";
  command.summary = "compare two files";
  command.about =
      "Lists tensors that only one file has, tensors with different shapes or dtypes, and tensors "
      "with different values (largest difference and |a - b| / |b|). The files may have different "
      "formats. Exit code 0 and no output: the files are equal; 1: they differ.";
  command.examples = {{"tenon weights diff before.safetensors after.safetensors",
                       "The tensors that training changed."},
                      {"tenon weights diff model.safetensors half.pt --tolerance 0.01",
                       "Allow rounding and different dtypes."}};
  command.positional(options->a, "A", kFormats).completes = Completes::Files;
  command.positional(options->b, "B", "weight file to compare with").completes = Completes::Files;
  command.option(options->tolerance, "--tolerance", "X",
                 "largest |a - b| / |b| that counts as equal; above 0, dtypes may differ", "0");
  command.flag(options->json, "--json", "print JSON");
  command.run = [options] { return diff(*options); };
  return command;
}

}  // namespace

Command weights_command() {
  Command command;
  command.name = "weights";
  command.summary = "inspect, convert and compare weight files";
  command.about =
      "Reads .safetensors (one file, or several with an index), PyTorch's .pt and .pth (without "
      "executing code from them), NumPy's .npz and .npy, and .gguf. The format is detected from "
      "the content.";
  command.children = {show_command(), convert_command(), diff_command()};
  return command;
}

}  // namespace tenon::cli
