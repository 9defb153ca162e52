// The files of make_samples.py: samples with PyTorch's results, and the ops of Tenon that they
// name.
//
// Flat tensors are in memory once; a sample stores positions, and creates its tensors at each
// request. Comparing is in compare.h; main.cpp decides what runs.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include <tenon/io.h>
#include <tenon/ops.h>
#include <nlohmann/json.hpp>

namespace conformance {

/// An argument of an op: a tensor, or a plain number.
using Operand = std::variant<tenon::Tensor, tenon::Scalar>;

/// One call of an op. Keys are explained in make_samples.py.
class Sample {
 public:
  using Pool = std::shared_ptr<const tenon::io::TensorMap>;
  Sample(Pool pool, nlohmann::json record);
  const std::string& op() const { return op_; }
  const std::string& id() const { return id_; }
  const std::string& dtype() const { return dtype_; }
  /// The tensors under a key ("out", "d64", …); empty if the sample lacks the key.
  std::vector<tenon::Tensor> tensors(const char* key) const;
  std::vector<Operand> operands() const;
  /// Indices of the operands that have gradients.
  std::vector<int> wrt() const;
  const nlohmann::json& args() const { return args_; }

 private:
  tenon::Tensor tensor(const nlohmann::json& place) const;
  Pool pool_;
  nlohmann::json record_, args_;
  std::string op_, id_, dtype_;
};

/// A sample that the script could not translate, with the reason.
struct Skipped {
  std::string op, dtype, reason;
  int count = 0;
};

/// A pair of files STEM.json and STEM.safetensors.
struct SampleFile {
  std::vector<Sample> samples;
  std::vector<Skipped> skipped;
};
SampleFile load_samples(const std::string& stem);

/// A number of the arguments: {"i": whole} or {"f": hexadecimal}.
tenon::Scalar number(const nlohmann::json& text);

/// Calls the op that the sample names. Throws std::out_of_range for an unknown op.
std::vector<tenon::Tensor> call(const Sample& sample, const std::vector<Operand>& operands);

}  // namespace conformance
