// Optimizers as text.
#include "optim/rule_parts.h"

#include "base/str.h"

namespace tenon::optim {

std::string described(const char* name, double lr, std::initializer_list<OptionText> options) {
  std::string out = cat(name, "(lr=", lr);
  for (const OptionText& option : options)
    if (option.value != option.standard) {
      out += cat(", ", option.name);
      if (!option.is_flag) out += cat("=", option.value);
    }
  return out + ")";
}

}  // namespace tenon::optim
