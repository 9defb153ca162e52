// State shared by all handles of one module. Private to nn/.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <tenon/nn.h>

namespace tenon::nn {

struct ModuleState {
  struct Entry {
    std::string name;
    Tensor tensor;
    bool buffer = false;
  };
  struct Hook {  // one of the functions
    ForwardPreHook before{};
    ForwardHook after{};
    BackwardHook backward{};
    std::uint64_t id = 0;
    bool is_empty() const { return !before && !after && !backward; }
  };
  ~ModuleState();
  std::string name;  // name in the parent; "": root
  bool training = true;
  bool registered = false;     // as a child of any module
  bool is_list = false;        // a container that is not called itself
  std::uint32_t replaced = 0;  // handles that compiled functions used and that were replaced
  std::optional<Precision> precision;  // precision of products built in forward()
  std::vector<Hook> hooks;
  std::uint64_t hooks_added = 0, hooks_changed = 0;
  std::vector<Entry> entries;
  std::vector<std::pair<std::string, AnyModule>> children;
  std::unordered_set<std::string> entry_names, child_names;
  // tensors of all children so far: a tied one keeps the label of its first path
  std::unordered_set<const Node*> labelled;
};

/// The state that a copy of a handle refers to: the clone's while a module is cloned.
std::shared_ptr<ModuleState> copied(const std::shared_ptr<ModuleState>& state);

}  // namespace tenon::nn
