// Standard output: flushing, and the first write that failed.
#include "output.h"

#include <cerrno>
#include <cstdio>

namespace tenon::cli {

int& output_failure() {
  static int reason = 0;
  return reason;
}

bool flush_output() {
  if (std::fflush(stdout) != 0 && output_failure() == 0) output_failure() = errno;
  return std::ferror(stdout) ==
         0;  // ferror() stays set, although stdio discards the unwritten data
}

}  // namespace tenon::cli
