// Containers of modules and parameters. They have no members: what they hold is their state's
// children and entries, so that copies and clones need no code of their own.
#include <tenon/containers.h>

#include <algorithm>

#include <tenon/error.h>
#include <tenon/function.h>

#include "base/make_error.h"
#include "base/str.h"
#include "nn/walk.h"

namespace tenon::nn {
namespace {

template <class Items>
const auto& at(const Items& items, std::int64_t index, const char* kind, const char* what) {
  if (index < 0 || index >= std::ssize(items))
    throw make_error<ValueError>(kind, ": index ", index, " is outside its ", items.size(), " ",
                                 what);
  return items[static_cast<std::size_t>(index)];
}

const std::string& name_of(const Walk::Child& child) { return child.first; }
const std::string& name_of(const ModuleState::Entry& entry) { return entry.name; }

template <class Items>
auto find(const Items& items, const std::string& name) {
  return std::find_if(items.begin(), items.end(),
                      [&](const auto& item) { return name_of(item) == name; });
}

template <class Items>
const auto& at(const Items& items, const std::string& name, const char* kind) {
  if (const auto found = find(items, name); found != items.end()) return *found;
  std::vector<std::string> names;
  names.reserve(items.size());
  for (const auto& item : items) names.push_back(name_of(item));
  const std::string near = nearest(name, names.data(), static_cast<int>(names.size()));
  throw make_error<ValueError>(kind, ": there is no '", name, "'",
                               near.empty() ? "" : cat("; did you mean '", near, "'?"));
}

}  // namespace

Sequential::Sequential() = default;

Sequential::Sequential(const std::vector<AnyModule>& modules) {
  for (const AnyModule& module : modules) append(module);
}

void Sequential::append(const AnyModule& module) { append(std::to_string(size()), module); }

void Sequential::append(const std::string& name, const AnyModule& module) {
  if (!module.takes_one_tensor())
    throw make_error<ValueError>("Sequential: ", module.describe(),
                                 " does not take one tensor and return one");
  child(name, module);
}

std::int64_t Sequential::size() const { return std::ssize(Walk::children(*this)); }

const AnyModule& Sequential::operator[](std::int64_t index) const {
  return at(Walk::children(*this), index, "Sequential", "modules").second;
}

Tensor Sequential::forward(const Tensor& x) const {
  Tensor y = x;
  for (const auto& [name, module] : Walk::children(*this)) y = module(y);
  return y;
}

Checkpoint::Checkpoint(const Sequential& modules) {
  for (const auto& [name, module] : Walk::children(modules)) append(name, module);
}

Tensor Checkpoint::forward(const Tensor& x) const {
  return checkpoint([this](const Tensor& input) { return Sequential::forward(input); }, x);
}

ModuleList::ModuleList() { Walk::mark_list(*this); }

ModuleList::ModuleList(const std::vector<AnyModule>& modules) : ModuleList() {
  for (const AnyModule& module : modules) append(module);
}

void ModuleList::append(const AnyModule& module) { child(std::to_string(size()), module); }

std::int64_t ModuleList::size() const { return std::ssize(Walk::children(*this)); }

const AnyModule& ModuleList::operator[](std::int64_t index) const {
  return at(Walk::children(*this), index, "ModuleList", "modules").second;
}

ModuleDict::ModuleDict() { Walk::mark_list(*this); }

ModuleDict::ModuleDict(const std::vector<std::pair<std::string, AnyModule>>& modules)
    : ModuleDict() {
  for (const auto& [name, module] : modules) insert(name, module);
}

void ModuleDict::insert(const std::string& name, const AnyModule& module) { child(name, module); }

bool ModuleDict::contains(const std::string& name) const {
  return find(Walk::children(*this), name) != Walk::children(*this).end();
}

std::int64_t ModuleDict::size() const { return std::ssize(Walk::children(*this)); }

const AnyModule& ModuleDict::operator[](const std::string& name) const {
  return at(Walk::children(*this), name, "ModuleDict").second;
}

ParameterList::ParameterList() { Walk::mark_list(*this); }

ParameterList::ParameterList(const std::vector<Tensor>& values) : ParameterList() {
  for (const Tensor& value : values) append(value);
}

Tensor ParameterList::append(const Tensor& value) {
  return parameter(std::to_string(size()), value);
}

std::int64_t ParameterList::size() const { return std::ssize(Walk::own_entries(*this)); }

Tensor ParameterList::operator[](std::int64_t index) const {
  return at(Walk::own_entries(*this), index, "ParameterList", "parameters").tensor;
}

ParameterDict::ParameterDict() { Walk::mark_list(*this); }

ParameterDict::ParameterDict(const std::vector<std::pair<std::string, Tensor>>& values)
    : ParameterDict() {
  for (const auto& [name, value] : values) insert(name, value);
}

Tensor ParameterDict::insert(const std::string& name, const Tensor& value) {
  return parameter(name, value);
}

bool ParameterDict::contains(const std::string& name) const {
  return find(Walk::own_entries(*this), name) != Walk::own_entries(*this).end();
}

std::int64_t ParameterDict::size() const { return std::ssize(Walk::own_entries(*this)); }

Tensor ParameterDict::operator[](const std::string& name) const {
  return at(Walk::own_entries(*this), name, "ParameterDict").tensor;
}

}  // namespace tenon::nn
