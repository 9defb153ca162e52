// Digest of the training samples. A run is resumed only with the same samples: other samples would
// be split differently, and the test part could contain some that training has seen.
#pragma once

#include <string>

#include <tenon/data.h>

namespace tenon::train {

/// Digest of a dataset. In memory: of all inputs and targets, in order. Image files: of file names,
/// sizes and classes, and of the bytes if all files together have at most 64 MiB; reading more, or
/// decoding, would take as long as an epoch. Class names follow the digest if they are words. ""
/// for synthetic datasets, which their settings determine, and for other kinds of datasets.
std::string data_digest(const data::Dataset& set);

/// Describes the difference of two digests for messages: "its files or their order changed", or the
/// classes that changed.
std::string data_change(const std::string& before, const std::string& now);

}  // namespace tenon::train
