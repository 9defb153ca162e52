// Tells the samples that a run learns from apart from others, so that a run goes on with its own
// data alone: as many other samples would be divided otherwise, and the test part would hold some
// that training has seen.
#pragma once

#include <string>

#include <tenon/data.h>

namespace tenon::train {

/// Of sets in memory the digest of all inputs, targets and class names, in order; of images in
/// files that of their file names, classes and class names, for to decode all would take as long as
/// an epoch. "" for drawn sets, which their settings determine, and for sets of other kinds.
std::string data_digest(const data::Dataset& set);

}  // namespace tenon::train
