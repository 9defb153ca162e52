// Backends behind their interface: a third backend needs nothing from the library but its
// registration, and one program may use several devices.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <tenon/compute.h>
#include <tenon/error.h>
#include <tenon/grad.h>
#include <tenon/nn.h>
#include <tenon/ops.h>
#include <tenon/optim.h>

#include "device/groups.h"
#include "null_backend.h"

using namespace tenon;
using namespace tenon::test;

namespace {

using Floats = std::vector<float>;

Tensor numbers(const Shape& shape, float factor = 0.1f) {
  Floats values(static_cast<std::size_t>(shape.numel()));
  for (std::size_t k = 0; k < values.size(); ++k)
    values[k] = factor * static_cast<float>(static_cast<int>(k * 7 % 13) - 6);
  return Tensor::from(values, shape);
}

// The losses of a two-layer network that trains on a device.
Floats losses_on(Device device) {
  const Tensor w = variable(to(numbers({4, 8}), device), "w"),
               v = variable(to(numbers({8, 1}, 0.2f), device), "v"),
               x = to(numbers({16, 4}, 0.3f), device), y = to(numbers({16, 1}), device);
  const CompiledFunction step = compile([&](const std::vector<Tensor>& in) {
    const Tensor loss = mean(square(matmul(relu(matmul(in[0], w)), v) - in[1]));
    const std::vector<Tensor> slopes = grad(loss, std::vector<Tensor>{w, v});
    return std::vector<Tensor>{loss, assign(w, w - slopes[0] * 0.1),
                               assign(v, v - slopes[1] * 0.1)};
  });
  Floats losses;
  for (int k = 0; k < 5; ++k) losses.push_back(step({x, y})[0].to_vector<float>()[0]);
  return losses;
}

int steps_of(const Plan& plan, const std::string& engine) {
  int count = 0;
  const std::string text = plan.engines();
  for (std::size_t at = text.find(engine); at != std::string::npos; at = text.find(engine, at + 1))
    ++count;
  return count;
}

}  // namespace

TEST_CASE("backends: a device of a third kind has a name, and errors say what is missing") {
  null_backend();
  CHECK(device("null:3").str() == "null:3");
  CHECK(device("null") == null_device(0));
  CHECK_THROWS_AS(device("null:4"), DeviceError);
  CHECK_THROWS_AS(device("nul:0"), ValueError);
  CHECK_THROWS_AS(backend_of({static_cast<Device::Kind>(9), 0}), DeviceError);
  register_backend(null_backend());  // again, which changes nothing
  NullBackend other;
  CHECK_THROWS_AS(register_backend(other), InternalError);
}

TEST_CASE("backends: a network trains on a third backend with the host's bits") {
  NullCounts& counts = null_backend().count(1);
  const NullCounts before = counts;
  set_engine("reference");
  const Floats expected = losses_on({});
  set_engine("fast");
  CHECK(losses_on(null_device(1)) == expected);
  CHECK(expected.back() < expected.front());
  CHECK(counts.replays - before.replays == 5);
  CHECK(counts.launches > before.launches);
  CHECK(counts.allocations > before.allocations);
  CHECK(counts.to_host - before.to_host == 5);
  clear_caches();
  CHECK(counts.in_use == before.in_use);
}

TEST_CASE("transfers: tensors made of numbers alone are computed on the device of to()") {
  null_backend();
  const Device there = null_device(1);
  const Tensor ramp = arange(0, 4),
               all[] = {zeros({3}), full({2, 2}, 1.5), scalar(7, DType::Int64),
                        ramp,       ramp * 2 + 1,      full({}, 0.1, DType::BFloat16)};
  for (const Tensor& x : all) {
    const Tensor moved = x.to(there);
    CHECK(moved.device() == there);
    CHECK(moved.compute().device() == there);
    CHECK(x.compute().device() == Device{});
    CHECK(moved.to(DType::Float64).to_vector<double>() == x.to(DType::Float64).to_vector<double>());
  }
  // Computes with tensors on its own device, and is refused beside tensors of another device.
  const Tensor x = numbers({3}).to(there), y = (x + ones({3}).to(there)).compute();
  CHECK(y.device() == there);
  CHECK(y.to_vector<float>() == (numbers({3}) + 1.0).to_vector<float>());
  CHECK_THROWS_AS(x + ones({3}).to(Device{}), DeviceError);
  CHECK(zeros({2}).to(there).to(Device{}).compute().device() == Device{});
  CHECK(variable(zeros({2}).to(there)).device() == there);
  // Another plain number is not another program.
  const RunnerStats before = runner_stats();
  for (int k = 0; k < 3; ++k) CHECK(scalar(0.5 + k).to(there).compute().item() == 0.5 + k);
  CHECK(runner_stats().programs_planned == before.programs_planned);
  // Gradients reach a tensor that was moved.
  const Tensor w = full({3}, 2.0), loss = sum(square(w.to(there)) * x);
  CHECK(grad(loss, w).to_vector<float>() == (x * 4.0).to_vector<float>());
}

