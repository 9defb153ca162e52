// Digest of the training samples. A run is resumed only with the same samples: other samples would
// be split differently, and the test part could contain some that training has seen.
#pragma once

#include <string>

#include <tenon/data.h>

namespace tenon::train {

/// Of sets in memory the digest of all inputs and targets, in order; of images in files that of
/// their file names, sizes and classes, and of their bytes where those of all are no more than 64
/// MiB: to read more, or to decode any, would take as long as an epoch. Behind it stand the names
/// of the classes where they are words. "" for drawn sets, which their settings determine, and for
/// sets of other kinds.
std::string data_digest(const data::Dataset& set);

/// What differs between two digests that differ, for messages: "its files or their order changed",
/// or which classes did.
std::string data_change(const std::string& before, const std::string& now);

}  // namespace tenon::train
