// Attention by the reference engine: one query at a time, by definition, in double.
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/index.h"
#include "cpu/engines/reference/reference.h"
#include "graph/node.h"

namespace tenon::cpu::reference {

namespace {

/// [batch, length, heads, size] (a mask: [batch, heads, queries, keys]), as the region reads it.
struct Operand {
  Array array;
  Shape shape;

  double at(std::int64_t b, std::int64_t i, std::int64_t h, std::int64_t e) const {
    return array.real_at(((b * shape[1] + i) * shape[2] + h) * shape[3] + e);
  }
};

class Attention {
 public:
  Attention(const Opaque& o, std::span<const Value> values, const Binding& binding)
      : o_(o), values_(values), binding_(binding), attrs_(o.attrs.as<AttentionAttrs>()) {
    q_ = operand(0), k_ = operand(1), v_ = operand(2);
    group_ = q_.shape[2] / k_.shape[2];
    const std::size_t mask = o.op == Op::AttentionGrad ? 6 : 3;
    if (o.inputs.size() > mask) mask_ = operand(mask);
  }

  void forward() {
    Array y(DType::Float64, heads() * v_.shape[3]), log(DType::Float64, heads());
    each_query([&](std::int64_t b, std::int64_t h, std::int64_t i) {
      const double sum = weigh(b, h, i);
      log.real[at((b * q_.shape[2] + h) * q_.shape[1] + i)] = sum;
      for (std::int64_t f = 0; f < v_.shape[3]; ++f) {
        double total = 0;
        for (std::int64_t j = 0; j < k_.shape[1]; ++j)
          total += p_[at(j)] * rounded(v_.at(b, j, h / group_, f));
        y.real[at(row(b, i, h) * v_.shape[3] + f)] = total;
      }
    });
    store(y, 0);
    store(log, 1);
  }

  void backward() {
    const Operand dy = operand(5);
    Array dq(DType::Float64, q_.shape.numel()), dk(DType::Float64, k_.shape.numel()),
        dv(DType::Float64, v_.shape.numel());
    std::vector<double> dp(at(k_.shape[1]));
    each_query([&](std::int64_t b, std::int64_t h, std::int64_t i) {
      weigh(b, h, i);
      const std::int64_t of = h / group_, size = q_.shape[3], value_size = v_.shape[3];
      double mean = 0;
      for (std::int64_t j = 0; j < k_.shape[1]; ++j) {
        dp[at(j)] = 0;
        for (std::int64_t f = 0; f < value_size; ++f)
          dp[at(j)] += rounded(dy.at(b, i, h, f)) * rounded(v_.at(b, j, of, f));
        mean += dp[at(j)] * p_[at(j)];
      }
      for (std::int64_t j = 0; j < k_.shape[1]; ++j) {
        const std::int64_t key = (b * k_.shape[1] + j) * k_.shape[2] + of;
        const double ds = p_[at(j)] * (dp[at(j)] - mean) * attrs_.scale;
        for (std::int64_t e = 0; e < size; ++e) {
          dq.real[at(row(b, i, h) * size + e)] += ds * rounded(k_.at(b, j, of, e));
          dk.real[at(key * size + e)] += ds * rounded(q_.at(b, i, h, e));
        }
        for (std::int64_t f = 0; f < value_size; ++f)
          dv.real[at(key * value_size + f)] += p_[at(j)] * rounded(dy.at(b, i, h, f));
      }
    });
    store(dq, 0);
    store(dk, 1);
    store(dv, 2);
  }

 private:
  Operand operand(std::size_t k) const {
    const ValueId id = o_.inputs[k];
    return {read(binding_.values[id], values_[at(id)].dtype, o_.shapes[k], o_.views[k]),
            o_.shapes[k]};
  }
  void store(const Array& array, std::size_t k) const {
    const ValueId id = o_.outs[k];
    if (id != kNoValue) write(convert(array, values_[at(id)].dtype), binding_, values_, id);
  }
  double rounded(double x) const {
    return attrs_.precision == Precision::Bf16 ? round_to(DType::BFloat16, x) : x;
  }
  std::int64_t heads() const { return q_.shape[0] * q_.shape[1] * q_.shape[2]; }
  std::int64_t row(std::int64_t b, std::int64_t i, std::int64_t h) const {
    return (b * q_.shape[1] + i) * q_.shape[2] + h;
  }

  template <class F>
  void each_query(F&& f) {
    for (std::int64_t b = 0; b < q_.shape[0]; ++b)
      for (std::int64_t h = 0; h < q_.shape[2]; ++h)
        for (std::int64_t i = 0; i < q_.shape[1]; ++i) f(b, h, i);
  }

  // The weights of one query, and its log-sum-exp.
  double weigh(std::int64_t b, std::int64_t h, std::int64_t i) {
    const std::int64_t keys = k_.shape[1];
    p_.assign(at(keys), 0);
    double largest = -HUGE_VAL;
    for (std::int64_t j = 0; j < keys; ++j) {
      double score = 0;
      for (std::int64_t e = 0; e < q_.shape[3]; ++e)
        score += rounded(q_.at(b, i, h, e)) * rounded(k_.at(b, j, h / group_, e));
      p_[at(j)] = seen(score * attrs_.scale, b, h, i, j);
      largest = std::isnan(p_[at(j)]) ? p_[at(j)] : std::max(largest, p_[at(j)]);
    }
    if (largest == -HUGE_VAL) {  // sees no key: its weights are 0
      p_.assign(at(keys), 0);
      return largest;
    }
    double sum = 0;
    for (double& p : p_) sum += p = std::exp(p - largest);
    for (double& p : p_) p /= sum;
    return largest + std::log(sum);
  }

  double seen(double score, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    if (attrs_.causal && j > i) return -HUGE_VAL;
    if (mask_.shape.rank() == 0) return score;
    const double mask = mask_.at(b, h, i, j);
    if (mask_.array.floating()) return score + mask;
    return mask != 0 ? score : -HUGE_VAL;
  }

  const Opaque& o_;
  const std::span<const Value> values_;
  const Binding& binding_;
  const AttentionAttrs attrs_;
  Operand q_, k_, v_, mask_;
  std::int64_t group_ = 1;
  std::vector<double> p_;
};

}  // namespace

void run_attention(const Opaque& o, std::span<const Value> values, const Binding& binding) {
  Attention attention(o, values, binding);
  o.op == Op::AttentionGrad ? attention.backward() : attention.forward();
}

}  // namespace tenon::cpu::reference
