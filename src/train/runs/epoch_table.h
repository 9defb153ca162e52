// The reports of all epochs as tensors of a checkpoint.
//
// Other state of a checkpoint is text. Reports are tensors, because a run of 10,000 short epochs
// writes 10,000 checkpoints and would spend most of its time formatting the same numbers.
#pragma once

#include <string>
#include <vector>

#include <tenon/io.h>
#include <tenon/train.h>

namespace tenon::train {

/// Adds the reports to the tensors of a checkpoint, and returns the names of their columns, for its
/// metadata; "" for no reports.
std::string add_epochs(const std::vector<EpochReport>& history, io::TensorMap& tensors);
/// Takes the reports out of the tensors. Throws FormatError naming `source` for tensors that are
/// not those of add_epochs().
std::vector<EpochReport> take_epochs(const std::string& columns, io::TensorMap& tensors,
                                     const std::string& source);

}  // namespace tenon::train
