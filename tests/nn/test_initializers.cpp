// Initializers of one's own by name, in programs and in network files.
#include <doctest/doctest.h>

#include <algorithm>

#include <tenon/error.h>
#include <tenon/functional.h>
#include <tenon/initializers.h>
#include <tenon/models.h>

using namespace tenon;

TEST_CASE("initializers: one's own is found by its name, in a program and in a network file") {
  const std::vector<std::string> before = nn::init::names();
  CHECK(before.size() == 10);
  CHECK(before.front() == "zeros");
  nn::init::register_initializer("test_ramp", [](const Shape& shape, const OptionalGenerator&) {
    return reshape(arange(0, shape.numel()).to(DType::Float32), Ints(shape.begin(), shape.end()));
  });
  CHECK(nn::init::names().back() == "test_ramp");
  CHECK(nn::init::by_name("test_ramp", {2, 2}).to_vector<float>() ==
        std::vector<float>{0, 1, 2, 3});
  const models::NetworkFile file{
      "x.toml",
      "input = [3]\nclasses = 2\nlayers = [{ linear = \"classes\", init = \"test_ramp\", "
      "bias_init = \"ones\" }]\n"};
  const nn::AnyModule net = models::create(file);
  CHECK(net.parameters()[0].to_vector<float>() == std::vector<float>{0, 1, 2, 3, 4, 5});
  CHECK(net.parameters()[1].to_vector<float>() == std::vector<float>{1, 1});
}

TEST_CASE("initializers: what cannot be registered or found is refused") {
  const nn::Initializer ones_of = [](const Shape& shape, const OptionalGenerator&) {
    return ones(shape);
  };
  CHECK_THROWS_AS(nn::init::register_initializer("", ones_of), ValueError);
  CHECK_THROWS_AS(nn::init::register_initializer("Not a name", ones_of), ValueError);
  CHECK_THROWS_AS(nn::init::register_initializer("test_empty", {}), ValueError);
  CHECK_THROWS_WITH_AS(nn::init::register_initializer("zeros", ones_of),
                       doctest::Contains("another name"), ValueError);
  CHECK_THROWS_WITH_AS(nn::init::by_name("xavier_unifrm", {2, 2}),
                       doctest::Contains("did you mean 'xavier_uniform'?"), ValueError);
}
