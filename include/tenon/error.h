// Every failure that Tenon reports is one of these types, all derived from Error.
//
// A message names what was wrong, where (file, field, layer, shapes) and what to do about it. The
// command maps each type to a documented exit code (docs/errors.md). Assertions never depend on
// user input.
#pragma once

#include <stdexcept>
#include <string>

#include <tenon/export.h>

namespace tenon {

/// Base of all errors; what() is a complete sentence meant for the user.
class TENON_API Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message);
  ~Error() override;
};

#define TENON_DECLARE_ERROR(Name)        \
  class TENON_API Name : public Error {  \
   public:                               \
    explicit Name(const std::string& m); \
    ~Name() override;                    \
  }

TENON_DECLARE_ERROR(ShapeError);   ///< Shapes, axes or sizes that do not fit together.
TENON_DECLARE_ERROR(DTypeError);   ///< An element type that the operation does not take.
TENON_DECLARE_ERROR(ValueError);   ///< An argument outside its range, an unknown name or key.
TENON_DECLARE_ERROR(DeviceError);  ///< A device that is absent or failed.
TENON_DECLARE_ERROR(
    MemoryError);  ///< More memory planned or asked for than there is or is allowed.
TENON_DECLARE_ERROR(FormatError);  ///< Bytes that are not what their format says: corrupt,
                                   ///< truncated or foreign files.
TENON_DECLARE_ERROR(IoError);  ///< The operating system refused: missing file, full disk, read-only
                               ///< folder, lock held.
TENON_DECLARE_ERROR(
    NotSupported);  ///< A valid request that this build, device or engine cannot serve.
TENON_DECLARE_ERROR(NumericError);   ///< NaN or infinity where training cannot go on.
TENON_DECLARE_ERROR(InternalError);  ///< A broken invariant of Tenon itself: please report it.

#undef TENON_DECLARE_ERROR

}  // namespace tenon
