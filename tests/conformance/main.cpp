// tenon_conformance [FOLDER] [--op OP] [--dtype DTYPE] [--id TEXT] [--engine E] [--device D]
//                   [--form F] [--failures N] [--differences FILE]
//
// Runs every sample of the folder (default: $TENON_CONFORMANCE, else tests/conformance) through its
// op: on data, on views, on results of pending ops, and compiled; outputs, gradients and second
// derivatives; on the fast and the reference engine, and on a GPU if there is one. Prints the
// agreement by op and dtype, and each failure. Exits with 1 if a difference from PyTorch is not
// listed in differences.json, or if a listed one does not appear.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <tuple>

#include <tenon/compute.h>
#include <tenon/grad.h>
#include <tenon/system.h>

#include "conformance/compare.h"
#include "conformance/differences.h"
#include "conformance/samples.h"

using namespace tenon;
using namespace conformance;

namespace {

struct Options {
  std::string folder, op, dtype, id, engine, device, form;
  std::string differences = "tests/conformance/differences.json";
  int failures = 10;  // failures printed per op
  /// Whether every listed difference must appear: all samples run, and more than the committed
  /// part.
  bool whole() const {
    return (op + dtype + id + engine + device + form).empty() && folder != "tests/conformance";
  }
};

struct Mode {
  std::string device, engine, form;
  std::string label() const { return (device == "cpu" ? engine : device) + "/" + form; }
};

/// The same values with other values between them and the axes reversed in memory.
Tensor as_view(const Tensor& x, Device where) {
  const auto item = item_size(x.dtype());
  const auto* from = static_cast<const std::byte*>(x.data());
  const int rank = x.rank();
  Shape stored;  // reversed axes, the last one twice as long plus one
  Ints back;
  for (int a = rank - 1; a >= 0; --a) stored.push_back(x.shape()[a]), back.push_back(a);
  if (rank == 0) stored.push_back(1);
  stored[stored.rank() - 1] = 2 * stored[stored.rank() - 1] + 1;
  std::vector<std::byte> bytes(static_cast<std::size_t>(stored.numel()) * item, std::byte{1});
  std::vector<std::int64_t> at(static_cast<std::size_t>(rank) + 1);
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    std::int64_t place = 0;
    for (int a = rank - 1; a >= 0; --a)
      place = place * stored[rank - 1 - a] + (a == 0 ? 2 * at[0] + 1 : at[static_cast<size_t>(a)]);
    if (rank == 0) place = 1;
    std::memcpy(bytes.data() + static_cast<std::size_t>(place) * item,
                from + static_cast<std::size_t>(i) * item, item);
    for (int a = rank - 1; a >= 0 && ++at[static_cast<std::size_t>(a)] == x.shape()[a]; --a)
      at[static_cast<std::size_t>(a)] = 0;
  }
  const Tensor whole = Tensor::from_data(bytes.data(), stored, x.dtype(), where);
  if (rank == 0) return select(whole, 0, 1);
  return permute(slice(whole, rank - 1, 1, stored[stored.rank() - 1], 2), back);
}

/// The same values as the result of a pending op.
Tensor as_computed(const Tensor& x) {
  const std::vector<std::byte> zero(static_cast<std::size_t>(x.numel()) * item_size(x.dtype()));
  if (x.dtype() == DType::Bool)
    return logical_or(x, Tensor::from_data(zero.data(), x.shape(), DType::Bool, x.device()));
  const std::vector<float> ones(static_cast<std::size_t>(x.numel()), 1);
  const Tensor one = cast(Tensor::from(ones, x.shape()), x.dtype());
  return mul(x, Tensor::from_data(one.data(), x.shape(), x.dtype(), x.device()));
}

Tensor shaped(const Tensor& x, const Mode& mode) {
  const Device where = device(mode.device);
  if (mode.form == "view") return as_view(x, where);
  const Tensor moved = Tensor::from_data(x.data(), x.shape(), x.dtype(), where);
  return mode.form == "computed" ? as_computed(moved) : moved;
}

Tensor weighted(const std::vector<Tensor>& values, const std::vector<Tensor>& weights) {
  Tensor total;
  for (std::size_t k = 0; k < values.size(); ++k) {
    if (!is_floating(values[k].dtype())) continue;
    const Tensor part = sum(mul(values[k], weights[k]));
    total = total.defined() ? add(total, part) : part;
  }
  return total;
}

