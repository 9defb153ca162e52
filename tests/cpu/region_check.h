// Builds regions by hand and compares engines on them: poisoned outputs, relative norms, every
// instruction set, one to three threads with the same bits.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <vector>

#include "base/philox.h"
#include "base/thread_pool.h"
#include "cpu/cpu.h"
#include "cpu/kernels/isa.h"

namespace tenon::test {

/// The precision of a product that multiplies float32 operands in `compute`, or in TF32.
inline Precision precision_of(DType compute, bool tf32 = false) {
  if (tf32) return Precision::Tf32;
  return compute == DType::BFloat16  ? Precision::Bf16
         : compute == DType::Float16 ? Precision::Fp16
                                     : Precision::Fp32;
}

class RegionCheck {
 public:
  Region region;
  std::vector<Value> values;

  /// A leaf of random numbers: normal for floating-point dtypes, otherwise integers in [low, low +
  /// span).
  ValueId leaf(DType dtype, const Shape& shape, double low = -5, double span = 11) {
    const ValueId id = add(dtype, shape);
    auto& bytes = initial_[static_cast<std::size_t>(id)];
    if (is_floating(dtype)) {
      const std::int64_t kept = std::min(shape.numel(), std::int64_t{1} << 20);
      const std::vector<double>& numbers = first_normals(id, kept);
      for (std::int64_t i = 0; i < shape.numel(); ++i)
        set(bytes.data(), dtype, i,
            i < kept ? numbers[static_cast<std::size_t>(i)] : normal(id, i));
      return id;
    }
    for (std::int64_t i = 0; i < shape.numel(); ++i)
      set(bytes.data(), dtype, i, std::floor(low + span * uniform(id, i, 0)));
    return id;
  }
  ValueId leaf_of(DType dtype, const Shape& shape, const std::vector<double>& numbers) {
    const ValueId id = add(dtype, shape);
    for (std::size_t i = 0; i < numbers.size(); ++i)
      set(initial_[static_cast<std::size_t>(id)].data(), dtype, static_cast<std::int64_t>(i),
          numbers[i]);
    return id;
  }
  ValueId output(DType dtype, const Shape& shape) {
    const ValueId id = add(dtype, shape);
    auto& bytes = initial_[static_cast<std::size_t>(id)];
    std::fill(bytes.begin(), bytes.end(), std::byte{0xAB});
    outputs_.push_back(id);
    return id;
  }
  /// Marks a leaf as also written.
  void overwritten(ValueId id) { outputs_.push_back(id); }
  std::byte* initial(ValueId id) { return initial_[static_cast<std::size_t>(id)].data(); }

  // ---- Map regions
  int load(ValueId value, const View* view = nullptr, bool per_row = false) {
    MapInstr instr;
    instr.dtype = values[static_cast<std::size_t>(value)].dtype;
    instr.view = view != nullptr ? *view : broadcast(value);
    instr.view.value = value;
    instr.per_row = per_row;
    return push(instr);
  }
  int number(double f, DType dtype = DType::Float32) {
    MapInstr instr;
    instr.code = MapCode::Number;
    instr.dtype = dtype;
    instr.attrs = ConstantAttrs{f};
    return push(instr);
  }
  int accumulator(DType dtype = DType::Float32) {
    MapInstr instr;
    instr.code = MapCode::Accumulator;
    instr.dtype = dtype;
    return push(instr);
  }
  int affine(const View& view, DType dtype) {
    MapInstr instr;
    instr.code = MapCode::Affine;
    instr.dtype = dtype;
    instr.view = view;
    return push(instr);
  }
  int random(ValueId state, std::int64_t kind, DType dtype, std::int64_t offset) {
    MapInstr instr;
    instr.code = MapCode::Random;
    instr.op = Op::Random;
    instr.dtype = dtype;
    instr.attrs = RandomAttrs{static_cast<RandomKind>(kind), offset};
    instr.view.value = state;
    return push(instr);
  }
  int compute(Op op, DType dtype, int a, int b = -1, int c = -1) {
    MapInstr instr;
    instr.code = MapCode::Compute;
    instr.op = op;
    instr.dtype = dtype;
    const int args[3] = {a, b, c};
    bool per_row = true;
    for (int k = 0; k < 3; ++k) {
      instr.args[k] = args[k];
      if (args[k] >= 0) {
        const MapInstr& arg = region.map.instrs[static_cast<std::size_t>(args[k])];
        per_row = per_row && (arg.per_row || arg.code == MapCode::Number);
      }
    }
    instr.per_row = per_row && region.map.has_rows && any_row({a, b, c});
    return push(instr);
  }
  int row_reduce(Op op, int a, DType dtype) {
    MapInstr instr;
    instr.code = MapCode::RowReduce;
    instr.op = op;
    instr.dtype = dtype;
    instr.args[0] = a;
    instr.per_row = true;
    region.map.has_rows = true;
    return push(instr);
  }
  /// Stores to a new output over the whole iteration space (or one element per row).
  ValueId store(int source) {
    const MapInstr& instr = region.map.instrs[static_cast<std::size_t>(source)];
    Shape shape = region.map.space;
    if (instr.per_row && shape.rank() > 0) shape[shape.rank() - 1] = 1;
    const ValueId id = output(instr.dtype, shape);
    region.map.stores.push_back({source, broadcast(id)});
    return id;
  }
  void store_to(int source, View view, ValueId value) {
    view.value = value;
    region.map.stores.push_back({source, view});
  }
  ValueId reduce(int source, Op op, std::uint32_t axes, DType dtype) {
    Shape shape;
    for (int d = 0; d < region.map.space.rank(); ++d)
      if (((axes >> d) & 1u) == 0) shape.push_back(region.map.space[d]);
    const ValueId id = output(dtype, shape);
    region.map.reduces.push_back({source, op, axes, id});
    return id;
  }
  /// The value's own contiguous strides in the iteration space, aligned at the last axis; 0 where
  /// its size is 1.
  View broadcast(ValueId value) const {
    View view;
    view.value = value;
    const Shape& shape = values[static_cast<std::size_t>(value)].shape;
    std::int64_t stride = 1;
    const int shift = region.map.space.rank() - shape.rank();
    for (int d = shape.rank() - 1; d >= 0; --d) {
      view.stride[d + shift] = shape[d] == 1 ? 0 : stride;
      stride *= shape[d];
    }
    return view;
  }

