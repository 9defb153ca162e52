// Error types: every failure that Tenon reports is one of these types, all derived from Error.
//
// A message says what is wrong, where (file, field, layer, shapes) and what to do. The command maps
// each type to a documented exit code (docs/errors.md). Assertions never depend on user input.
#pragma once

#include <stdexcept>
#include <string>

#include <tenon/export.h>

namespace tenon {

/// Base of all errors; what() is a complete sentence for the user.
class TENON_API Error : public std::runtime_error {
 public:
  /// An error with this message.
  explicit Error(const std::string& message);
  ~Error() override;
};

#define TENON_DECLARE_ERROR(Name)        \
  class TENON_API Name : public Error {  \
   public:                               \
    /** An error with this message. */   \
    explicit Name(const std::string& m); \
    ~Name() override;                    \
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
