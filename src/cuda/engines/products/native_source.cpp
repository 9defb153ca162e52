// Prints a contraction's kernel: the template, its constants, its epilogue. The arithmetic is in
// kernels/.
#include "cuda/engines/products/native_source.h"

#include "base/str.h"
#include "cuda/engines/launch/words.h"
#include "cuda/engines/maps/print_code.h"

namespace tenon::cuda {

const char* math_name(GemmMath math) {
  constexpr const char* kNames[] = {"Math::Fp32", "Math::Tf32", "Math::Bf16", "Math::F16"};
  return kNames[static_cast<int>(math)];
}

namespace {

std::string side(const OperandForm& o, DType stored, const char* prologue) {
  if (o.prologue != nullptr)
    return cat("ComputedSide<", prologue, ", ", stored_kind(stored), ", ", truth(o.along_k), ", ",
               o.vector, ", ", o.outer_digits, ", ", o.inner_digits, ", ", o.window, ">");
  const bool pairs = o.pairs && o.dtype == stored;
  const int vector = pairs ? 2 : o.dtype == stored ? o.vector : 1;
  return cat("Side<", stored_kind(o.dtype), ", ", stored_kind(stored), ", ", truth(o.along_k), ", ",
             vector, ", ", o.outer_digits, ", ", o.inner_digits, ", ", o.window,
             pairs ? ", true>" : ">");
}

/// Blocks per multiprocessor that the compiler should leave registers for: a single block would
/// idle while it waits.
int residents(const GemmConfig& config) { return config.tile.threads == 256 ? 2 : 1; }

/// Parameters for the existing prologues, and the arguments that the body passes for both.
struct Prologues {
  std::string parameters, arguments;
};
Prologues prologues_of(const ContractionForm& form) {
  Prologues out;
  if (form.a.prologue == nullptr && form.b.prologue == nullptr) return out;
  if (form.a.prologue != nullptr) out.parameters += cat(", const ", kPrologueA, " prologue_a");
  if (form.b.prologue != nullptr) out.parameters += cat(", const ", kPrologueB, " prologue_b");
  out.arguments = cat(", ", form.a.prologue != nullptr ? "prologue_a" : "NoPrologue()", ", ",
                      form.b.prologue != nullptr ? "prologue_b" : "NoPrologue()");
  return out;
}

/// A prologue reads memory with its own types.
const char* plain_element(const OperandForm& o) {
  return element_name(o.prologue != nullptr ? DType::Float32 : o.dtype);
}

}  // namespace

Source gemm_source(const ContractionForm& form, const GemmConfig& config,
                   const std::string& parts) {
  const Prologues prologues = prologues_of(form);
  std::string text =
      cat("#include \"cuda/kernels/gemm/gemm.cuh\"\n", parts, "\nusing namespace tenon::cuda;\n\n");
  text += ConfigText()
              .type("Offset", form.wide ? "long long" : "int")
              .type("A", side(form.a, config.stored_a, kPrologueA))
              .type("B", side(form.b, config.stored_b, kPrologueB))
              .value("Math", "kMath", math_name(config.math))
              .tile(config.tile)
              .ints({{"kStoreVector", form.store_vector}})
              .ints({{"kInnerAxis", form.inner_axis}})
              .flags({{"kSwizzle", config.swizzle}})
              .flags({{"kSplit", config.splits > 1}, {"kSerial", config.serial}})
              .text();
  if (config.splits > 1) text += cat("__device__ unsigned gemm_tickets[", kGemmTickets, "];\n");
  text += cat("using Block = GemmBlock<Config, Epilogue>;\nstatic_assert(Block::kSharedBytes == ",
              config.shared_bytes, ");\n\nextern \"C\" __global__ void __launch_bounds__(",
              config.tile.threads, ", ", residents(config),
              ")\ngemm(const GemmProblem p, const GemmOperand a, const GemmOperand b, const "
              "Epilogue epilogue",
              prologues.parameters,
              ") {\n  TENON_DYNAMIC_SHARED(shared);\n  Block block(p, epilogue, "
              "shared);\n  block.await_and_run(a, b, ",
              config.splits > 1 ? "gemm_tickets" : "nullptr", prologues.arguments, ");\n}\n");
  return {"gemm", std::move(text), 2};
}

Source plain_source(const Contraction& c, const ContractionForm& form, const std::string& parts) {
  const bool wide = c.dtype == DType::Float64;
  const char* sum = !is_floating(c.dtype) ? "long long" : wide ? "double" : "float";
  const int round = c.compute() == DType::BFloat16 ? 1 : c.compute() == DType::Float16 ? 2 : 0;
  const Prologues prologues = prologues_of(form);
  std::string text = cat(
      "#include \"cuda/kernels/gemm/gemm_plain.cuh\"\n", parts,
      "\nusing namespace tenon::cuda;\n\nextern \"C\" __global__ void __launch_bounds__(",
      kFlatThreads,
      ")\nplain_gemm(const GemmProblem p, const GemmOperand a, const GemmOperand b, const Epilogue "
      "epilogue, unsigned long long count",
      prologues.parameters, ") {\n", kAwaitKernels, "  plain_contraction<", plain_element(form.a),
      ", ", plain_element(form.b), ", ", sum, ", ", form.a.window, ", ", form.b.window, ", ",
      form.inner_axis, ", ", round, ", ", kFlatThreads, ">(p, a, b, epilogue, count",
      prologues.arguments, ");\n}\n");
  return {"plain_gemm", std::move(text)};
}

}  // namespace tenon::cuda
