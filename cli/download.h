// Fetching files over the network (or file://), resumable.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace tenon::cli {

/// Resumes `part` from its current size until `url` is complete. `progress` gets bytes so far and
/// in all (0: unknown) and returns false to stop. Throws IoError naming the URL and the reason;
/// the bytes received so far stay in `part`.
void download(const std::string& url, const std::string& part,
              const std::function<bool(std::int64_t, std::int64_t)>& progress);

}  // namespace tenon::cli
