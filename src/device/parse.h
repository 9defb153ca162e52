// Parses a device name without checking that the device exists.
#pragma once

#include <string>

#include <tenon/device.h>

namespace tenon {

/// "cpu", "cuda" (the first GPU) or "cuda:N". Throws ValueError for another text.
Device parse_device(const std::string& text);

}  // namespace tenon
