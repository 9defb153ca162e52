// Saved programs: a traced function and its weights in one file, which runs without the C++ code
// that made it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tenon/compute.h>
#include <tenon/export.h>
#include <tenon/generator.h>
#include <tenon/io.h>
#include <tenon/tensor.h>

namespace tenon {

/// How a function is saved.
struct SaveProgramOptions {
  /// The inputs whose first axis is the batch, by index. The saved program takes any batch size for
  /// them, the same size for all. Empty: the program takes only the shapes that it was saved with.
  std::vector<int> batched{};
  /// Key-value pairs for the file, such as class names. Keys that begin with "tenon." are reserved.
  io::Metadata metadata{};
};

/// Traces `function` for inputs of these shapes and dtypes, and writes its operations and all
/// tensors that it reads to one file. Values of `inputs` are not read. The file is a safetensors
/// file with checksums: the weights are its tensors, the operations are in its metadata
/// (docs/programs.md).
///
/// The file holds what the function did while it was traced: modes of modules, numbers and branches
/// of the C++ code are fixed. Assignments to variables are saved and take effect when the loaded
/// program runs. Random numbers come from the generator of the loaded program. PyTorch:
/// `torch.export.save`.
///
/// Throws NotSupported for host_call() and the operations that use it (linear algebra), for
/// operations between several devices, and for a function that draws from two generators. With
/// batched inputs, throws ShapeError if the function's graph or a size in it is not a linear
/// function of the batch size. Throws IoError.
TENON_API void save_program(const std::string& path, const CompiledFunction::Body& function,
                            const std::vector<Tensor>& inputs,
                            const SaveProgramOptions& options = {});

/// What a program takes as one of its inputs.
struct ProgramInput {
  DType dtype = DType::Float32;  ///< Data type.
  Shape shape{};                 ///< Sizes when the program was saved.
  bool batched = false;          ///< Whether the first axis may have any size.
};

/// A program that was loaded from a file. Copies share the weights. Any number of threads may call
/// it, as a compiled function.
class TENON_API SavedProgram {
 public:
  /// No program; a call throws ValueError.
  SavedProgram() = default;
  /// Runs the program. In a function that is being compiled, adds its operations to the graph, and
  /// gradients go through them. Throws ShapeError, DTypeError or DeviceError for inputs that the
  /// program does not take.
  Outputs operator()(const std::vector<Tensor>& inputs) const;
  /// What the program takes, in order.
  const std::vector<ProgramInput>& inputs() const;
  /// Number of results.
  std::size_t result_count() const;
  /// The tensors that the program reads, by name. Variables of the saved function are variables
  /// here; set_value() changes what the program computes.
  const io::TensorMap& weights() const;
  /// The key-value pairs that the program was saved with.
  const io::Metadata& metadata() const;

  /// The program itself. For the library's own use.
  struct Impl;
  /// For the library's own use.
  explicit SavedProgram(std::shared_ptr<const Impl> impl) noexcept : impl_(std::move(impl)) {}

 private:
  const Impl& held() const;
  std::shared_ptr<const Impl> impl_;
};

/// Reads a program. Its weights go to the current device (set_device()), and it runs there, with
/// the settings of the current context. Each node's dtype and shape is inferred again and compared
/// with the file. `generator`: where random numbers come from; by default the context's generator.
///
/// Throws IoError. Throws FormatError that names the node for a file that is damaged, is no saved
/// program, or has operations that this version does not know.
TENON_API SavedProgram load_program(const std::string& path,
                                    const OptionalGenerator& generator = {});

}  // namespace tenon