  /// Runs the region on both engines in every configuration and compares the outputs.
  void check(const Engine& engine, double tolerance = 1e-5) {
    std::string why;
    const bool claimed = engine.claims(region, values, &why);
    CHECK_MESSAGE(claimed, why);
    if (!claimed) return;
    const auto expected = run(cpu::reference_engine(), 1);
    const int threads_before = num_threads();
    for (const cpu::Isa isa : {cpu::Isa::Base, cpu::Isa::Avx2, cpu::Isa::Amx}) {
      cpu::set_isa_limit(isa);
      std::vector<std::vector<std::byte>> first;
      for (int threads = 1; threads <= 3; ++threads) {
        set_num_threads(threads);
        auto got = run(engine, threads);
        if (threads == 1) {
          first = got;
          for (std::size_t k = 0; k < outputs_.size(); ++k)
            compare(outputs_[k], expected[k], got[k], tolerance);
        } else {
          CHECK(got == first);
        }
      }
    }
    cpu::set_isa_limit(cpu::Isa::Amx);
    set_num_threads(threads_before);
  }

  /// Bytes of the outputs after a run.
  std::vector<std::vector<std::byte>> run(const Engine& engine, int threads) const {
    const auto kernel = engine.prepare(region, values, threads);
    auto memory = initial_;
    std::vector<std::byte*> pointers;
    for (auto& bytes : memory) pointers.push_back(bytes.data());
    const std::align_val_t align{64};
    auto* workspace = static_cast<std::byte*>(::operator new(kernel->workspace_bytes + 64, align));
    std::memset(workspace, 0xCD, kernel->workspace_bytes + 64);
    const Binding binding{pointers.data(), workspace};
    try {
      kernel->run(binding);
    } catch (...) {
      ::operator delete(workspace, align);
      throw;
    }
    bool guard = true;
    for (std::size_t i = 0; i < 64; ++i)
      guard = guard && workspace[kernel->workspace_bytes + i] == std::byte{0xCD};
    CHECK(guard);
    ::operator delete(workspace, align);
    std::vector<std::vector<std::byte>> result;
    for (const ValueId id : outputs_) result.push_back(memory[static_cast<std::size_t>(id)]);
    return result;
  }

 protected:
  ValueId add(DType dtype, const Shape& shape) {
    Value value;
    value.kind = Value::Kind::Leaf;
    value.dtype = dtype;
    value.shape = shape;
    value.bytes = shape.numel() * static_cast<std::int64_t>(item_size(dtype));
    values.push_back(value);
    initial_.emplace_back(static_cast<std::size_t>(value.bytes));
    return static_cast<ValueId>(values.size()) - 1;
  }
  int push(const MapInstr& instr) {
    region.map.instrs.push_back(instr);
    return static_cast<int>(region.map.instrs.size()) - 1;
  }
  bool any_row(std::initializer_list<int> args) const {
    return std::any_of(args.begin(), args.end(), [this](int a) {
      return a >= 0 && region.map.instrs[static_cast<std::size_t>(a)].per_row;
    });
  }

