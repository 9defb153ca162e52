// vmap() of every case against a loop over the samples: values, gradients inside the mapped
// function, and gradients through it. Axes and mapped inputs are drawn from the name of the case.
#include <doctest/doctest.h>

#include <algorithm>

#include <tenon/compute.h>
#include <tenon/error.h>
#include <tenon/grad.h>
#include <tenon/ops.h>
#include <tenon/vmap.h>

#include "base/philox.h"
#include "cases/modes.h"

using namespace tenon;

namespace cases {
namespace {

constexpr std::int64_t kSamples = 3;

/// How a case is mapped: the axis of each input, and of the output.
struct Mapping {
  explicit Mapping(const Case& c, std::uint64_t variant) : name_(number_of(c.name) + variant) {
    for (const In& in : c.inputs)
      options.in_axes.push_back(draw(4) == 0 ? kNotMapped
                                             : static_cast<int>(draw(in.shape.rank() + 1)));
    const auto mapped = [](int axis) { return axis != kNotMapped; };
    if (std::none_of(options.in_axes.begin(), options.in_axes.end(), mapped))
      options.in_axes[0] = 0;
    options.randomness = Randomness::Same;
  }
  std::uint64_t draw(std::uint64_t below) { return philox(name_, next_++, 3).v[0] % below; }
  bool is_mapped(std::size_t k) const { return options.in_axes[k] != kNotMapped; }

  VmapOptions options;

 private:
  std::uint64_t name_, next_ = 0;
};

/// The output, the gradients of a weighted sum, and second derivatives.
Tensors with_gradients(const Case& c, const Tensors& inputs) {
  Tensors out{c.build(inputs)};
  if (!c.grad || !is_floating(out[0].dtype())) return out;
  const Tensors targets = floating_only(inputs), first = grad(weighted(out[0], 5), targets);
  out.insert(out.end(), first.begin(), first.end());
  if (!c.grad2) return out;
  Tensor total = zeros({}, DType::Float64);
  for (std::size_t k = 0; k < first.size(); ++k) total = total + weighted(first[k], 50 + k);
  const Tensors second = grad(total, targets);
  out.insert(out.end(), second.begin(), second.end());
  return out;
}

/// Inputs of each sample. Inputs that are not mapped are those of sample 0.
std::vector<Tensors> samples_of(const Case& c, const Mapping& how) {
  std::vector<Tensors> samples;
  for (std::int64_t b = 0; b < kSamples; ++b) {
    samples.push_back(make_inputs(c, DType::Float64, 100 + 20 * static_cast<std::uint64_t>(b)));
    for (std::size_t k = 0; k < c.inputs.size(); ++k)
      if (!how.is_mapped(k)) samples[static_cast<std::size_t>(b)][k] = samples[0][k];
  }
  return samples;
}

Tensors stacked(const std::vector<Tensors>& samples, const Mapping& how) {
  Tensors stacks;
  for (std::size_t k = 0; k < samples[0].size(); ++k) {
    Tensors parts;
    for (const Tensors& sample : samples) parts.push_back(sample[k]);
    stacks.push_back(how.is_mapped(k) ? stack(parts, how.options.in_axes[k]).compute() : parts[0]);
  }
  return stacks;
}

Values numbers_of(const Tensors& tensors) {
  compute(tensors);
  Values out;
  for (const Tensor& t : tensors) out.push_back(numbers(t));
  return out;
}

bool has_room(const Tensor& x) { return x.rank() < 8; }

void check_mapped(const Case& c, std::uint64_t variant) {
  Mapping how(c, variant);
  const std::vector<Tensors> samples = samples_of(c, how);
  const Tensor one = c.build(samples[0]);
  if (!std::all_of(samples[0].begin(), samples[0].end(), has_room) || !has_room(one)) return;
  const double tolerance = std::max(c.tolerance64 * 100, 1e-10);
  const Tensors stacks = stacked(samples, how);

  std::vector<Tensors> each;
  for (const Tensors& sample : samples) each.push_back(with_gradients(c, sample));
  Tensors wanted;
  VmapOptions options = how.options;
  for (std::size_t r = 0; r < each[0].size(); ++r) {
    Tensors parts;
    for (const Tensors& sample : each) parts.push_back(sample[r]);
    options.out_axes.push_back(
        static_cast<int>(how.draw(static_cast<std::uint64_t>(each[0][r].rank()) + 1)));
    wanted.push_back(stack(parts, options.out_axes[r]));
  }
  const auto inside = vmap([&c](const Tensors& in) { return with_gradients(c, in); }, options);
  compare(c, numbers_of(inside(stacks)), numbers_of(wanted), tolerance);
  if (each[0].size() == 1) return;

  // Gradients through the mapped function: those of a sum over the samples.
  const auto through =
      vmap([&c](const Tensors& in) { return Tensors{weighted(c.build(in), 5)}; }, how.options);
  const Tensors targets = floating_only(stacks);
  Tensors sums;
  for (std::size_t k = 0, r = 0; k < stacks.size(); ++k) {
    if (!is_floating(stacks[k].dtype())) continue;
    Tensors parts;
    for (const Tensors& sample : each) parts.push_back(sample[r + 1]);
    ++r;
    sums.push_back(how.is_mapped(k) ? stack(parts, how.options.in_axes[k])
                                    : sum(stack(parts, 0), {0}));
  }
  Tensors all{sum(through(stacks)[0])};
  for (const Tensor& g : grad(all[0], targets)) all.push_back(g);
  all.erase(all.begin());
  compare(c, numbers_of(all), numbers_of(sums), tolerance);
}

}  // namespace

/// Runs the mode on every case but those that assign a variable, which vmap() refuses.
void each_mapped_case(const char* engine, std::uint64_t variant) {
  each_case([&](const Case& c) {
    set_engine(engine);
    if (c.inputs.empty()) return;
    if (c.name == "assign" || c.name == "with_updates")
      CHECK_THROWS_AS(check_mapped(c, variant), NotSupported);
    else
      check_mapped(c, variant);
  });
}

TEST_CASE("cases: vmap against a loop") { each_mapped_case("reference", 0); }
TEST_CASE("cases: vmap against a loop, other axes, fast engines") { each_mapped_case("fast", 1); }

}  // namespace cases
