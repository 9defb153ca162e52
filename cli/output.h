// Standard output: flushing, and the first write that failed.
#pragma once

namespace tenon::cli {

/// Flushes standard output. False if this or an earlier write failed; finish_output() (errors.h)
/// reports the failure at the end.
bool flush_output();
/// errno of the first write to standard output that failed; 0: none did.
int& output_failure();

}  // namespace tenon::cli
