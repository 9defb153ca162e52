// The linear layer of GPT-2, for the built-in network and for network files.
#pragma once

#include <cstdint>
#include <string>

#include <tenon/nn.h>

namespace tenon::models {

/// x · weight + bias, with the weight [in, out] as Hugging Face's Conv1D stores it: transposed
/// compared with nn::Linear. Initial values: of the weight `init`, by default as in nn::Linear; of
/// the bias 0.
class Conv1D : public nn::Module {
 public:
  Conv1D(std::int64_t in, std::int64_t out, bool bias, const nn::Initializer& init,
         const OptionalGenerator& generator);
  Tensor forward(const Tensor& x) const override;
  std::string describe() const override;

 private:
  Tensor weight_, bias_;
};

}  // namespace tenon::models