/// The results of a sample: outputs, gradients, second derivatives.
std::vector<Tensor> results(const Sample& sample, const std::vector<Operand>& operands,
                            const std::vector<Tensor>& g, const std::vector<Tensor>& h) {
  std::vector<Tensor> all = call(sample, operands);
  std::vector<Tensor> wrt;
  for (const int k : sample.wrt()) wrt.push_back(std::get<Tensor>(operands[std::size_t(k)]));
  if (wrt.empty()) return all;
  const std::vector<Tensor> d = grad(weighted(all, g), wrt);
  all.insert(all.end(), d.begin(), d.end());
  if (h.empty()) return all;
  const std::vector<Tensor> dd = grad(weighted(d, h), wrt);
  all.insert(all.end(), dd.begin(), dd.end());
  return all;
}

std::vector<Tensor> run(const Sample& sample, const Mode& mode) {
  std::vector<Operand> operands = sample.operands();
  std::vector<Tensor> data;
  for (Operand& operand : operands)
    if (auto* x = std::get_if<Tensor>(&operand)) data.push_back(*x = shaped(*x, mode));
  std::vector<Tensor> g = sample.tensors("g"), h = sample.tensors("h");
  for (auto* list : {&g, &h})
    for (Tensor& t : *list)
      t = Tensor::from_data(t.data(), t.shape(), t.dtype(), device(mode.device));
  if (mode.form != "compiled") {
    std::vector<Tensor> all = results(sample, operands, g, h);
    compute(std::span<const Tensor>(all));
    return all;
  }
  CompiledFunction function = compile([&](const std::vector<Tensor>& inputs) {
    std::size_t k = 0;
    for (Operand& operand : operands)
      if (std::holds_alternative<Tensor>(operand)) operand = inputs[k++];
    return results(sample, operands, g, h);
  });
  return function(data);
}

struct Count {
  int passed = 0, failed = 0, listed = 0;
};

class Report {
 public:
  explicit Report(const Options& options) : options_(options), known_(options.differences) {}

  void check(const Sample& sample, const Mode& mode) {
    Count& count = counts_[{sample.op(), sample.dtype()}][mode.label()];
    bool failed = false, listed = false;
    const auto judge = [&](What what, const std::string& problem) {
      const bool known =
          known_.note(sample.op(), sample.id(), sample.dtype(), mode.device, what, problem);
      if (problem.empty()) return;
      (known ? listed : failed) = true;
      if (!known && shown_[sample.op() + name(what)]++ < options_.failures)
        std::printf("FAILED %s %s %s %s: %s\n", sample.op().c_str(), sample.id().c_str(),
                    mode.label().c_str(), name(what), problem.c_str());
    };
    try {
      compare_all(sample, run(sample, mode), judge);
    } catch (const std::exception& error) {
      judge(What::Value, std::string("throws: ") + error.what());
    }
    ++(failed ? count.failed : listed ? count.listed : count.passed);
  }

  void skip(const std::vector<Skipped>& skipped) {
    for (const Skipped& s : skipped) skipped_[s.reason] += s.count;
  }

  /// Prints the table and returns the number of errors.
  int finish() const {
    std::printf("\n%-34s %-9s modes: passed (known differences) FAILED\n", "op", "dtype");
    Count all;
    for (const auto& [key, modes] : counts_) {
      std::printf("%-34s %-9s", key.first.c_str(), key.second.c_str());
      for (const auto& [label, count] : modes) {
        std::printf("  %s %d", label.c_str(), count.passed);
        if (count.listed != 0) std::printf(" (%d)", count.listed);
        if (count.failed != 0) std::printf(" FAILED %d", count.failed);
        all.passed += count.passed, all.listed += count.listed, all.failed += count.failed;
      }
      std::printf("\n");
    }
    std::printf("\nskipped, and why:\n");
    for (const auto& [reason, count] : skipped_) std::printf("%6d %s\n", count, reason.c_str());
    const std::vector<std::string> stale = known_.stale(options_.whole());
    for (const std::string& text : stale) std::printf("listed, but all agree: %s\n", text.c_str());
    std::printf("\n%d passed, %d known differences, %d failed, %d listed differences that agree\n",
                all.passed, all.listed, all.failed, static_cast<int>(stale.size()));
    if (all.passed == 0) std::printf("nothing ran\n");
    return all.failed + static_cast<int>(stale.size()) + (all.passed == 0 ? 1 : 0);
  }

