// Finds the layer that produced the first NaN or infinity: runs the forward pass again and checks
// the output of every module.
#include <string>
#include <vector>

#include <tenon/compute.h>
#include <tenon/ops.h>
#include <tenon/train.h>

#include "base/str.h"

namespace tenon::train {
namespace {

struct Suspect {
  std::string what;
  Tensor finite;  // bool scalar
};

void add(std::vector<Suspect>& suspects, std::string what, const Tensor& value) {
  if (is_floating(value.dtype())) suspects.push_back({std::move(what), all(isfinite(value))});
}

}  // namespace

std::string first_non_finite(const nn::Module& net, const Tensor& input) {
  std::vector<Suspect> suspects;
  add(suspects, "the input", input);
  {
    nn::CallObserver watch([&](const std::string& path, const nn::ModuleBase& module,
                               std::span<const Tensor>, std::span<const Tensor> outputs) {
      const std::string name =
          path.empty() ? module.describe() : cat(path, " (", module.describe(), ")");
      for (const nn::NamedTensor& p : module.named_parameters())
        if (p.name.find('.') == std::string::npos)
          add(suspects, cat(name, ": parameter '", p.name, "'"), p.tensor);
      for (const Tensor& output : outputs) add(suspects, cat(name, ": output"), output);
    });
    net(input);
  }
  std::vector<Tensor> checks;
  checks.reserve(suspects.size());
  for (const Suspect& s : suspects) checks.push_back(s.finite);
  take_updates(checks);  // this pass must not update running statistics
  tenon::compute(checks);
  for (std::size_t k = 0; k < suspects.size(); ++k)
    if (checks[k].item() == 0) return suspects[k].what;
  return "";
}

}  // namespace tenon::train
