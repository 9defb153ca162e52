// Collectives and transfers as steps of programs: through a backend's own group, through the host
// for devices of several backends, and as plain arithmetic if members share a device.
#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

#include <tenon/error.h>
#include <tenon/eval.h>
#include <tenon/grad.h>
#include <tenon/ops.h>

#include "null_backend.h"

using namespace tenon;
using namespace tenon::test;

namespace {

using Floats = std::vector<float>;
using Tensors = std::vector<Tensor>;

Tensor numbers(const Shape& shape, int seed) {
  Floats values(static_cast<std::size_t>(shape.numel()));
  for (std::size_t k = 0; k < values.size(); ++k)
    values[k] = 0.1f * static_cast<float>(static_cast<int>((k + 1) * 7 % 13) * (seed + 1) % 11 - 5);
  return Tensor::from(values, shape);
}

std::vector<Device> null_devices(int count) {
  std::vector<Device> devices;
  for (int k = 0; k < count; ++k) devices.push_back(null_device(k));
  return devices;
}

Tensors on(const std::vector<Device>& devices, const Shape& shape) {
  Tensors parts;
  for (std::size_t k = 0; k < devices.size(); ++k)
    parts.push_back(to(numbers(shape, static_cast<int>(k)), devices[k]).eval());
  return parts;
}

std::vector<Floats> values(const Tensors& tensors) {
  std::vector<Floats> out;
  out.reserve(tensors.size());
  for (const Tensor& t : tensors) out.push_back(t.to_vector<float>());
  return out;
}

int count_of(const std::string& text, const std::string& word) {
  int count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    ++count;
  return count;
}

// Each collective on parts, computed from their values alone.
Tensors all_of_them(const Tensors& parts, const std::vector<Device>& devices) {
  Tensors out;
  for (const Tensors& some : {all_reduce(parts), all_reduce(parts, Reduction::Mean),
                              all_gather(parts), reduce_scatter(parts),
                              reduce_scatter(parts, Reduction::Mean), broadcast(parts[1], devices)})
    out.insert(out.end(), some.begin(), some.end());
  return out;
}

}  // namespace

TEST_CASE("collectives: groups of two and four devices equal members on one device") {
  for (const int count : {2, 4}) {
    CAPTURE(count);
    const std::vector<Device> devices = null_devices(count),
                              one(static_cast<std::size_t>(count), Device{});
    const Shape shape{4, 3};
    const Tensors expected = all_of_them(on(one, shape), one);
    const Tensors parts = on(devices, shape);
    const auto body = [&](const Tensors& in) { return all_of_them(in, devices); };
    const Tensors eager = body(parts);
    eval(eager);
    CHECK(values(eager) == values(expected));
    const CompiledFunction f = compile(body);
    for (int round = 0; round < 2; ++round) {
      const Outputs got = f(parts);
      REQUIRE(got.size() == expected.size());
      for (std::size_t k = 0; k < got.size(); ++k) {
        CHECK(got[k].device() == devices[k % devices.size()]);
        CHECK(got[k].shape() == expected[k].shape());
        CHECK(got[k].to_vector<float>() == expected[k].to_vector<float>());
      }
    }
    CHECK(count_of(f.plan(parts).engines(), "collective ") == 6);
  }
}

TEST_CASE("collectives: the backend creates a group once; sums are in rank order") {
  const std::vector<Device> devices{null_device(3), null_device(1)};
  const NullCounts before = null_backend().count(3);
  const Tensors parts{to(Tensor::from(Floats{1e8f, 1}, {2}), devices[0]),
                      to(Tensor::from(Floats{-1e8f, 2}, {2}), devices[1])};
  for (int round = 0; round < 3; ++round) CHECK(values(all_reduce(parts))[1] == Floats{0, 3});
  CHECK(null_backend().count(3).collectives - before.collectives >= 3);
  CHECK(null_backend().count(3).groups - before.groups == 1);
}

TEST_CASE("collectives: sums of integers wrap around") {
  const std::vector<Device> devices{null_device(0),
                                    device("cpu")};  // these exchange through the host
  const auto sum_of = [&](const Tensor& a, const Tensor& b) {
    return all_reduce(Tensors{to(a, devices[0]), to(b, devices[1])})[1];
  };
  using Words = std::vector<std::int32_t>;
  using Longs = std::vector<std::int64_t>;
  const std::int32_t word = std::numeric_limits<std::int32_t>::max();
  const std::int64_t wide = std::numeric_limits<std::int64_t>::max();
  CHECK(sum_of(Tensor::from(Words{word, -word}, {2}), Tensor::from(Words{2, -3}, {2}))
            .to_vector<std::int32_t>() == Words{-word, word - 1});
  CHECK(sum_of(Tensor::from(Longs{wide, -wide}, {2}), Tensor::from(Longs{2, -3}, {2}))
            .to_vector<std::int64_t>() == Longs{-wide, wide - 1});
}

