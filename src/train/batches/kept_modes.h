// Saves and restores the training or evaluation mode of a network's modules.
#pragma once

#include <tenon/nn.h>

#include "nn/walk.h"

namespace tenon::train {

/// Restores the mode of every module in its destructor, also after an exception.
class KeptModes {
 public:
  explicit KeptModes(const nn::AnyModule& net) : modes_(nn::Walk::modes(net)) {}
  ~KeptModes() { nn::Walk::set_modes(modes_); }
  KeptModes(const KeptModes&) = delete;
  KeptModes& operator=(const KeptModes&) = delete;

 private:
  nn::Walk::Modes modes_;
};

}  // namespace tenon::train
