// A 3x3 convolution of a 4x4 image and a 2x2 max pooling, computed term by term.
#include <tenon/tenon.h>

#include "check.h"

using namespace tenon;

int main() {
  // Pixels I1…I16 in rows of four, weights A1…A9 in rows of three. The output at pixel 6 is a
  // weighted sum of the nine pixels around it: O6 = A1·I1 + A2·I2 + A3·I3 + A4·I5 + A5·I6 + A6·I7 +
  // A7·I9 + A8·I10 + A9·I11.
  const Tensor image = reshape(arange(1, 17, 1, DType::Float32), {1, 1, 4, 4});
  const Tensor weight = Tensor::from({1.f, 2.f, 3.f, 4.f, 5.f, 6.f, 7.f, 8.f, 9.f}, {1, 1, 3, 3});
  const Tensor out = conv2d(image, weight, {}, {.padding = {1, 1}});
  const double a[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  const int pixels[] = {1, 2, 3, 5, 6, 7, 9, 10, 11};
  double o6 = 0;
  for (int k = 0; k < 9; ++k) o6 += a[k] * pixels[k];
  std::printf("%s\nO6 by hand: %g\n", out.str().c_str(), o6);
  check(out.to_vector<float>()[5] == o6, "O6 is the sum of nine products");

  const Tensor table = Tensor::from({1.f, 0.f, 2.f, 2.f,  //
                                     1.f, 3.f, 0.f, 1.f,  //
                                     4.f, 1.f, 0.f, 5.f,  //
                                     2.f, 2.f, 1.f, 0.f},
                                    {1, 1, 4, 4});
  const Tensor pooled = max_pool2d(table);
  std::printf("2x2 max pooling: %s\n", pooled.str().c_str());
  check(pooled.to_vector<float>() == std::vector<float>({3, 2, 4, 5}),
        "the first row of the pooled table is 3, 2");
}