TEST_CASE("collectives: steps on each device count as part of the program") {
  clear_caches();
  const std::vector<Device> devices{null_device(0), null_device(1)};
  const auto bytes_of = [&](int products) {
    const std::int64_t before = cache_stats().programs.bytes;
    Tensors parts = on(devices, {4, 4});
    for (Tensor& part : parts)
      for (int k = 0; k < products; ++k) part = matmul(part, part);
    eval(all_reduce(parts));
    return cache_stats().programs.bytes - before;
  };
  const std::int64_t few = bytes_of(2);
  CHECK(bytes_of(22) > few + std::int64_t{2} * 20 * 4096);
}

TEST_CASE("collectives: gradients reach every member's part through the group") {
  const auto gradients = [](const std::vector<Device>& devices, int which) {
    const Shape shape{4, 2};
    Tensors w;
    for (const Tensor& part : on(devices, shape)) w.push_back(variable(part));
    const auto body = [&](const Tensors&) {
      Tensors parts, results;
      for (const Tensor& v : w) parts.push_back(square(v));
      if (which == 0) results = all_reduce(parts, Reduction::Mean);
      if (which == 1) results = all_gather(parts);
      if (which == 2) results = reduce_scatter(parts);
      if (which == 3) results = broadcast(parts[0], devices);
      // Each result has a weight of its own; the last one is not read.
      Tensor loss = sum(results[0] * 0.5);
      for (std::size_t k = 1; k + 1 < results.size(); ++k)
        loss = loss + to(sum(square(results[k])), devices[0]);
      return grad(loss, which == 3 ? Tensors{w[0]} : w);
    };
    const Outputs out = compile(body)({});
    return values(Tensors(out.begin(), out.end()));
  };
  for (int which = 0; which < 4; ++which) {
    CAPTURE(which);
    const std::vector<Floats> got = gradients(null_devices(4), which),
                              expected = gradients(std::vector<Device>(4), which);
    REQUIRE(got.size() == expected.size());
    for (std::size_t k = 0; k < got.size(); ++k)
      for (std::size_t j = 0; j < got[k].size(); ++j)
        CHECK(got[k][j] == doctest::Approx(expected[k][j]).epsilon(1e-5));
  }
}

TEST_CASE("collectives: data-parallel training equals training on the whole batch") {
  constexpr int kMembers = 4, kSteps = 6;
  const Tensor x = numbers({16, 4}, 2), y = numbers({16, 1}, 1), start = numbers({4, 1}, 3);
  const auto slope = [](const Tensor& w, const Tensor& in, const Tensor& out) {
    return grad(mean(square(matmul(in, w) - out)), w);
  };
  const Tensor whole = variable(start);
  const CompiledFunction alone = compile([&](const Tensors& in) {
    return Tensors{assign(whole, whole - slope(whole, in[0], in[1]) * 0.1)};
  });
  const std::vector<Device> devices = null_devices(kMembers);
  Tensors replicas, data;
  for (int k = 0; k < kMembers; ++k) {
    const Device device = devices[static_cast<std::size_t>(k)];
    replicas.push_back(variable(to(start, device)));
    data.push_back(to(slice(x, 0, 4 * k, 4 * k + 4), device));
    data.push_back(to(slice(y, 0, 4 * k, 4 * k + 4), device));
  }
  const CompiledFunction together = compile([&](const Tensors& in) {
    Tensors slopes, out;
    for (std::size_t k = 0; k < replicas.size(); ++k)
      slopes.push_back(slope(replicas[k], in[2 * k], in[2 * k + 1]));
    slopes = all_reduce(slopes, Reduction::Mean);
    for (std::size_t k = 0; k < replicas.size(); ++k)
      out.push_back(assign(replicas[k], replicas[k] - slopes[k] * 0.1));
    return out;
  });
  for (int step = 0; step < kSteps; ++step) {
    alone({x, y});
    together(data);
  }
  const Floats expected = whole.to_vector<float>(), first = replicas[0].to_vector<float>();
  for (const Tensor& w : replicas) CHECK(w.to_vector<float>() == first);  // the same bits
  for (std::size_t k = 0; k < first.size(); ++k)
    CHECK(first[k] == doctest::Approx(expected[k]).epsilon(1e-5));
}

