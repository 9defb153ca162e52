// The second launch of a convolution whose epilogue reduces channels. It combines the blocks'
// partial results of each channel in order (cuda/kernels/maps/epilogue_channels.cuh).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cuda/engines/maps/print_map.h"
#include "cuda/jit/jit.h"
#include "plan/program/engine.h"

namespace tenon::cuda {

class CombinedChannels {
 public:
  /// For `parts` partial results per channel. Sets the place of the epilogue's partial results in
  /// the workspace.
  CombinedChannels(const Target& target, const PrintedEpilogue& printed,
                   EpilogueArguments& arguments, std::int64_t channels, std::int64_t parts,
                   std::size_t& workspace_bytes);
  /// `words`: the epilogue's arguments, as the first launch has them.
  void run(const Binding& binding, std::vector<std::uint64_t>& words) const;
  const std::string& source() const { return kernel_->source().text; }

 private:
  std::int64_t channels_, parts_;
  std::shared_ptr<const CompiledKernel> kernel_;
};

}  // namespace tenon::cuda