TEST_CASE("backends: one program computes on the host and two devices, with transfers as steps") {
  const Device first = null_device(0), second = null_device(2);
  const Tensor a = numbers({5, 3}), w = variable(to(numbers({3, 4}), first), "w"),
               v = variable(to(numbers({4, 2}), second), "v");
  const auto body = [&](const std::vector<Tensor>& in) {
    const Tensor hidden = relu(matmul(to(in[0] * 2.0, first), w));
    const Tensor out = matmul(to(hidden, second), v);
    return std::vector<Tensor>{to(out, Device{}) + 1.0, sum(hidden), out};
  };
  const CompiledFunction f = compile(body);
  const Plan plan = f.plan({a});
  CHECK(steps_of(plan, "transfer ") == 3);
  CHECK(steps_of(plan, "call ") == 4);
  const NullCounts before = null_backend().count(2);
  for (int round = 0; round < 3; ++round) {
    const Tensor x = numbers({5, 3}, 0.1f * static_cast<float>(round + 1));
    const Outputs got = f({x});
    const std::vector<Tensor> expected = body({x});
    CHECK(got[0].device() == Device{});
    CHECK(got[1].device() == first);
    CHECK(got[2].device() == second);
    for (std::size_t k = 0; k < expected.size(); ++k)
      CHECK(got[k].to_vector<float>() == expected[k].to_vector<float>());
  }
  CHECK(null_backend().count(2).between - before.between >= 3);
}

TEST_CASE("backends: a step on two devices updates both, after all that read the old values") {
  const Device first = null_device(0), second = null_device(1);
  const auto losses = [&](Device front, Device back) {
    const Tensor w = variable(to(numbers({4, 8}), front), "w"),
                 v = variable(to(numbers({8, 1}, 0.2f), back), "v"),
                 x = to(numbers({16, 4}, 0.3f), front), y = to(numbers({16, 1}), back);
    const CompiledFunction step = compile([&](const std::vector<Tensor>& in) {
      const Tensor hidden = to(relu(matmul(in[0], w)), back);
      const Tensor loss = mean(square(matmul(hidden, v) - in[1]));
      const std::vector<Tensor> slopes = grad(loss, std::vector<Tensor>{w, v});
      return std::vector<Tensor>{assign(v, v - slopes[1] * 0.1), assign(w, w - slopes[0] * 0.1),
                                 loss};
    });
    Floats out;
    for (int k = 0; k < 5; ++k) out.push_back(step({x, y})[2].to_vector<float>()[0]);
    return out;
  };
  CHECK(losses(first, second) == losses(first, first));
  CHECK(losses(second, first) == losses(first, first));
}

TEST_CASE("backends: several runs in one call use their rows on every device") {
  const Device first = null_device(0), second = null_device(3);
  const CompiledFunction f = compile([&](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{to(to(in[0], first) * 3.0, second) + 1.0};
  });
  const Tensor x = numbers({4, 6});
  const Floats got = f.run_many(4, {x})[0].to_vector<float>();
  CHECK(got == (x * 3.0 + 1.0).to_vector<float>());
}

TEST_CASE("backends: members of a group exchange their values") {
  constexpr int kMembers = 3;
  const std::array<int, kMembers> indices{0, 1, 2};
  const std::unique_ptr<Communicator> group = null_backend().make_communicator(indices);
  REQUIRE(group->size() == kMembers);
  Floats given[kMembers], taken[kMembers];
  std::vector<Communicator::Part> parts;
  for (int r = 0; r < kMembers; ++r) {
    given[r] = {1.0f * static_cast<float>(r), 2, 3.0f - static_cast<float>(r)};
    taken[r].resize(9);
    parts.push_back({r, reinterpret_cast<const std::byte*>(given[r].data()),
                     reinterpret_cast<std::byte*>(taken[r].data()), nullptr});
  }
  const auto begin = [&](int r, std::size_t count) {
    return Floats(taken[r].begin(), taken[r].begin() + static_cast<std::ptrdiff_t>(count));
  };
  group->all_reduce(parts, 3, DType::Float32, Combine::Sum);
  for (int r = 0; r < kMembers; ++r) CHECK(begin(r, 3) == Floats{3, 6, 6});
  group->all_reduce(parts, 3, DType::Float32, Combine::Max);
  CHECK(begin(1, 3) == Floats{2, 2, 3});
  group->broadcast(parts, 3, DType::Float32, 2);
  CHECK(begin(0, 3) == Floats{2, 2, 1});
  CHECK(begin(2, 3) == Floats{2, 2, 3});  // the sender keeps its value
  group->all_gather(parts, 3, DType::Float32);
  CHECK(begin(1, 9) == Floats{0, 2, 3, 1, 2, 2, 2, 2, 1});
  group->reduce_scatter(parts, 1, DType::Float32, Combine::Sum);
  CHECK(taken[0][0] == 3);
  CHECK(taken[2][0] == 6);
  CHECK(backend_of(Device{}).make_communicator(indices) == nullptr);  // exchanges through the host
  const Device members[] = {Device{}, Device{}, Device{}};
  CHECK(make_staged_communicator(members)->size() == kMembers);
}

TEST_CASE("backends: a step of an optimizer is queued, and reading its loss is what waits") {
  const Device device = null_device(0);
  const auto losses = [](Device where, const auto& read) {
    Context context;
    context.device = where;
    const ContextScope scope(context);
    const Tensor w = variable(numbers({4, 1}), "w"), x = numbers({16, 4}, 0.3f);
    optim::Sgd sgd(std::vector<Tensor>{w}, {.lr = 0.1});
    std::vector<Tensor> out;
    for (int k = 0; k < 3; ++k) out.push_back(sgd.step(mean(square(matmul(x, w)))));
    read();
    Floats values;
    for (const Tensor& loss : out) values.push_back(loss.to_vector<float>()[0]);
    return values;
  };
  NullCounts& count = null_backend().count(0);
  int before = 0;
  const int at_start = count.to_host;
  const Floats found = losses(device, [&] { before = count.to_host; });
  CHECK(before == at_start);
  CHECK(count.to_host == at_start + 3);
  const Floats wanted = losses(Device(), [] {});
  for (std::size_t k = 0; k < 3; ++k) CHECK(found[k] == doctest::Approx(wanted[k]).epsilon(1e-6));
}
