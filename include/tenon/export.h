// Marks what leaves the library: everything else is hidden.
#pragma once

#if defined(TENON_STATIC)
#define TENON_API
#else
#define TENON_API __attribute__((visibility("default")))
#endif
