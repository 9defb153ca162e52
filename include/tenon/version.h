/// @file
/// Version of the headers for the preprocessor. CMakeLists.txt reads the numbers from this file.
#pragma once

/// Major version. `TENON_VERSION_AT_LEAST(0, 2, 0)` compares versions.
#define TENON_VERSION_MAJOR 0
/// Minor version. Increased when programs may need changes to compile.
#define TENON_VERSION_MINOR 1
/// Patch version. Increased for all other releases.
#define TENON_VERSION_PATCH 0

/// 1 if the headers have this version or a later one, else 0; for `#if`.
#define TENON_VERSION_AT_LEAST(major, minor, patch)                     \
  (TENON_VERSION_MAJOR > (major) ||                                     \
   (TENON_VERSION_MAJOR == (major) && TENON_VERSION_MINOR > (minor)) || \
   (TENON_VERSION_MAJOR == (major) && TENON_VERSION_MINOR == (minor) && \
    TENON_VERSION_PATCH >= (patch)))
