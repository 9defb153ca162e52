// Out-of-line members of the error types, so that their type information is emitted in one object
// file.
#include <tenon/error.h>

namespace tenon {

Error::Error(const std::string& message) : std::runtime_error(message) {}
Error::~Error() = default;

#define TENON_DEFINE_ERROR(Name)                 \
  Name::Name(const std::string& m) : Error(m) {} \
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
