// Errors that the final check of a program finds in plans that a pass has broken.
#include <doctest/doctest.h>

#include <tenon/error.h>
#include <tenon/ops.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <string>
#include <utility>

#include "base/contains.h"
#include "base/index.h"
#include "plan/steps/verify.h"
#include "planning.h"

using namespace tenon;
using namespace tenon::test;

namespace {

Program unprepared(const Program& p) {
  Program copy;
  copy.values = p.values;
  copy.outputs = p.outputs;
  copy.before = p.before;
  copy.order = p.order;
  for (const Step& step : p.steps) {
    copy.steps.emplace_back();
    copy.steps.back().region = step.region;
    copy.steps.back().engine = step.engine;
  }
  return copy;
}

/// A product with prologue and epilogue, a map over rows and a pooling.
Program sound() {
  const Tensor x = leaf({64, 120}), y = leaf({64, 120}), w = leaf({84, 120}), b = leaf({84});
  const Tensor made = relu(linear(x * y, w, b));
  const Tensor pooled = max_pool2d(reshape(made, {64, 1, 12, 7}));
  return unprepared(*planned({softmax(x), tanh(pooled)}));
}

Region& product(Program& p) {
  for (Step& step : p.steps)
    if (step.region.kind == RegionKind::Contraction && step.region.contraction.has_epilogue)
      return step.region;
  throw InternalError("no product with an epilogue");
}

void check_seen(const std::function<void(Program&)>& broken, const std::string& what) {
  Program p = sound();
  broken(p);
  try {
    verify_program(p);
    FAIL_CHECK("passed: " << what);
  } catch (const InternalError& e) {
    const std::string text = e.what();
    CAPTURE(text);
    CHECK(contains(text, what));
  }
}

}  // namespace

TEST_CASE("verify: a sound program passes") {
  const Program p = sound();
  CHECK_NOTHROW(verify_program(p));
}

TEST_CASE("verify: a prologue that replaced another no longer reads the other's operand") {
  check_seen(
      [](Program& p) {
        Region& r = product(p);
        REQUIRE(r.has_prologue());
        for (MapInstr& instr : r.prologue_a.instrs)
          if (instr.code == MapCode::Load) {
            instr.code = MapCode::Number;
            instr.view = View();
          }
        list_values(r, r.reads, r.writes);
      },
      "is read by no step");
}

TEST_CASE("verify: slices along an axis that a part does not have") {
  const Tensor x = leaf({67, 3, 80, 81});
  const Pool2dOptions window{.kernel = {3, 2}, .stride = {1, 1}};
  const Tensor rows = softmax(max_pool2d(x, window) * 2.0f, 3);
  const auto chained = planned({avg_pool2d(rows, window)}, {.kind = Device::Kind::Cpu});
  const auto check_refused = [&](const std::function<void(Region&)>& broken,
                                 const std::string& what) {
    Program p = unprepared(*chained);
    Region& chain = p.steps[0].region;
    REQUIRE(chain.kind == RegionKind::Chain);
    CHECK_NOTHROW(verify_program(p));
    broken(chain);
    std::string text;
    try {
      verify_program(p);
    } catch (const InternalError& e) {
      text = e.what();
    }
    CAPTURE(text);
    CHECK(contains(text, what));
  };
  const auto kernel = [](Region& chain) -> Region& {
    for (Region& part : chain.parts)
      if (part.kind == RegionKind::Map) return part;
    throw InternalError("no kernel");
  };
  check_refused([&](Region& chain) { kernel(chain).axis = 1; },
                "has another number of entries along the sliced axis");
  check_refused([&](Region& chain) { kernel(chain).axis = kMaxRank; }, "which does not exist");
  check_refused([](Region& chain) { chain.slice = 0; }, "takes 0 of 67 entries");
  check_refused([](Region& chain) { chain.samples = 66; }, "entries");
  check_refused([](Region& chain) { chain.parts.back().opaque.shapes[0][0] = 66; },
                "its engine does not run it");
}

TEST_CASE("verify: bands that no later part reads") {
  const Tensor x = leaf({2, 3, 300, 301}), filter = leaf({8, 3, 3, 3});
  const auto banded = planned({max_pool2d(relu(conv2d(x, filter)), {.kernel = {3, 3}}) * 2.0f},
                              {.kind = Device::Kind::Cpu});
  const auto check_refused = [&](const std::function<void(Program&, Region&)>& broken,
                                 const std::string& what) {
    Program p = unprepared(*banded);
    Region& chain = p.steps[0].region;
    REQUIRE(chain.band > 0);
    REQUIRE(chain.parts.size() == 3);
    CHECK_NOTHROW(verify_program(p));
    broken(p, chain);
    std::string text;
    try {
      verify_program(p);
    } catch (const InternalError& e) {
      text = e.what();
    }
    CAPTURE(text);
    CHECK(contains(text, what));
  };
  check_refused([](Program&, Region& chain) { chain.band = 1000; }, "takes 1000 of 99 rows");
  check_refused([](Program&, Region& chain) { chain.slice = 2; }, "rows at a time");
  check_refused([](Program&, Region& chain) { chain.parts[2].rows_axis = kMaxRank; },
                "has no axis for the rows of an image");
  check_refused([](Program&, Region& chain) { chain.parts[2].rows_axis = chain.parts[2].axis; },
                "takes 8 of 2 rows");
  check_refused([](Program&, Region& chain) { chain.parts[1].opaque.op = Op::MaxPool2dGrad; },
                "its engine does not run it");
  check_refused([](Program&, Region& chain) { chain.parts[0].contraction.attrs.conv.pad_h = 3; },
                "lie completely in the padding");
  check_refused(
      [](Program& p, Region& chain) {
        p.values[static_cast<std::size_t>(chain.local[1])].shape = Shape{2, 8, 33, 297};
      },
      "does not pass rows on");
}

