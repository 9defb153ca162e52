// Prepares the launch that adds partial results.
#include "cuda/engines/convolutions/partial_sums.h"

#include "base/index.h"
#include "base/str.h"
#include "cuda/engines/convolutions/conv_shape.h"
#include "cuda/engines/launch/words.h"
#include "cuda/engines/maps/print_code.h"

namespace tenon::cuda {

PartialSums::PartialSums(const Target& target, const PrintedEpilogue& epilogue, std::int64_t rows,
                         std::int64_t columns, std::int64_t splits)
    : epilogue_(epilogue.arguments) {
  const int vector = columns % 4 == 0 ? 4 : 1;
  sum_.items = to_int(rows * columns / vector);
  sum_.columns = make_divisor(columns / vector);
  sum_.splits = to_int(splits);
  while (sum_.runs < 16 && sum_.runs * 16 <= sum_.splits && sum_.items * sum_.runs < 65536)
    sum_.runs *= 2;
  grid_.x = static_cast<std::uint32_t>(divide_up(sum_.items, kFlatThreads / sum_.runs));
  bytes_ = at(splits * rows * columns) * sizeof(float);
  epilogue_.reserve(grid_.x, bytes_);
  kernel_ = compile(
      target,
      {"conv_sum",
       cat("#include \"cuda/kernels/conv/conv_sum.cuh\"\n", epilogue.code,
           "\nusing namespace tenon::cuda;\n\nextern \"C\" __global__ void __launch_bounds__(",
           kFlatThreads, ")\nconv_sum(const ConvSum s, const Epilogue epilogue) {\n", kAwaitKernels,
           "  __shared__ Floats<", vector, "> shared[", kFlatThreads, "];\n  sum_partials<", vector,
           ", ", kFlatThreads, ">(s, epilogue, shared);\n}\n")});
}

void PartialSums::run(const Binding& binding) const {
  ConvSum sum = sum_;
  sum.partials = partials(binding);
  std::vector<std::uint64_t> words;
  epilogue_.fill(words, binding);
  void* params[] = {&sum, words.data()};
  kernel_->launch(binding.stream, grid_, {kFlatThreads, 1, 1}, 0, params);
}

}  // namespace tenon::cuda
