// One object per target, created on first use. Never destroyed: plans point to engines, and plans
// may have static storage duration.
#pragma once

#include <mutex>
#include <utility>
#include <vector>

#include "cuda/target.h"

namespace tenon::cuda {

template <class T>
const T& per_target(const Target& target) {
  static std::mutex mutex;
  static auto& known = *new std::vector<std::pair<Target, const T*>>;
  const std::lock_guard lock(mutex);
  for (const auto& [made_for, object] : known)
    if (made_for == target) return *object;
  return *known.emplace_back(target, new T(target)).second;
}

}  // namespace tenon::cuda
