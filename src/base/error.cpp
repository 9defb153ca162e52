// Out-of-line members of the error types, so that their type information is emitted in one object
// file.
#include <tenon/error.h>

#include <utility>

namespace tenon {

Error::Error(const std::string& message) : std::runtime_error(message) {}
Error::Error(const std::string& message, ErrorFields fields)
    : std::runtime_error(message),
      fields_(std::make_shared<const ErrorFields>(std::move(fields))) {}
Error::~Error() = default;

const ErrorFields& Error::fields() const noexcept {
  static const ErrorFields none;
  return fields_ != nullptr ? *fields_ : none;
}

#define TENON_DEFINE_ERROR(Name)                                              \
  Name::Name(const std::string& m) : Error(m) {}                              \
  Name::Name(const std::string& m, ErrorFields f) : Error(m, std::move(f)) {} \
  Name::~Name() = default

TENON_DEFINE_ERROR(ShapeError);
TENON_DEFINE_ERROR(DTypeError);
TENON_DEFINE_ERROR(ValueError);
TENON_DEFINE_ERROR(DeviceError);
TENON_DEFINE_ERROR(MemoryError);
TENON_DEFINE_ERROR(FormatError);
TENON_DEFINE_ERROR(IoError);
TENON_DEFINE_ERROR(NotSupported);
TENON_DEFINE_ERROR(NumericError);
TENON_DEFINE_ERROR(InternalError);

#undef TENON_DEFINE_ERROR

}  // namespace tenon
