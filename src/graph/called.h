// Called: which op the user called, while it is built of others. Errors name that one, and not one
// that it happens to be made of.
#pragma once

namespace tenon {

/// While it lives, errors of builders (where() in node.h) name this op. The outermost counts. The
/// name must outlive it.
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
