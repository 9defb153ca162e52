// The tree of a module as text.
#include <ostream>

#include <tenon/module.h>

#include "base/str.h"
#include "nn/grouped.h"
#include "nn/walk.h"

namespace tenon::nn {
namespace {

// Text of several lines, with each line after the first moved to the right.
std::string indented(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '\n' ? std::string("\n  ") : std::string(1, c);
  return out;
}

std::string tree(const ModuleBase& module);

std::string parameters_of_list(const ModuleBase& module) {
  std::string out;
  for (const ModuleState::Entry& entry : Walk::own_entries(module))
    out +=
        cat("  (", entry.name, "): parameter ", entry.tensor.dtype(), entry.tensor.shape(), "\n");
  return out;
}

// One line for each run of children with equal texts: "(0-5): 6 x TransformerEncoderLayer(…)".
std::string children_of(const ModuleBase& module) {
  const std::vector<Walk::Child>& children = Walk::children(module);
  std::string out;
  for (std::size_t first = 0; first < children.size();) {
    const std::string text = tree(children[first].second);
    std::size_t end = first + 1;
    if (Walk::is_list(module))
      while (end < children.size() && tree(children[end].second) == text) ++end;
    const std::size_t count = end - first;
    const std::string name = count == 1 ? children[first].first
                                        : cat(children[first].first, "-", children[end - 1].first);
    out += cat("  (", name, "): ", count == 1 ? "" : cat(count, " x "), indented(text), "\n");
    first = end;
  }
  return out;
}

std::string tree(const ModuleBase& module) {
  std::string kind = module.describe();
  const std::string parts =
      (Walk::is_list(module) ? parameters_of_list(module) : "") + children_of(module);
  if (parts.empty()) return kind.back() == ')' ? kind : kind + "()";
  // "Name(options)" becomes "Name(options" and its parts on the next lines.
  if (kind.back() == ')')
    kind.pop_back();
  else
    kind += "(";
  return kind + "\n" + parts + ")";
}

}  // namespace

std::string grouped(std::int64_t value) {
  std::string digits = std::to_string(value);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

std::string ModuleBase::str() const {
  std::int64_t trainable = 0;
  for (const NamedTensor& p : named_trainable_parameters()) trainable += p.tensor.numel();
  const std::int64_t all = parameter_count();
  return cat(tree(*this), "\nparameters ", grouped(all),
             trainable == all ? "" : cat(" (", grouped(trainable), " trainable)"));
}

std::ostream& operator<<(std::ostream& out, const ModuleBase& module) {
  return out << module.str();
}

}  // namespace tenon::nn
