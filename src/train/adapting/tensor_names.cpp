// Compares names and shapes; the error names the first missing and the first unexpected tensor.
#include "train/adapting/tensor_names.h"

#include <tenon/error.h>

#include "base/str.h"

namespace tenon::train {

void require_tensors(const StateDict& own, const StateDict& given, const std::string& file) {
  std::string lacks, odd, other;
  for (const auto& [name, tensor] : own) {
    const auto it = given.find(name);
    if (it == given.end()) {
      if (lacks.empty()) lacks = cat("lacks '", name, "'");
    } else if (it->second.shape() != tensor.shape() && odd.empty()) {
      odd = cat("has '", name, "' as ", it->second.shape(), " in place of ", tensor.shape());
    }
  }
  for (const auto& [name, tensor] : given)
    if (other.empty() && own.count(name) == 0) other = cat("has a '", name, "' that is unknown");
  std::string found;
  for (const std::string& fault : {lacks, odd, other})
    if (!fault.empty()) found += cat(found.empty() ? "" : ", ", fault);
  if (!found.empty())
    throw FormatError(cat(file, " ", found, ": it is damaged, or of another network or optimizer"));
}

}  // namespace tenon::train
