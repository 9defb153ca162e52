/// @file
/// TENON_API marks the symbols that the shared library exports; all others are hidden.
#pragma once

#if defined(TENON_STATIC)
/// Exports a class or function from the shared library; empty if TENON_STATIC is defined.
#define TENON_API
#else
#define TENON_API __attribute__((visibility("default")))
#endif