TEST_CASE("collectives: devices of two backends exchange through the host, in every dtype") {
  const std::vector<Device> devices{null_device(0), Device{}, null_device(1)},
      one(devices.size(), Device{});
  for (const DType dtype : {DType::Float64, DType::Float32, DType::Float16, DType::BFloat16,
                            DType::Int64, DType::Int32, DType::Int8, DType::UInt8}) {
    CAPTURE(name(dtype));
    const auto results = [&](const std::vector<Device>& where) {
      Tensors parts;
      for (std::size_t k = 0; k < where.size(); ++k)
        parts.push_back(to(
            cast(round(abs(numbers({3, 5}, static_cast<int>(k))) * 10.0), dtype).eval(), where[k]));
      Tensors out = all_reduce(parts);
      for (const Tensors& more : {all_gather(parts), reduce_scatter(parts)})
        out.insert(out.end(), more.begin(), more.end());
      Tensors home;
      for (const Tensor& t : out) {
        CHECK(t.dtype() == dtype);
        home.push_back(cast(to(t, Device{}), DType::Float32));
      }
      return values(home);
    };
    CHECK(results(devices) == results(one));
  }
  const Tensors empty = all_reduce(on(devices, {0, 3}));
  CHECK(empty[2].to_vector<float>().empty());
}

TEST_CASE("collectives: unsupported exchanges are refused with a message") {
  const std::vector<Device> devices = null_devices(3);
  const Tensors parts = on(devices, {4, 3});
  const auto says = [](const auto& call, const std::string& words) {
    try {
      call();
    } catch (const Error& error) {
      return std::string(error.what()).find(words) != std::string::npos;
    }
    return false;
  };
  CHECK(says([] { all_reduce({}); }, "all_reduce: there are no parts"));
  CHECK(says(
      [&] {
        all_reduce(Tensors{parts[0], parts[0], parts[1]});
      },
      "all_reduce: 3 members on 2 devices"));
  CHECK(says([&] { reduce_scatter(parts); },
             "reduce_scatter: 3 members cannot share the first axis of [4, 3] evenly"));
  CHECK(says([&] { all_reduce(parts, Reduction::None); }, "combines nothing"));
  CHECK(says([&] { broadcast(numbers({2}, 0), devices); },
             "broadcast: the tensor is on cpu, which is not a member of the group"));
  CHECK_THROWS_AS(all_reduce(Tensors{parts[0], to(numbers({3, 4}, 1), devices[1])}), ShapeError);
  CHECK_THROWS_AS(all_gather(Tensors{to(sum(parts[0]), devices[0])}), ShapeError);
  CHECK_THROWS_AS(all_reduce(Tensors{parts[0] > 0.0, parts[1] > 0.0}), DTypeError);
  CHECK_THROWS_AS(all_reduce(Tensors{cast(parts[0], DType::Int32), cast(parts[1], DType::Int32)},
                             Reduction::Mean),
                  DTypeError);
}

TEST_CASE("transfers: eval() makes one program of a graph on several devices and reuses it") {
  const Device first = null_device(0), second = null_device(1);
  const auto build = [&](const Tensor& x) {
    const Tensor there = relu(to(x * 2.0, first)) + 1.0;
    return Tensors{sum(to(there, second) * 3.0), to(there, Device{}), x + 1.0, arange(0, 3)};
  };
  const auto run = [&](const Shape& shape) {
    const Tensors made = build(numbers(shape, 1));
    eval(made);
    CHECK(made[0].device() == second);
    CHECK(made[1].device() == Device{});
    return std::pair(made[0].to_vector<float>(), made[1].to_vector<float>());
  };
  const auto expected = [&](const Shape& shape) {
    const Tensor there = relu(numbers(shape, 1) * 2.0) + 1.0;
    return std::pair(sum(there * 3.0).to_vector<float>(), there.to_vector<float>());
  };
  clear_caches();
  const RunnerStats before = runner_stats();
  CHECK(run({5, 3}) == expected({5, 3}));
  const RunnerStats once = runner_stats();
  CHECK(run({5, 3}) == expected({5, 3}));
  CHECK(runner_stats().programs_planned == once.programs_planned);
  CHECK(runner_stats().programs_run - once.programs_run == 4);  // two of each pair are numbers
  CHECK(once.programs_planned > before.programs_planned);
  // The same graph on other devices is another program.
  const Tensor x = numbers({5, 3}, 1);
  const Tensor a = to(to(x, first) + 1.0, Device{}), b = to(to(x, second) + 1.0, Device{});
  CHECK(a.to_vector<float>() == b.to_vector<float>());
}

TEST_CASE("transfers: eval() runs assignments on the variables' devices") {
  const Device first = null_device(0), second = null_device(1);
  const Tensor w = variable(to(numbers({3}, 1), first), "w"),
               v = variable(to(numbers({3}, 2), second), "v");
  const Floats old_w = w.to_vector<float>(), old_v = v.to_vector<float>();
  eval({assign(w, to(v, first) * 2.0), assign(v, to(w, second) + 1.0)});
  const Floats new_w = w.to_vector<float>(), new_v = v.to_vector<float>();
  for (std::size_t k = 0; k < 3; ++k) {
    CHECK(new_w[k] == old_v[k] * 2.0f);
    CHECK(new_v[k] == old_w[k] + 1.0f);
  }
}