  /// Uniform in (0, 1). A leaf has two numbers at each position i; `which` selects one.
  static double uniform(ValueId id, std::int64_t i, int which) {
    const Philox4 words = philox(77, static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(id));
    return static_cast<double>(uniform01(words.v[which]));
  }
  static double normal(ValueId id, std::int64_t i) {
    return std::sqrt(-2 * std::log(1 - uniform(id, i, 0))) * std::cos(6.28 * uniform(id, i, 1));
  }
  /// At least `count` normal numbers. They are cached: every region uses the same ones, and
  /// computing them takes longer than most engines need.
  static const std::vector<double>& first_normals(ValueId id, std::int64_t count) {
    static std::map<ValueId, std::vector<double>> all;
    std::vector<double>& numbers = all[id];
    for (auto i = static_cast<std::int64_t>(numbers.size()); i < count; ++i)
      numbers.push_back(normal(id, i));
    return numbers;
  }

  static void set(std::byte* data, DType dtype, std::int64_t i, double number) {
    const auto put = [&](auto value) {
      std::memcpy(data + i * static_cast<std::int64_t>(sizeof value), &value, sizeof value);
    };
    switch (dtype) {
      case DType::Bool:
        return put(static_cast<std::uint8_t>(number > 0));
      case DType::UInt8:
        return put(static_cast<std::uint8_t>(static_cast<int>(number)));
      case DType::Int8:
        return put(static_cast<std::int8_t>(number));
      case DType::Int32:
        return put(static_cast<std::int32_t>(number));
      case DType::Int64:
        return put(static_cast<std::int64_t>(number));
      case DType::Float16:
        return put(float16(static_cast<float>(number)));
      case DType::BFloat16:
        return put(bfloat16(static_cast<float>(number)));
      case DType::Float32:
        return put(static_cast<float>(number));
      case DType::Float64:
        return put(number);
    }
  }
  static double get(const std::byte* data, DType dtype, std::int64_t i) {
    const auto take = [&](auto value) {
      std::memcpy(&value, data + i * static_cast<std::int64_t>(sizeof value), sizeof value);
      return value;
    };
    switch (dtype) {
      case DType::Bool:
      case DType::UInt8:
        return take(std::uint8_t());
      case DType::Int8:
        return take(std::int8_t());
      case DType::Int32:
        return take(std::int32_t());
      case DType::Int64:
        return static_cast<double>(take(std::int64_t()));
      case DType::Float16:
        return static_cast<double>(static_cast<float>(take(float16())));
      case DType::BFloat16:
        return static_cast<double>(static_cast<float>(take(bfloat16())));
      case DType::Float32:
        return static_cast<double>(take(float()));
      case DType::Float64:
        return take(double());
    }
    return 0;
  }

  void compare(ValueId id, const std::vector<std::byte>& expected,
               const std::vector<std::byte>& got, double tolerance) const {
    const Value& value = values[static_cast<std::size_t>(id)];
    if (!is_floating(value.dtype)) {
      CHECK_MESSAGE(expected == got, "value " << id);
      return;
    }
    double difference = 0, norm = 0;
    int mismatches = 0;
    for (std::int64_t i = 0; i < value.shape.numel(); ++i) {
      const double a = get(expected.data(), value.dtype, i), b = get(got.data(), value.dtype, i);
      if (std::isnan(a) || std::isnan(b) || std::isinf(a) || std::isinf(b)) {
        mismatches += !(a == b || (std::isnan(a) && std::isnan(b)));
        continue;
      }
      difference += (a - b) * (a - b);
      norm += a * a;
    }
    const double half = value.dtype == DType::Float16    ? 2e-3
                        : value.dtype == DType::BFloat16 ? 1.6e-2
                                                         : 0;
    CHECK_MESSAGE(mismatches == 0, "value " << id);
    const double relative = std::sqrt(difference) / (std::sqrt(norm) + 1e-30);
    CHECK_MESSAGE(relative <= std::max(tolerance, half),
                  "value " << id << " relative error " << relative);
  }

  std::vector<std::vector<std::byte>> initial_;
  std::vector<ValueId> outputs_;
};

}  // namespace tenon::test
