// Functions by the names of adapters.py and the other files of adapters.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "conformance/samples.h"

namespace conformance {

using Function =
    std::function<std::vector<tenon::Tensor>(const std::vector<Operand>&, const nlohmann::json&)>;
using Functions = std::map<std::string, Function>;

void add_composed(Functions& functions);
void add_more_losses(Functions& functions);
void add_named_as_pytorch(Functions& functions);
void add_special(Functions& functions);

}  // namespace conformance
