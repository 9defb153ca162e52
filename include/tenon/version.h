// The version of these headers, for the preprocessor. CMakeLists.txt reads the numbers here, so
// there is one place to change.
#pragma once

/// Version of the headers: raised for every release. `TENON_VERSION_AT_LEAST(0, 2, 0)` compares.
#define TENON_VERSION_MAJOR 0
#define TENON_VERSION_MINOR 1  ///< Raised when a program that compiled may need a change.
#define TENON_VERSION_PATCH 0  ///< Raised for everything else.

/// 1 when the headers are of this version or newer, for use in `#if`.
#define TENON_VERSION_AT_LEAST(major, minor, patch)                     \
  (TENON_VERSION_MAJOR > (major) ||                                     \
   (TENON_VERSION_MAJOR == (major) && TENON_VERSION_MINOR > (minor)) || \
   (TENON_VERSION_MAJOR == (major) && TENON_VERSION_MINOR == (minor) && \
    TENON_VERSION_PATCH >= (patch)))
