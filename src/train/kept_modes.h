// Training or evaluation mode of a network's modules, as it was found.
#pragma once

#include <utility>
#include <vector>

#include <tenon/nn.h>

namespace tenon::train {

/// Gives every module its mode back when it ends, also where an error ends it.
class KeptModes {
 public:
  explicit KeptModes(const nn::AnyModule& net) { add(net); }
  ~KeptModes() {
    for (const auto& [module, training] : modes_)  // a module's own come after it
      if (module.is_training() != training) module.train(training);
  }
  KeptModes(const KeptModes&) = delete;
  KeptModes& operator=(const KeptModes&) = delete;

 private:
  void add(const nn::AnyModule& module) {
    modes_.emplace_back(module, module.is_training());
    for (const auto& [name, child] : module.children()) add(child);
  }
  std::vector<std::pair<nn::AnyModule, bool>> modes_;
};

}  // namespace tenon::train
