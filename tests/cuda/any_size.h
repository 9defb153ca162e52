// Shared by the tests of matrix-product engines: an epilogue that reads a row and a matrix and
// stores two results, and an engine without its size threshold.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "device_check.h"
#include "plan/program/engine.h"

namespace tenon::test {

/// Adds tanh(result + bias) and (result + bias) * residual, in float32, to a product of rank 2
/// or 3.
inline void add_bias_and_tanh(DeviceCheck& t) {
  constexpr DType kFloat = DType::Float32;
  const Contraction& c = t.region.contraction;
  const int rank = c.out_shape.rank();
  const Shape space{rank == 3 ? c.out_shape[0] : 1, c.out_shape[rank - 2], c.out_shape[rank - 1]};
  t.region.contraction.has_epilogue = true;
  t.region.map.space = space;
  const int bias = t.load(t.leaf(kFloat, Shape{1, 1, space[2]}));
  const int residual = t.load(t.leaf(kFloat, space));
  const int sum = t.compute(Op::Add, kFloat, t.accumulator(kFloat), bias);
  t.store(t.compute(Op::Tanh, kFloat, sum));
  t.store(t.compute(Op::Mul, kFloat, sum, residual));
}

/// An engine without its size threshold: it prepares products of any size.
class AnySize final : public Engine {
 public:
  using Prepare = std::function<std::unique_ptr<Kernel>(const Region&, std::span<const Value>)>;
  AnySize(const char* name, Prepare prepare) : name_(name), prepare_(std::move(prepare)) {}
  const char* name() const override { return name_; }
  bool claims(const Region&, std::span<const Value>, std::string*) const override { return true; }
  std::unique_ptr<Kernel> prepare(const Region& region, std::span<const Value> values,
                                  int) const override {
    return prepare_(region, values);
  }

 private:
  const char* name_;
  Prepare prepare_;
};

}  // namespace tenon::test