 private:
  template <class Judge>
  static void compare_all(const Sample& sample, const std::vector<Tensor>& got,
                          const Judge& judge) {
    bool elementwise = false;
    for (const char* source : {"/extreme/", "/slopes/", "/each/"})
      elementwise |= sample.id().find(source) != std::string::npos;
    std::size_t at = 0;
    const auto part = [&](What what, const char* out_key, const char* truth_key) {
      const std::vector<Tensor> out = sample.tensors(out_key), truth = sample.tensors(truth_key);
      const std::size_t count = std::max(out.size(), truth.size());
      for (std::size_t k = 0; k < count; ++k, ++at) {
        if (at >= got.size()) return judge(what, "fewer results than PyTorch gives");
        judge(what, compare(got[at], k < out.size() ? out[k] : Tensor(),
                            k < truth.size() ? truth[k] : Tensor(), what, elementwise));
      }
    };
    part(What::Value, "out", "out64");
    part(What::Gradient, "d", "d64");
    part(What::Second, "dd", "dd64");
  }

  Options options_;
  Differences known_;
  std::map<std::pair<std::string, std::string>, std::map<std::string, Count>> counts_;
  std::map<std::string, int> shown_, skipped_;
};

Options parse(int argc, char** argv) {
  Options o;
  const char* folder = std::getenv("TENON_CONFORMANCE");
  o.folder = folder != nullptr ? folder : "tests/conformance";
  const std::map<std::string, std::string*> named = {{"--op", &o.op},
                                                     {"--dtype", &o.dtype},
                                                     {"--id", &o.id},
                                                     {"--engine", &o.engine},
                                                     {"--form", &o.form},
                                                     {"--device", &o.device},
                                                     {"--differences", &o.differences}};
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool more = i + 1 < argc;
    if (word == "--failures" && more)
      o.failures = std::atoi(argv[++i]);
    else if (named.count(word) != 0 && more)
      *named.at(word) = argv[++i];
    else
      o.folder = word;
  }
  return o;
}

std::vector<Mode> modes(const Options& o) {
  std::vector<std::string> devices = {"cpu"};
  for (const GpuInfo& gpu : cuda_info().gpus)
    if (devices.size() < 2) devices.push_back(gpu.device);
  std::vector<Mode> out;
  for (const std::string& device : devices)
    for (const char* engine : {"fast", "reference"})
      for (const char* form : {"data", "view", "computed", "compiled"}) {
        const bool wanted = (o.device.empty() || o.device == device) &&
                            (o.engine.empty() || o.engine == engine) &&
                            (o.form.empty() || o.form == form) &&
                            (device == "cpu" || std::strcmp(engine, "fast") == 0);
        if (wanted) out.push_back({device, engine, form});
      }
  return out;
}

// Ops whose result's shape depends on values, which a function has not while it is compiled.
bool reads_values(const std::string& op) {
  return op == "bincount" || op == "masked_select" || op == "nonzero" || op == "unique" ||
         op == "unique_consecutive" || op.find("_polynomial_") != std::string::npos;
}

int run_all(const Options& options) {
  Report report(options);
  std::vector<std::string> stems;
  for (const auto& entry : std::filesystem::directory_iterator(options.folder))
    if (entry.path().extension() == ".safetensors")
      stems.push_back((entry.path().parent_path() / entry.path().stem()).string());
  std::sort(stems.begin(), stems.end());
  for (const std::string& stem : stems) {
    const SampleFile file = load_samples(stem);
    report.skip(file.skipped);
    for (const Mode& mode : modes(options)) {
      set_engine(mode.engine);
      for (const Sample& sample : file.samples)
        if ((options.op.empty() || options.op == sample.op()) &&
            (options.dtype.empty() || options.dtype == sample.dtype()) &&
            sample.id().find(options.id) != std::string::npos &&
            !(mode.form == "compiled" && reads_values(sample.op())))
          report.check(sample, mode);
    }
  }
  return report.finish() == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run_all(parse(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tenon_conformance: %s\n", error.what());
    return 2;
  }
}
