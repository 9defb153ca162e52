// FormulaSource: an engine that has loops of its own for some formulas (Op::Formula).
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "graph/element_code.h"

namespace tenon {

/// A map engine may also be a FormulaSource. Then formulas that it knows stay one element-wise
/// instruction (Op::OwnElement) instead of a chain of float64 operations.
class FormulaSource {
 public:
  FormulaSource() = default;
  FormulaSource(const FormulaSource&) = delete;
  FormulaSource& operator=(const FormulaSource&) = delete;

  /// The loops of a formula of ops/formulas.inc for float32 and 16-bit tensors; null: there are
  /// none.
  virtual std::shared_ptr<const ElementCode> formula(std::string_view name,
                                                     std::int64_t parameter) const = 0;

 protected:
  ~FormulaSource() = default;
};

}  // namespace tenon
