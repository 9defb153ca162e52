// The map engine: element-wise regions with reductions, computed tile by tile in cache.
#include <utility>

#include "cpu/cpu.h"
#include "cpu/engines/run/tile_program.h"
#include "cpu/kernels/formula/formula_loops.h"
#include "plan/program/formula_source.h"

namespace tenon::cpu {

namespace {

class MapKernel final : public Kernel {
 public:
  MapKernel(const Region& region, std::span<const Value> values, int threads)
      : program_(region.map, values, TileUse::LoopNest) {
    workspace_bytes = program_.workspace_bytes(threads);
  }
  void run(const Binding& binding) const override { program_.run(binding); }

 private:
  const TileProgram program_;
};

class MapEngine final : public Engine, public FormulaSource {
 public:
  const char* name() const override { return "map"; }
  bool claims(const Region& region, std::span<const Value>, std::string* why) const override {
    if (region.kind == RegionKind::Map) return tile_program_claims(region.map, false, why);
    if (why != nullptr) *why = "runs map regions only (element-wise operations and reductions)";
    return false;
  }
  Capabilities capabilities(const Region&, std::span<const Value>) const override {
    Capabilities can;
    can.no_slices = can.no_bands = nullptr;
    return can;
  }
  std::unique_ptr<Kernel> prepare(const Region& region, std::span<const Value> values,
                                  int threads) const override {
    return std::make_unique<MapKernel>(region, values, threads);
  }
  std::shared_ptr<const ElementCode> formula(std::string_view name,
                                             std::int64_t parameter) const override {
    const FormulaLoops* const loops = formula_loops(name, parameter);
    if (loops == nullptr) return nullptr;
    ElementCode code;
    code.f32 = loops->f32;
    code.f64 = loops->f64;
    return std::make_shared<const ElementCode>(std::move(code));
  }
};

}  // namespace

const Engine& map_engine() {
  static const MapEngine engine;
  return engine;
}

}  // namespace tenon::cpu