TEST_CASE("verify: incomplete regions") {
  check_seen([](Program& p) { product(p).reads.pop_back(); }, "lists other values");
  check_seen([](Program& p) { product(p).writes.push_back(0); }, "lists other values");
  check_seen([](Program& p) { ++product(p).contraction.a.offset; }, "reaches elements");
  check_seen([](Program& p) { product(p).prologue_a.space = Shape{120, 64}; }, "prologue over");
  check_seen([](Program& p) { product(p).prologue_a.instrs[0].code = MapCode::Number; },
             "does not start from its operand");
  check_seen([](Program& p) { product(p).map.space = Shape{1, 84, 64}; }, "epilogue over");
  check_seen([](Program& p) { product(p).map.instrs[1].args[0] = 7; }, "before its argument");
  check_seen([](Program& p) { product(p).contraction.has_epilogue = false; },
             "incomplete epilogue");
}

namespace {

/// A map on a GPU that overwrites a value which it alone reads (plan/merge/overwrites.cpp): its
/// region, and the value.
struct Overwriting {
  Program program;
  std::size_t step = 0;
  ValueId value = kNoValue;

  Overwriting() {
    const Tensor table = leaf({7, 1031}), index = leaf({1 << 14}, DType::Int64),
                 places = leaf({40}, DType::Int64);
    const Tensor x = index_select(table, 0, index);
    program = unprepared(*planned({index_select(exp(x) + x, 0, places)}));
    for (std::size_t s = 0; s < program.steps.size(); ++s)
      for (const ValueId id : region(s).writes)
        if (region(s).kind == RegionKind::Map && tenon::contains(region(s).reads, id))
          step = s, value = id;
    REQUIRE(value != kNoValue);
  }
  Region& region(std::size_t s) { return program.steps[s].region; }
  Region& map() { return region(step); }
  std::string refusal() const {
    try {
      verify_program(program);
    } catch (const InternalError& e) {
      return e.what();
    }
    return "";
  }
};

}  // namespace

TEST_CASE("verify: a step that overwrites its operand") {
  CHECK(Overwriting().refusal().empty());
  const auto check_refused = [](const std::function<void(Overwriting&)>& broken,
                                const std::string& what) {
    Overwriting plan;
    broken(plan);
    const std::string text = plan.refusal();
    CAPTURE(text);
    CHECK(contains(text, what));
  };
  const auto load = [](Overwriting& plan) -> View& {
    for (MapInstr& instr : plan.map().map.instrs)
      if (instr.code == MapCode::Load && instr.view.value == plan.value) return instr.view;
    throw InternalError("no load");
  };
  const char* const kElsewhere = "where it still reads other elements";
  check_refused([&](Overwriting& p) { load(p).stride[p.map().map.space.rank() - 1] = 0; },
                kElsewhere);
  check_refused(
      [&](Overwriting& p) {
        View& view = load(p);
        const Shape& space = p.map().map.space;
        for (int d = 0; d < space.rank(); ++d) {
          view.offset += (space[d] - 1) * view.stride[d];
          view.stride[d] = -view.stride[d];
        }
      },
      kElsewhere);
  // Adds another reader of the value, which the map first does not wait for, and then does.
  const auto add_reader = [](Overwriting& p, bool waits) {
    Step reader;
    Region& r = reader.region;
    r.map.space = Shape{1};
    r.map.instrs.resize(1);
    r.map.instrs[0].view.value = p.value;
    Value made;
    made.shape = Shape{1};
    made.kind = Value::Kind::Output;
    r.map.stores.push_back({0, {}});
    r.map.stores[0].view.value = static_cast<ValueId>(p.program.values.size());
    p.program.values.push_back(made);
    list_values(r, r.reads, r.writes);
    p.program.outputs.push_back({r.writes[0], made.dtype, made.shape});
    const auto place = static_cast<std::ptrdiff_t>(p.step);
    const auto number = static_cast<int>(p.program.before.size());
    if (waits) p.program.before[at(p.program.order[p.step])].push_back(number);
    p.program.before.emplace_back();
    p.program.order.insert(p.program.order.begin() + place, number);
    p.program.steps.insert(p.program.steps.begin() + place, std::move(reader));
  };
  check_refused([&](Overwriting& p) { add_reader(p, false); }, ", which step ");
  Overwriting behind;
  add_reader(behind, true);
  CHECK(behind.refusal().empty());
  // An op with its own kernel may visit elements in any order.
  check_refused(
      [](Overwriting& p) {
        Region& last = p.program.steps.back().region;
        REQUIRE(last.kind == RegionKind::Opaque);
        last.opaque.outs.push_back(p.value);
        last.writes.push_back(p.value);
      },
      kElsewhere);
}

