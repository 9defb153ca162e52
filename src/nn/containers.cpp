// Sequential and ModuleList.
#include <tenon/error.h>
#include <tenon/nn.h>

#include "base/make_error.h"

namespace tenon::nn {
namespace {

const AnyModule& item(const std::vector<AnyModule>& modules, std::int64_t index, const char* kind) {
  if (index < 0 || index >= static_cast<std::int64_t>(modules.size()))
    throw make_error<ValueError>(kind, ": index ", index, " is outside its ", modules.size(),
                                 " modules");
  return modules[static_cast<std::size_t>(index)];
}

}  // namespace

Sequential::Sequential() : modules_(std::make_shared<std::vector<AnyModule>>()) {}

Sequential::Sequential(const std::vector<AnyModule>& modules) : Sequential() {
  for (const AnyModule& module : modules) append(module);
}

void Sequential::append(const AnyModule& module) {
  if (!module.takes_one_tensor())
    throw make_error<ValueError>("Sequential: ", module.describe(),
                                 " does not take one tensor and return one");
  modules_->push_back(child(std::to_string(modules_->size()), module));
}

const AnyModule& Sequential::operator[](std::int64_t index) const {
  return item(*modules_, index, "Sequential");
}

Tensor Sequential::forward(const Tensor& x) const {
  Tensor y = x;
  for (const AnyModule& module : *modules_) y = module(y);
  return y;
}

ModuleList::ModuleList() : modules_(std::make_shared<std::vector<AnyModule>>()) {}

ModuleList::ModuleList(const std::vector<AnyModule>& modules) : ModuleList() {
  for (const AnyModule& module : modules) append(module);
}

void ModuleList::append(const AnyModule& module) {
  modules_->push_back(child(std::to_string(modules_->size()), module));
}

const AnyModule& ModuleList::operator[](std::int64_t index) const {
  return item(*modules_, index, "ModuleList");
}

}  // namespace tenon::nn
