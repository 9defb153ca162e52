// A network computed by hand: three inputs, three sigmoid units, two outputs, no bias.
//
// The weights of a layer are a matrix with one row for each unit. One matrix product gives all
// weighted sums.
#include <tenon/tenon.h>

#include "check.h"

using namespace tenon;

int main() {
  const Tensor input = Tensor::from({0.5f, 0.9f, -0.3f}, {1, 3});
  const Tensor hidden = Tensor::from({1.f, -2.f, 2.f, 2.f, 1.f, -4.f, 1.f, -1.f, 0.f}, {3, 3});
  const Tensor output = Tensor::from({-3.f, 1.f, -3.f, 0.f, 1.f, 2.f}, {2, 3});

  const Tensor sums = linear(input, hidden);  // input · hiddenᵀ
  const Tensor activations = sigmoid(sums);   // 1 / (1 + e^-sum)
  const Tensor scores = linear(activations, output);

  std::printf("hidden sums     %s\n", sums.str().c_str());
  std::printf("sigmoid outputs %s\n", activations.str().c_str());
  std::printf("output sums     %s\n", scores.str().c_str());

  const auto s = sums.to_vector<float>(), a = activations.to_vector<float>();
  check(near(s[0], -1.9, 1e-5) && near(s[1], 3.1, 1e-5) && near(s[2], -0.4, 1e-5),
        "sums -1.9, 3.1, -0.4");
  check(near(a[0], .13, .005) && near(a[1], .96, .005) && near(a[2], .40, .005),
        "outputs .13, .96, .40");
}
