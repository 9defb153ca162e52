// The op that the user called, while it is being built from other ops. Errors name that op, not one
// of its building blocks.
#pragma once

namespace tenon {

/// While it lives, errors of builders (where() in node.h) name this op. The outermost one counts.
/// The name must outlive the object.
class Called {
 public:
  explicit Called(const char* op_name) noexcept;
  ~Called();
  Called(const Called&) = delete;
  Called& operator=(const Called&) = delete;

 private:
  const char* previous_;
};

}  // namespace tenon
