// Commas divide the parts of a data source, and stand in names of files too.
#include "data/source_parts.h"

#include <algorithm>

#include <tenon/error.h>

#include "base/str.h"
#include "io/file.h"

namespace tenon::data {

std::vector<std::string> source_parts(const std::string& rest, bool only_paths,
                                      const std::filesystem::path& base) {
  std::vector<std::string> parts;
  for (std::size_t from = 0; from <= rest.size();) {
    std::size_t end = std::min(rest.find(',', from), rest.size());
    const bool test = !parts.empty() && rest.compare(from, 5, "test=") == 0;
    const std::size_t path = test ? from + 5 : from;
    if (test || only_paths || parts.empty())
      for (std::size_t longer = rest.size(); longer > end; longer = rest.rfind(',', longer - 1))
        if (io::file_exists((base / rest.substr(path, longer - path)).string())) end = longer;
    parts.push_back(rest.substr(from, end - from));
    from = end + 1;
  }
  return parts;
}

void refuse_part(const std::string& spec, const std::vector<std::string>& parts, std::size_t which,
                 const char* options) {
  std::string path, message = cat("data '", spec, "': '", parts[which], "' is none of ", options);
  // It may be the rest of a name.
  if (parts[which].find('=') == std::string::npos) {
    for (std::size_t k = 0; k < parts.size(); ++k) {
      if (k > which && parts[k].find('=') != std::string::npos) break;
      path += cat(k > 0 ? "," : "", parts[k]);
    }
    message += cat(", and there is no '", path, "'");
  }
  throw ValueError(message);
}

}  // namespace tenon::data
