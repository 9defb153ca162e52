// Prepares the launch that combines the partial results of each channel.
#include "cuda/engines/convolutions/combined_channels.h"

#include "base/index.h"
#include "base/str.h"
#include "cuda/engines/launch/words.h"
#include "cuda/engines/maps/print_code.h"

namespace tenon::cuda {

namespace {

std::int64_t pitch_of(std::int64_t parts) {
  constexpr std::int64_t kStep = 4;
  return round_up(parts, kStep);
}

Source combining(const std::string& epilogue) {
  return {"conv_channels",
          cat("#include \"cuda/kernels/maps/epilogue_channels.cuh\"\n", epilogue,
              "\nusing namespace tenon::cuda;\n\n",
              "extern \"C\" __global__ void __launch_bounds__(32)\nconv_channels(const Epilogue "
              "epilogue, const int parts, const int pitch) {\n",
              kAwaitKernels,
              "  epilogue.save_channel({epilogue.partials, static_cast<int>(gridDim.x), parts, "
              "pitch},\n                        static_cast<int>(blockIdx.x));\n}\n")};
}

}  // namespace

CombinedChannels::CombinedChannels(const Target& target, const PrintedEpilogue& printed,
                                   EpilogueArguments& arguments, std::int64_t channels,
                                   std::int64_t parts, std::size_t& workspace_bytes)
    : channels_(channels), parts_(parts), kernel_(compile(target, combining(printed.code))) {
  arguments.reserve((printed.channel_numbers * channels + 1) * pitch_of(parts), workspace_bytes);
}

void CombinedChannels::run(const Binding& binding, std::vector<std::uint64_t>& words) const {
  int parts = static_cast<int>(parts_), pitch = static_cast<int>(pitch_of(parts_));
  void* params[] = {words.data(), &parts, &pitch};
  kernel_->launch(binding.stream, {static_cast<std::uint32_t>(channels_), 1, 1}, {32, 1, 1}, 0,
                  params);
}

}  // namespace tenon::cuda
