// Turns a number into a pattern of bytes or 4-byte words, the patterns that the driver can fill
// with. One element of 8 bytes is two words.
#include "cuda/engines/maps/fill_engine.h"

#include <memory>

#include "base/str.h"
#include "cuda/device/opening/driver.h"
#include "cuda/engines/launch/per_target.h"
#include "cuda/engines/launch/words.h"
#include "plan/program/strides.h"

namespace tenon::cuda {
namespace {

/// The driver call that fills the value.
struct FillPattern {
  ValueId out = kNoValue;
  std::uint32_t low = 0, high = 0;  // of an element, repeated over 8 bytes
  std::int64_t bytes = 0;

  bool by_bytes() const { return low == high && low == (low & 0xffu) * 0x01010101u; }
  bool by_words() const { return low == high && bytes % 4 == 0; }
  bool possible() const { return by_bytes() || by_words() || bytes == 8; }
};

/// Null, or the reason for a refusal.
const char* fill_refusal(const Region& region, std::span<const Value> values,
                         FillPattern& pattern) {
  const MapProgram& map = region.map;
  if (region.kind != RegionKind::Map || map.stores.size() != 1 || !map.reduces.empty() ||
      map.instrs.empty() || map.instrs[0].code != MapCode::Number)
    return "only fills a tensor with one number";
  const MapInstr& number = map.instrs[0];
  for (std::size_t i = 1; i < map.instrs.size(); ++i) {
    const MapInstr& instr = map.instrs[i];
    if (instr.code != MapCode::Compute || instr.op != Op::Cast || instr.dtype != number.dtype)
      return "only fills a tensor with one number, and does not compute";
  }
  const View& view = map.stores[0].view;
  const Value& out = values[static_cast<std::size_t>(view.value)];
  if (out.dtype != number.dtype || !is_contiguous(view, map.space) ||
      map.space.numel() != out.shape.numel())
    return "fills whole tensors only";
  const auto bits =
      static_cast<std::uint64_t>(repeated_bits(out.dtype, number.attrs.as<ConstantAttrs>().value));
  pattern = {view.value, static_cast<std::uint32_t>(bits), static_cast<std::uint32_t>(bits >> 32),
             out.shape.numel() * static_cast<std::int64_t>(item_size(out.dtype))};
  return pattern.possible() ? nullptr : "fills only with a number whose bits the driver can repeat";
}

class FillKernel final : public Kernel {
 public:
  FillKernel(const FillPattern& pattern, std::string title)
      : pattern_(pattern), title_(std::move(title)) {}

  void run(const Binding& binding) const override {
    const FillPattern& p = pattern_;
    if (p.bytes == 0) return;
    const auto to = address(binding.values[static_cast<std::size_t>(p.out)]);
    const auto stream = static_cast<CUstream>(binding.stream);
    const auto bytes = static_cast<std::size_t>(p.bytes);
    const Driver& api = driver();
    if (p.by_bytes())
      return check(api.cuMemsetD8Async(to, static_cast<unsigned char>(p.low), bytes, stream),
                   "filling ", title_);
    check(api.cuMemsetD32Async(to, p.low, p.by_words() ? bytes / 4 : 1, stream), "filling ",
          title_);
    if (!p.by_words()) check(api.cuMemsetD32Async(to + 4, p.high, 1, stream), "filling ", title_);
  }

 private:
  const FillPattern pattern_;
  const std::string title_;
};

class FillEngine final : public Engine {
 public:
  explicit FillEngine(const Target& target) : gpu_(target.model) {}

  const char* name() const override { return "fill"; }

  bool claims(const Region& region, std::span<const Value> values,
              std::string* why) const override {
    FillPattern pattern;
    const char* reason = fill_refusal(region, values, pattern);
    if (reason != nullptr && why != nullptr) *why = reason;
    return reason == nullptr;
  }

  double estimate(const Region& region, std::span<const Value> values) const override {
    FillPattern pattern;
    fill_refusal(region, values, pattern);
    return microseconds(gpu_, {.bytes = static_cast<double>(pattern.bytes)});
  }

  std::unique_ptr<Kernel> prepare(const Region& region, std::span<const Value> values,
                                  int) const override {
    FillPattern pattern;
    fill_refusal(region, values, pattern);
    return std::make_unique<FillKernel>(pattern, region.title);
  }

 private:
  const GpuModel gpu_;
};

}  // namespace

const Engine& fill_engine(const Target& target) { return per_target<FillEngine>(target); }

}  // namespace tenon::cuda
