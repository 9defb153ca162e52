// The fields of attribute structs by name, for saved programs: read and written through one table.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "graph/attrs.h"
#include "graph/op.h"

namespace tenon {

/// The number of a formula, which a file holds by name.
struct FormulaNumber {
  std::int64_t& number;
};

/// A value of an enumeration. A file holds its name.
struct NamedNumber {
  std::int64_t number;
  std::span<const char* const> names;
};

/// Takes each field of a struct: its name in files, and the member, which it may set.
class AttributeFields {
 public:
  virtual ~AttributeFields() = default;
  virtual void operator()(const char* key, std::int64_t& value) = 0;
  virtual void operator()(const char* key, double& value) = 0;
  virtual void operator()(const char* key, bool& value) = 0;
  virtual void operator()(const char* key, Precision& value) = 0;
  virtual void operator()(const char* key, NamedNumber& value) = 0;
  virtual void operator()(const char* key, FormulaNumber& value) = 0;
  virtual void operator()(const char* key, Scalar& value) = 0;
  virtual void operator()(const char* key, std::shared_ptr<const Body>& value) = 0;
  virtual void operator()(const char* key, std::uint8_t (&values)[kMaxRank]) = 0;
  virtual void operator()(const char* key, std::int64_t (&values)[kMaxRank]) = 0;
};

/// Whether a node has a struct of attributes.
bool has_attributes(const Attrs& attrs);
/// Visits the fields of the struct that nodes of this operation have: that of `attrs`, or, if they
/// are empty, a new one, which becomes `attrs`. Computes what depends on the fields. Returns false
/// for an operation without attributes. Throws InternalError if `attrs` is another struct.
bool visit_attributes(Op op, Attrs& attrs, AttributeFields& fields);

}  // namespace tenon
