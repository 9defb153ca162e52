// The reference engine: runs every region by plain loops. The other engines are checked against it.
#include <vector>

#include "cpu/cpu.h"
#include "cpu/engines/reference/reference.h"

namespace tenon::cpu {

namespace {

class ReferenceKernel final : public Kernel {
 public:
  ReferenceKernel(const Region& region, std::span<const Value> values)
      : region_(region), values_(values.begin(), values.end()) {}

  void run(const Binding& binding) const override {
    switch (region_.kind) {
      case RegionKind::Map:
        return reference::run_map(region_.map, values_, binding, nullptr);
      case RegionKind::Contraction:
        return reference::run_contraction(region_, values_, binding);
      case RegionKind::Opaque:
        return reference::run_opaque(region_, values_, binding);
      case RegionKind::Joined:
      case RegionKind::Chain:
        break;  // not claimed
    }
  }

 private:
  const Region region_;
  const std::vector<Value> values_;
};

class ReferenceEngine final : public Engine {
 public:
  const char* name() const override { return "reference"; }
  bool claims(const Region& region, std::span<const Value>, std::string* why) const override {
    if (region.kind == RegionKind::Joined || region.kind == RegionKind::Chain) {
      *why = "runs single regions only, not several in one step";
      return false;
    }
    if (region.kind != RegionKind::Opaque || reference::knows_opaque(region.opaque.op)) return true;
    *why = "does not run this operation as a step of its own";
    return false;
  }
  Capabilities capabilities(const Region&, std::span<const Value>) const override {
    Capabilities can;
    can.no_prologues = nullptr;
    return can;
  }
  std::unique_ptr<Kernel> prepare(const Region& region, std::span<const Value> values,
                                  int) const override {
    return std::make_unique<ReferenceKernel>(region, values);
  }
};

}  // namespace

const Engine& reference_engine() {
  static const ReferenceEngine engine;
  return engine;
}

}  // namespace tenon::cpu
