// Optimizers as text, and a check of groups.
#include "optim/rule_parts.h"

#include <tenon/error.h>

#include "base/make_error.h"
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

void require_no_decay(const char* optimizer, const std::vector<ParameterGroup>& groups,
                      const char* reason) {
  for (const ParameterGroup& group : groups)
    if (group.weight_decay.value_or(0) != 0)
      throw make_error<ValueError>(optimizer, ": a group's weight_decay is ", *group.weight_decay,
                                   ", must be 0: ", reason);
}

}  // namespace tenon::optim
