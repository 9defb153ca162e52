// Error types: every failure that Tenon reports is one of these types, all derived from Error.
//
// A message says what is wrong, where (file, field, layer, shapes) and what to do. An error also
// carries the parts of its message that a program may need as fields. The command maps each type to
// a documented exit code (docs/errors.md). Assertions never depend on user input.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <tenon/export.h>
#include <tenon/shape.h>

namespace tenon {

/// What an error is about. A field that does not apply, or that the error does not know, is empty.
struct ErrorFields {
  std::string operation{};      ///< The operation that the user called: "conv2d".
  std::string layer{};          ///< Path of the layer that called the operation: "block.3.conv1".
  std::vector<Shape> shapes{};  ///< Shapes of the operands, or the shapes that the message names.
  std::string file{};           ///< Path of the file, as it was given.
  std::int64_t line = 0;        ///< Line of the file, from 1; 0: the whole file.
};

/// Base of all errors; what() is a complete sentence for the user.
class TENON_API Error : public std::runtime_error {
 public:
  /// An error with this message.
  explicit Error(const std::string& message);
  /// An error with this message that is about these things.
  Error(const std::string& message, ErrorFields fields);
  ~Error() override;

  /// The operation that the user called, for example "conv2d"; "" if the error is about none.
  const std::string& operation() const noexcept { return fields().operation; }
  /// Path of the layer that called the operation, for example "block.3.conv1"; "" outside of
  /// modules and scopes.
  const std::string& layer() const noexcept { return fields().layer; }
  /// Shapes of the operation's operands, in the operation's order. Where the operands are not known
  /// yet, the shapes that the message names, in its order.
  const std::vector<Shape>& shapes() const noexcept { return fields().shapes; }
  /// Path of the file that cannot be read or written, as it was given; "" if the error is about no
  /// file.
  const std::string& file() const noexcept { return fields().file; }
  /// Line of file(), from 1; 0 if the error is about the whole file or the file is binary.
  std::int64_t line() const noexcept { return fields().line; }
  /// All fields.
  const ErrorFields& fields() const noexcept;

 private:
  std::shared_ptr<const ErrorFields> fields_;  // null: all are empty; copying an error cannot throw
};

#define TENON_DECLARE_ERROR(Name)                       \
  class TENON_API Name : public Error {                 \
   public:                                              \
    /** An error with this message. */                  \
    explicit Name(const std::string& m);                \
    /** An error with this message and these fields. */ \
    Name(const std::string& m, ErrorFields f);          \
    ~Name() override;                                   \
  }

/// Shapes, axes or sizes that do not fit together.
TENON_DECLARE_ERROR(ShapeError);
/// An element type that the operation does not support.
TENON_DECLARE_ERROR(DTypeError);
/// An argument out of range, or an unknown name or key.
TENON_DECLARE_ERROR(ValueError);
/// A device that is absent or has failed.
TENON_DECLARE_ERROR(DeviceError);
/// More memory planned or requested than is available or allowed.
TENON_DECLARE_ERROR(MemoryError);
/// Bytes that do not follow their format: corrupt, truncated or foreign files.
TENON_DECLARE_ERROR(FormatError);
/// The operating system refused: missing file, full disk, read-only folder, file locked.
TENON_DECLARE_ERROR(IoError);
/// A valid request that this build, device or engine cannot serve.
TENON_DECLARE_ERROR(NotSupported);
/// NaN or infinity where training cannot continue.
TENON_DECLARE_ERROR(NumericError);
/// A broken invariant of Tenon itself; please report it.
TENON_DECLARE_ERROR(InternalError);

#undef TENON_DECLARE_ERROR

}  // namespace tenon
