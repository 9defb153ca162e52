// Writes a contraction's kernel: which template, its constants, its epilogue. The maths is in
// kernels/.
#include "cuda/engines/contraction_source.h"

#include "cuda/engines/opaque_kernels.h"
#include "cuda/engines/print_code.h"

namespace tenon::cuda {

namespace {

std::string side(const OperandForm& o, DType stored) {
  return cat("Side<", stored_kind(o.dtype), ", ", stored_kind(stored), ", ", truth(o.along_k), ", ",
             o.dtype == stored ? o.vector : 1, ", ", o.outer_digits, ", ", o.inner_digits, ", ",
             o.window, ">");
}

const char* math_name(GemmMath math) {
  constexpr const char* kNames[] = {"Math::Fp32", "Math::Tf32", "Math::Bf16", "Math::F16"};
  return kNames[static_cast<int>(math)];
}

/// Blocks of a multiprocessor that the compiler should leave registers for: a block alone waits.
int residents(const GemmConfig& config) { return config.tile.threads == 256 ? 2 : 1; }

std::string constant(const char* name, int value) {
  return cat("  static constexpr int ", name, " = ", value, ";\n");
}
std::string flag(const char* name, bool value) {
  return cat("  static constexpr bool ", name, " = ", truth(value), ";\n");
}

}  // namespace

Source gemm_source(const ContractionForm& form, const GemmConfig& config,
                   const std::string& epilogue) {
  const GemmTile& t = config.tile;
  std::string text = cat("#include \"cuda/kernels/gemm.cuh\"\n", epilogue,
                         "\nusing namespace tenon::cuda;\n\nstruct Config {\n");
  text += cat("  using Offset = ", form.wide ? "long long" : "int", ";\n");
  text += cat("  using A = ", side(form.a, config.stored_a), ";\n");
  text += cat("  using B = ", side(form.b, config.stored_b), ";\n");
  text += cat("  static constexpr Math kMath = ", math_name(config.math), ";\n");
  text += constant("kM", t.m) + constant("kN", t.n) + constant("kK", t.k);
  text += constant("kThreads", t.threads) + constant("kStages", t.stages);
  text += constant("kThreadM", t.thread_m) + constant("kThreadN", t.thread_n);
  text += constant("kStoreVector", form.store_vector) + constant("kInnerAxis", form.inner_axis);
  text += flag("kSwizzle", config.swizzle) + flag("kSplit", config.splits > 1);
  text += "};\n";
  if (config.splits > 1) text += cat("__device__ unsigned gemm_tickets[", kGemmTickets, "];\n");
  text += cat("using Block = GemmBlock<Config, Epilogue>;\nstatic_assert(Block::kSharedBytes == ",
              config.shared_bytes, ");\n\nextern \"C\" __global__ void __launch_bounds__(",
              t.threads, ", ", residents(config),
              ")\ngemm(const GemmProblem p, const GemmOperand a, const GemmOperand b, const "
              "Epilogue epilogue) {\n  TENON_DYNAMIC_SHARED(shared);\n  Block block(p, epilogue, "
              "shared);\n  block.run(a, b, ",
              config.splits > 1 ? "gemm_tickets" : "nullptr", ");\n}\n");
  return {"gemm", std::move(text)};
}

Source plain_source(const Contraction& c, const ContractionForm& form,
                    const std::string& epilogue) {
  const bool wide = c.dtype == DType::Float64;
  const char* sum = !is_floating(c.dtype) ? "long long" : wide ? "double" : "float";
  const int round = c.compute == DType::BFloat16 ? 1 : c.compute == DType::Float16 ? 2 : 0;
  std::string text = cat(
      "#include \"cuda/kernels/gemm_plain.cuh\"\n", epilogue,
      "\nusing namespace tenon::cuda;\n\nextern \"C\" __global__ void __launch_bounds__(",
      kOpaqueThreads,
      ")\nplain_gemm(const GemmProblem p, const GemmOperand a, const GemmOperand b, const Epilogue "
      "epilogue, unsigned long long count) {\n  plain_contraction<",
      element_name(form.a.dtype), ", ", element_name(form.b.dtype), ", ", sum, ", ", form.a.window,
      ", ", form.b.window, ", ", form.inner_axis, ", ", round, ">(p, a, b, epilogue, count);\n}\n");
  return {"plain_gemm", std::move(text)};
}

}  // namespace tenon::cuda
