// The graph of a saved program, built again from its record for one batch size. The record comes
// from a file that nobody has checked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tenon/generator.h>
#include <tenon/host_call.h>
#include <tenon/io.h>
#include <tenon/saved_program.h>
#include <tenon/tensor.h>

#include "io/text/json.h"

namespace tenon {

struct ProgramRecord {
  std::string name;  // of the file, for messages
  io::Json graph;
  io::TensorMap weights;
  std::vector<ProgramInput> inputs;
  std::int64_t batch = 0;  // when the program was saved; 0: fixed shapes
  Device device;           // of the weights
};

/// Inside a catch block, throws the caught error with `place` in front of its message: NotSupported
/// stays, errors of the system pass, and every other one is a FormatError, a mistake of the file.
[[noreturn]] void rethrow_at(const std::string& place, const std::string& file = "");

/// What the program computes from these inputs, for a batch of `n`. The results carry its
/// assignments. Throws FormatError that names the file and the node if the record is not that of a
/// graph, or if a node's dtype or shape is not the inferred one.
std::vector<Tensor> build_program(const ProgramRecord& program, const std::vector<Tensor>& inputs,
                                  std::int64_t n, const OptionalGenerator& generator);

/// The dtype and shape in a node's record, for a batch of `n`.
TensorType type_of_record(const io::Json& row, std::int64_t n);

}  // namespace tenon
