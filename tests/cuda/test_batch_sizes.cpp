// A new batch size on a card, real or emulated, is planned, and compiles nothing where a size
// between the same powers of two was seen: what choices see of a batch is the next power of two.
#include <doctest/doctest.h>

#include <tenon/eval.h>
#include <tenon/grad.h>
#include <tenon/models.h>
#include <tenon/ops.h>
#include <tenon/optim.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "card.h"
#include "cuda/jit/jit.h"

using namespace tenon;
using test::has_card;

namespace {

struct OnCard {
  OnCard() { set_device("cuda"); }
  ~OnCard() { set_device("cpu"); }
};

/// Texts that calls at these batch sizes ask for beyond those of the first.
std::size_t more_texts(const CompiledFunction& f, const Shape& sample,
                       const std::vector<std::int64_t>& sizes) {
  std::size_t first = 0;
  for (const std::int64_t n : sizes) {
    Shape shape{n};
    for (const std::int64_t extent : sample) shape.push_back(extent);
    CHECK(std::isfinite(f({rand(shape).eval()})[0].to_vector<float>()[0]));
    if (first == 0) first = cuda::sources_for(0).size();
  }
  return cuda::sources_for(0).size() - first;
}

}  // namespace

TEST_CASE("batch sizes: a served network compiles for the first one of a class alone") {
  if (!has_card()) return;
  const OnCard card;
  for (const auto& [name, sample] :
       {std::pair<std::string, Shape>{"lenet5", {1, 28, 28}}, {"mlp:40-60-10", {40}}}) {
    CAPTURE(name);
    nn::AnyModule net = models::create(name);
    net.eval();
    const CompiledFunction f = compile(
        [&](const std::vector<Tensor>& in) { return std::vector<Tensor>{softmax(net(in[0]))}; });
    // The native engine weighs its tiles by the rows that there are: on an H200 one of LeNet-5's
    // convolutions takes another tile at 37 samples than at 64.
    CHECK(more_texts(f, sample, {64, 63, 50, 37, 33, 48}) <= (name == "lenet5" ? 1 : 0));
  }
}
