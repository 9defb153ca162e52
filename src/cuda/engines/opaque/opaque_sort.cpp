// Sorting of rows. Short rows take one launch. Longer rows are sorted in pieces, and each further
// launch doubles the sorted runs; the last launch writes the results.
#include <utility>

#include "cuda/engines/opaque/opaque_kernels.h"
#include "cuda/kernels/opaque/sort_args.cuh"

namespace tenon::cuda {
namespace {

constexpr std::int64_t kItemBytes = 16;  // of SortItem

class SortKernel final : public Kernel {
 public:
  explicit SortKernel(const OpaqueCall& call)
      : in_(call.op.inputs[0]), values_(call.op.outs[0]), indices_(call.op.outs[1]) {
    const Shape& x = call.op.shapes[0];
    const auto& attrs = call.op.attrs.as<SortAttrs>();
    args_.length = x[x.rank() - 1];
    args_.rows = args_.length == 0 ? 0 : x.numel() / args_.length;
    args_.first = attrs.first;
    args_.count = attrs.count;
    args_.descending = attrs.descending;
    args_.pieces = (args_.length + kSortPiece - 1) / kSortPiece;
    if (args_.rows == 0 || args_.count == 0) return;
    const DType dtype = call.dtype(0);
    // Bools are ordered as bytes.
    element_ = is_bool(dtype) ? "element::UInt8" : element_name(dtype);
    const bool whole = args_.pieces == 1;
    pieces_ = compiled(call.target, "tenon_sort_piece", "sort_piece", whole);
    if (whole) return;
    merge_ = compiled(call.target, "tenon_sort_merge", "sort_merge", false);
    last_ = compiled(call.target, "tenon_sort_last", "sort_merge", true);
    workspace_bytes = static_cast<std::size_t>(2 * args_.rows * args_.length * kItemBytes);
  }

  void run(const Binding& binding) const override {
    if (pieces_ == nullptr) return;  // an empty result
    SortArgs args = args_;
    args.x = binding.values[static_cast<std::size_t>(in_)];
    if (values_ != kNoValue) args.values = binding.values[static_cast<std::size_t>(values_)];
    if (indices_ != kNoValue)
      args.indices =
          reinterpret_cast<long long*>(binding.values[static_cast<std::size_t>(indices_)]);
    std::byte* from = binding.workspace;
    std::byte* to = from + workspace_bytes / 2;
    args.to = from;
    const auto blocks = static_cast<std::uint32_t>(args.rows * args.pieces);
    launch(*pieces_, binding, {blocks, 1, 1}, args);
    if (args.pieces == 1) return;
    const Grid grid = grid_over(args.rows * args.length);
    for (args.width = kSortPiece; args.width < args.length; args.width *= 2) {
      args.from = from;
      args.to = to;
      launch(2 * args.width < args.length ? *merge_ : *last_, binding, grid, args);
      std::swap(from, to);
    }
  }

  std::string source() const override {
    if (pieces_ == nullptr) return {};
    if (merge_ == nullptr) return pieces_->source().text;
    return cat(pieces_->source().text, kNextLaunch, merge_->source().text, kNextLaunch,
               last_->source().text);
  }

 private:
  std::shared_ptr<const CompiledKernel> compiled(const Target& target, const std::string& entry,
                                                 const char* function, bool results) const {
    return compile(target,
                   {entry, cat("#include \"cuda/kernels/opaque/sort.cuh\"\n\nusing namespace "
                               "tenon::cuda;\n\nextern \"C\" __global__ void __launch_bounds__(",
                               kSortThreads, ")\n", entry, "(const SortArgs a) {\n", kAwaitKernels,
                               "  ", function, "<", element_, ", ", truth(results), ">(a);\n}\n")});
  }

  static void launch(const CompiledKernel& kernel, const Binding& binding, Grid grid,
                     SortArgs& args) {
    void* params[] = {&args};
    kernel.launch(binding.stream, grid, {kSortThreads, 1, 1}, 0, params);
  }

  const ValueId in_, values_, indices_;
  SortArgs args_;
  const char* element_ = nullptr;
  std::shared_ptr<const CompiledKernel> pieces_, merge_, last_;
};

}  // namespace

std::unique_ptr<Kernel> prepare_sort(const OpaqueCall& call) {
  return std::make_unique<SortKernel>(call);
}

}  // namespace tenon::cuda