TEST_CASE("verify: a variable is written where it is read") {
  const Tensor w = variable(leaf({64, 64})), g = leaf({64, 64});
  for (const Device::Kind kind : {Device::Kind::Cpu, Device::Kind::Cuda}) {
    Program p = unprepared(*planned({assign(w, w - g * 0.1F)}, {.kind = kind}));
    CHECK_NOTHROW(verify_program(p));
    Region& update = p.steps[0].region;
    REQUIRE(update.kind == RegionKind::Map);
    for (MapInstr& instr : update.map.instrs)
      if (instr.code == MapCode::Load &&
          p.values[static_cast<std::size_t>(instr.view.value)].kind == Value::Kind::Variable)
        std::fill(std::begin(instr.view.stride), std::end(instr.view.stride), 0);
    CHECK_THROWS_WITH_AS(verify_program(p), doctest::Contains("where it still reads"),
                         InternalError);
  }
}

TEST_CASE("verify: values that are written too late, twice or over one another") {
  check_seen([](Program& p) { std::swap(p.steps[0], p.steps[1]); }, "before it is written");
  check_seen(
      [](Program& p) {
        Step again;
        again.region = p.steps[0].region;
        p.steps.push_back(std::move(again));
      },
      "a second time");
  check_seen(
      [](Program& p) {
        for (Value& v : p.values)
          if (v.kind == Value::Kind::Arena) v.kind = Value::Kind::Elided;
      },
      "has no memory");
  check_seen(
      [](Program& p) {
        for (Value& v : p.values)
          if (v.kind == Value::Kind::Arena) v.offset = 64;
      },
      "overlap in the arena");
}

namespace {

/// An addition whose shape is not that of its operands.
Tensor wrong_sum() {
  const Tensor x = leaf({2, 3});
  const Tensor operands[2] = {x, x};
  return make_node(Op::Add, DType::Float32, Shape{9}, {}, operands);
}

}  // namespace

TEST_CASE("verify: a graph pass that changes a requested tensor is named") {
  const Roots given({leaf({2, 3})}), other({leaf({3, 2})}), none(std::vector<Tensor>{});
  const PlanOptions options;
  CHECK_NOTHROW(verify_after({kShare}, given, given, options));
  CHECK_THROWS_WITH_AS(
      verify_after({kShare}, given, other, options),
      "after the pass share: a requested tensor was float32[2, 3] and is float32[3, 2]",
      InternalError);
  CHECK_THROWS_WITH_AS(verify_after({kShare}, given, none, options),
                       "after the pass share: 1 tensors were requested, and there are 0",
                       InternalError);
}

TEST_CASE("verify: a graph pass that makes a wrong node is named") {
  const Roots given({leaf({9})}), made({wrong_sum()});
  CHECK_THROWS_WITH_AS(verify_after({kDropNoops}, given, made, PlanOptions()),
                       doctest::Contains("after the pass drop_noops: add"), InternalError);
}

TEST_CASE("verify: a pass that shares a walk and makes a wrong node is named") {
  const Roots given({relu(leaf({2, 3}))});
  const NodeRule rules[] = {
      {kMergeViews, [](const Node& node, std::span<Node* const>) { return node.op == Op::Relu; },
       [](Node&, std::span<const Tensor>) {
         return leaf({3, 2});
       }}};
  const auto apply = [&](bool checks) {
    PassTally tally;
    const auto any = [](const Node&) { return true; };
    return apply_rules(given, PlanOptions(), any, rules, {tally, checks}).size();
  };
  CHECK(apply(false) == 1);
  CHECK_THROWS_WITH_AS(apply(true), "the pass merge_views replaces float32[2, 3] by float32[3, 2]",
                       InternalError);
}

TEST_CASE("verify: a pass over regions that loses a step is named") {
  Program p = sound();
  CHECK_NOTHROW(verify_after(kJoin, p));
  p.steps.pop_back();
  CHECK_THROWS_WITH_AS(verify_after(kJoin, p), doctest::Contains("after the pass join: value"),
                       InternalError);
}

TEST_CASE("verify: the planner checks after each pass if it is asked to") {
  // A wrong node that no pass rewrites, beside views of which a pass removes one.
  const std::vector<Tensor> roots{wrong_sum(), relu(reshape(reshape(leaf({2, 3}), {3, 2}), {6}))};
  const PassSet unchecked{kVerifyGraph};
  CHECK_THROWS_WITH_AS(planned(roots, {.disabled = unchecked, .checks_passes = true}),
                       doctest::Contains("after the pass merge_views: add"), InternalError);
}
