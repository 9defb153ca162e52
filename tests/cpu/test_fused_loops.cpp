// Fused loops: every form is found for its program, and computes the same bits as the program run
// operation by operation.
#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include "cpu/engines/run/tile_program.h"
#include "region_builders.h"

using namespace tenon;
using test::RegionCheck;

namespace {

constexpr DType F = DType::Float32, B = DType::BFloat16;

/// Builds the program that a form (tile_fused.h) describes, over [images, channels, pixels].
/// `rounded`: what its casts go to.
class Builder {
 public:
  Builder(RegionCheck& region, std::string form, DType rounded)
      : t_(region),
        form_(std::move(form)),
        rounded_(rounded),
        in_place_(form_.rfind('>') > form_.find('>')) {}

  void build() {
    while (at_ < form_.size()) {
      if (form_[at_++] == '+') {
        t_.reduce(expression(), Op::Sum, 0b101, F);
        REQUIRE(form_[at_++] == ';');
        continue;
      }
      const bool half = form_[at_++] == 'h';
      const int value = expression();
      if (in_place_) {
        const ValueId to = loaded_[stored_++];
        t_.overwritten(to);
        t_.store_to(value, t_.broadcast(to), to);
      } else {
        t_.store(half ? t_.compute(Op::Cast, B, value) : value);
      }
    }
  }

 private:
  int expression() {
    const char c = form_[at_];
    const bool leaf = at_ + 1 == form_.size() || form_[at_ + 1] == ',' || form_[at_ + 1] == ')' ||
                      form_[at_ + 1] == ';' || form_[at_ + 1] == '>';
    if (c == '#') {
      at_ += 2;
      return ended_[static_cast<std::size_t>(form_[at_ - 1] - '0')];
    }
    if (!leaf) return operation();
    ++at_;
    const Shape& space = t_.region.map.space;
    if (c == 'r') return t_.load(t_.leaf(F, {space[1], 1}));
    if (c == 'a') return end(t_.accumulator());
    loaded_.push_back(c == 'b' ? t_.leaf(DType::Bool, space, 0, 2)
                               : t_.leaf(c == 'h' ? B : F, space));
    const int value = t_.load(loaded_.back());
    return end(c == 'h' ? t_.compute(Op::Cast, F, value) : value);
  }

  int operation() {
    const std::size_t open = form_.find('(', at_);
    const std::string name = form_.substr(at_, open - at_);
    at_ = open + 1;
    int args[3] = {-1, -1, -1};
    for (int k = 0;; ++k) {
      args[k] = expression();
      if (form_[at_++] == ')') break;
    }
    if (name == "cast") {
      const int half = t_.compute(Op::Cast, rounded_, args[0]);
      return end(t_.compute(Op::Cast, F, half));
    }
    int op = 0;
    while (op_row(static_cast<Op>(op)).name != name) ++op;
    const DType dtype = static_cast<Op>(op) == Op::Le ? DType::Bool : F;
    return end(t_.compute(static_cast<Op>(op), dtype, args[0], args[1], args[2]));
  }

  int end(int value) {
    ended_.push_back(value);
    return value;
  }

  RegionCheck& t_;
  const std::string form_;
  const DType rounded_;
  const bool in_place_;  // several stores, which overwrite the first loaded value
  std::vector<ValueId> loaded_;
  std::size_t at_ = 0, stored_ = 0;
  std::vector<int> ended_;  // values, in order of their ends
};

/// A map, or a 1 x 1 convolution with the map as its epilogue. `beside` adds a store that no form
/// has.
RegionCheck region_of(const std::string& form, std::int64_t edge, bool beside,
                      std::int64_t channels = 6, DType rounded = B) {
  constexpr std::int64_t kImages = 3;
  const Shape x{kImages, 5, edge, edge}, w{channels, 5, 1, 1}, y{kImages, channels, edge, edge};
  const bool epilogue = form.find("(a)") != std::string::npos ||
                        form.find("(a,") != std::string::npos ||
                        form.find(",a)") != std::string::npos;
  RegionCheck t;
  if (epilogue) {
    t = test::contraction_of<RegionCheck>({x, w, y, F, F, F, F, Op::Conv2d}, test::natural(x),
                                          test::natural(w), false);
    t.region.contraction.attrs.conv = {1, 1, 0, 0, 1, 1, 1};
    t.region.contraction.has_epilogue = true;
  }
  t.region.title = "test";
  t.region.map.space = {kImages, channels, edge * edge};
  Builder(t, form, rounded).build();
  if (beside) t.store(t.number(1));
  return t;
}

const Engine& engine_of(const RegionCheck& t) {
  return t.region.kind == RegionKind::Contraction ? cpu::contraction_engine() : cpu::map_engine();
}

bool is_fused(const RegionCheck& t) {
  const bool epilogue = t.region.kind == RegionKind::Contraction;
  const cpu::TileUse use = epilogue ? cpu::TileUse::Epilogue : cpu::TileUse::LoopNest;
  return cpu::TileProgram(t.region.map, t.values, use).is_fused();
}

}  // namespace

TEST_CASE("fused loops: found, correct, with the bits of single operations") {
  const cpu::FusedLoops loops = cpu::fused_loops();
  struct Size {
    std::int64_t channels, edge;
  };
  for (int k = 0; k < loops.count; ++k) {
    const std::string form = loops.first[k].form;
    for (const Size& size : {Size{6, 4}, {16, 4}, {6, 7}, {6, 14}, {6, 21}, {6, 41}}) {
      CAPTURE(form);
      CAPTURE(size.channels);
      CAPTURE(size.edge);
      RegionCheck fused = region_of(form, size.edge, false, size.channels),
                  single = region_of(form, size.edge, true, size.channels);
      CHECK(is_fused(fused));
      CHECK(!is_fused(single));
      fused.check(engine_of(fused), 4e-3);
      const auto a = fused.run(engine_of(fused), 2), b = single.run(engine_of(single), 2);
      REQUIRE(b.size() == a.size() + 1);
      for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == b[i]);
    }
  }
}

TEST_CASE("fused loops: none for casts to types other than bfloat16") {
  const cpu::FusedLoops loops = cpu::fused_loops();
  for (int k = 0; k < loops.count; ++k) {
    const std::string form = loops.first[k].form;
    if (form.find("cast(") == std::string::npos) continue;
    for (const DType rounded : {DType::Float16, DType::Bool}) {
      CAPTURE(form);
      CAPTURE(rounded);
      RegionCheck t = region_of(form, 7, false, 6, rounded);
      CHECK(!is_fused(t));
      t.check(engine_of(t), 4e-3);
    }
  }
}
