// Saved programs in memory, for tests and fuzzers.
#pragma once

#include <string>
#include <string_view>

#include <tenon/saved_program.h>

namespace tenon {

/// As load_program(), from the bytes of a file.
SavedProgram parse_program(std::string_view bytes, const std::string& name);
/// The program with this record of its graph (graph_writer.h) and these tensors.
SavedProgram program_of_graph(const std::string& graph, io::TensorMap tensors,
                              const std::string& name);

}  // namespace tenon
