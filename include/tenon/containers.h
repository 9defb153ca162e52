// Containers of modules and parameters: Sequential, ModuleList, ModuleDict, ParameterList,
// ParameterDict. A container is a handle, as every module.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <tenon/module.h>

namespace tenon::nn {

/// Calls modules one after another. The children are named "0", "1", … unless they are given names.
class TENON_API Sequential : public Module {
 public:
  /// An empty sequence.
  Sequential();
  /// Copies the handle. There is no move constructor, so a moved-from Sequential stays valid.
  Sequential(const Sequential&) = default;
  /// Replaces the handle.
  Sequential& operator=(const Sequential&) = default;
  /// The modules of a list.
  explicit Sequential(const std::vector<AnyModule>& modules);
  /// The modules given as arguments: `nn::Sequential(nn::Linear(4, 8), nn::ReLU())`.
  template <class... M>
  requires(sizeof...(M) > 0 && (TakesOneTensor<std::remove_cvref_t<M>> && ...) &&
           !(sizeof...(M) == 1 && (std::derived_from<std::remove_cvref_t<M>, Sequential> &&
                                   ...))) explicit Sequential(M&&... modules)
      : Sequential() {
    (append(AnyModule(std::forward<M>(modules))), ...);
  }
  /// Adds a module at the end. Throws ValueError for a module that does not take one tensor and
  /// return one.
  void append(const AnyModule& module);
  /// Adds a module with a name at the end (PyTorch: `Sequential(OrderedDict(…))`). Throws
  /// ValueError also for a name that is taken, empty or has a dot.
  void append(const std::string& name, const AnyModule& module);
  /// Number of modules.
  std::int64_t size() const;
  /// The module at an index. Throws ValueError outside [0, size).
  const AnyModule& operator[](std::int64_t index) const;
  Tensor forward(const Tensor& x) const override;
  std::string describe() const override { return "Sequential"; }
};

/// A Sequential whose activations are not kept for the backward pass: they are computed again
/// (checkpoint() in function.h). Only the input and the output are kept. Children, names and
/// results are those of a Sequential, so it replaces one in a network without a change of
/// checkpoint files. PyTorch: `torch.utils.checkpoint.checkpoint`.
class TENON_API Checkpoint : public Sequential {
 public:
  using Sequential::Sequential;
  /// The modules of a Sequential: the same modules, not copies.
  explicit Checkpoint(const Sequential& modules);
  /// Copies the handle.
  Checkpoint(const Checkpoint&) = default;
  /// Replaces the handle.
  Checkpoint& operator=(const Checkpoint&) = default;
  Tensor forward(const Tensor& x) const override;
  std::string describe() const override { return "Checkpoint"; }
};

/// A list of modules without a forward(); the module that owns the list calls them.
class TENON_API ModuleList : public ModuleBase {
 public:
  /// An empty list.
  ModuleList();
  /// Copies the handle. There is no move constructor, so a moved-from ModuleList stays valid.
  ModuleList(const ModuleList&) = default;
  /// Replaces the handle.
  ModuleList& operator=(const ModuleList&) = default;
  /// The modules of a list.
  explicit ModuleList(const std::vector<AnyModule>& modules);
  /// Adds a module at the end.
  void append(const AnyModule& module);
  /// Number of modules.
  std::int64_t size() const;
  /// The module at an index. Throws ValueError outside [0, size).
  const AnyModule& operator[](std::int64_t index) const;
};

/// Modules by name without a forward(), in the order in which they were added; the module that owns
/// the dictionary calls them. children() lists names and modules.
class TENON_API ModuleDict : public ModuleBase {
 public:
  /// An empty dictionary.
  ModuleDict();
  /// Copies the handle. There is no move constructor, so a moved-from ModuleDict stays valid.
  ModuleDict(const ModuleDict&) = default;
  /// Replaces the handle.
  ModuleDict& operator=(const ModuleDict&) = default;
  /// Names and modules: `nn::ModuleDict({{"conv", conv}, {"pool", pool}})`.
  explicit ModuleDict(const std::vector<std::pair<std::string, AnyModule>>& modules);
  /// Adds a module. Throws ValueError for a name that is taken, empty or has a dot.
  void insert(const std::string& name, const AnyModule& module);
  /// Whether there is a module of this name.
  bool contains(const std::string& name) const;
  /// Number of modules.
  std::int64_t size() const;
  /// The module of a name. Throws ValueError with a similar name if there is none.
  const AnyModule& operator[](const std::string& name) const;
};

/// A list of parameters; the module that owns the list uses them. Their names are "0", "1", …
class TENON_API ParameterList : public ModuleBase {
 public:
  /// An empty list.
  ParameterList();
  /// Copies the handle. There is no move constructor, so a moved-from ParameterList stays valid.
  ParameterList(const ParameterList&) = default;
  /// Replaces the handle.
  ParameterList& operator=(const ParameterList&) = default;
  /// Parameters with these initial values.
  explicit ParameterList(const std::vector<Tensor>& values);
  /// Adds a parameter with this initial value at the end, and returns the parameter.
  Tensor append(const Tensor& value);
  /// Number of parameters.
  std::int64_t size() const;
  /// The parameter at an index. Throws ValueError outside [0, size).
  Tensor operator[](std::int64_t index) const;
};

/// Parameters by name, in the order in which they were added; the module that owns the dictionary
/// uses them. named_parameters() lists them.
class TENON_API ParameterDict : public ModuleBase {
 public:
  /// An empty dictionary.
  ParameterDict();
  /// Copies the handle. There is no move constructor, so a moved-from ParameterDict stays valid.
  ParameterDict(const ParameterDict&) = default;
  /// Replaces the handle.
  ParameterDict& operator=(const ParameterDict&) = default;
  /// Names and initial values: `nn::ParameterDict({{"scale", ones({4})}, {"shift", zeros({4})}})`.
  explicit ParameterDict(const std::vector<std::pair<std::string, Tensor>>& values);
  /// Adds a parameter with this initial value, and returns the parameter. Throws ValueError for a
  /// name that is taken, empty or has a dot.
  Tensor insert(const std::string& name, const Tensor& value);
  /// Whether there is a parameter of this name.
  bool contains(const std::string& name) const;
  /// Number of parameters.
  std::int64_t size() const;
  /// The parameter of a name. Throws ValueError with a similar name if there is none.
  Tensor operator[](const std::string& name) const;
};

}  // namespace tenon::nn
