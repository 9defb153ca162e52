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

/// Texts that plans for these batch sizes ask for beyond what was asked before.
std::size_t texts_for(const CompiledFunction& f, const Shape& sample, std::int64_t first,
                      std::int64_t last) {
  const std::size_t before = cuda::sources_for(0).size();
  for (std::int64_t n = first; n <= last; ++n) {
    Shape shape{n};
    for (const std::int64_t extent : sample) shape.push_back(extent);
    f.plan({zeros(shape)});
  }
  return cuda::sources_for(0).size() - before;
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
    texts_for(f, sample, 1, 2);
    for (std::int64_t most = 4; most <= 64; most *= 2) {
      CAPTURE(most);
      texts_for(f, sample, most, most);  // one of a class, then all of it
      CHECK(texts_for(f, sample, most / 2 + 1, most) == 0);
    }
    // And it answers.
    Shape shape{37};
    for (const std::int64_t extent : sample) shape.push_back(extent);
    const std::size_t before = cuda::sources_for(0).size();
    CHECK(std::isfinite(f({rand(shape).eval()})[0].to_vector<float>()[0]));
    CHECK(cuda::sources_for(0).size() - before <= 1);  // that of the random numbers
  }
}
