// Cases of losses, and of small networks that combine many ops as fusion and layout see them in
// practice.
#include <tenon/functional.h>
#include <tenon/grad.h>
#include <tenon/loops.h>

#include "cases/cases.h"

using namespace tenon;

namespace cases {

void add_losses(Cases& cases) {
  for (const Reduction r : {Reduction::None, Reduction::Mean, Reduction::Sum}) {
    const std::string n = " " + std::to_string(static_cast<int>(r));
    cases.push_back({"cross_entropy" + n,
                     {{{5, 7}, -3, 3}, whole({5}, 0, 7)},
                     [r](const Tensors& x) { return cross_entropy(x[0], x[1], r); }});
    cases.push_back({"cross_entropy smooth" + n,
                     {{{5, 4, 3}, -3, 3}, whole({5, 3}, 0, 4, DType::Int32)},
                     [r](const Tensors& x) { return cross_entropy(x[0], x[1], r, 0.1); }});
    cases.push_back({"cross_entropy probabilities" + n,
                     {{{4, 5}, -3, 3}, {{4, 5}, 0, 1}},
                     [r](const Tensors& x) { return cross_entropy(x[0], x[1], r, 0.2); }});
    cases.push_back({"nll_loss" + n, {{{4, 5}, -3, 0}, whole({4}, 0, 5)}, [r](const Tensors& x) {
                       return nll_loss(x[0], x[1], r);
                     }});
    cases.push_back({"mse_loss" + n, {{{4, 5}}, {{4, 5}}}, [r](const Tensors& x) {
                       return mse_loss(x[0], x[1], r);
                     }});
    cases.push_back({"l1_loss" + n, {{{4, 5}}, {{4, 5}}}, [r](const Tensors& x) {
                       return l1_loss(x[0], x[1], r);
                     }});
    cases.push_back({"smooth_l1_loss" + n, {{{4, 5}}, {{4, 5}}}, [r](const Tensors& x) {
                       return smooth_l1_loss(x[0], x[1], r, 0.7);
                     }});
    cases.push_back({"huber_loss" + n, {{{4, 5}}, {{4, 5}}}, [r](const Tensors& x) {
                       return huber_loss(x[0], x[1], r, 0.7);
                     }});
    cases.push_back({"bce" + n, {{{4, 5}, -5, 5}, {{4, 5}, 0, 1}}, [r](const Tensors& x) {
                       return binary_cross_entropy_with_logits(x[0], x[1], r);
                     }});
  }
}

void add_networks(Cases& cases) {
  cases.push_back({"scan: a recurrent layer",
                   {{{5, 3, 7}}, {{3, 4}}, {{7, 4}, -1, 1}, {{4, 4}, -1, 1}, {{4}}},
                   [](const Tensors& x) {
                     const ScanStep step = [&x](const Tensors& c, const Tensors& row) {
                       const Tensor h = tanh(matmul(row[0], x[2]) + matmul(c[0], x[3]) + x[4]);
                       return ScanResult{{h}, {square(h)}};
                     };
                     const ScanResult r = scan(step, {x[1]}, {x[0]});
                     return concat({r.ys[0], unsqueeze(r.carry[0], 0)}, 0);
                   }});
  cases.push_back({"cond", {{{3, 5}}, {{5}}}, [](const Tensors& x) {
                     return cond(
                         gt(sum(x[0]), sum(x[0]) - 1.0),
                         [](const Tensors& in) { return Tensors{sin(in[0] * in[1])}; },
                         [](const Tensors& in) { return Tensors{in[0] - in[1]}; }, x)[0];
                   }});

  cases.push_back({"mlp",
                   {{{6, 5}}, {{8, 5}, -1, 1}, {{8}}, {{3, 8}, -1, 1}, {{3}}, whole({6}, 0, 3)},
                   [](const Tensors& x) {
                     return cross_entropy(linear(relu(linear(x[0], x[1], x[2])), x[3], x[4]), x[5]);
                   },
                   true,
                   true,
                   false,
                   1e-5});
  cases.push_back(
      {"convnet",
       {{{2, 1, 8, 8}}, {{3, 1, 3, 3}, -1, 1}, {{3}}, {{4, 27}, -1, 1}, {{4}}, whole({2}, 0, 4)},
       [](const Tensors& x) {
         const Tensor h = max_pool2d(relu(conv2d(x[0], x[1], x[2])));
         return cross_entropy(linear(flatten(h, 1), x[3], x[4]), x[5]);
       },
       true,
       false,
       false,
       1e-5});
  cases.push_back({"batch norm",
                   {{{3, 2, 4, 3}}, {{2}, 0.5, 1.5}, {{2}}},
                   [](const Tensors& x) {
                     const Moments m = batch_moments(x[0]);
                     return relu(batch_norm(x[0], m.mean, m.var, x[1], x[2]));
                   },
                   true,
                   true,
                   true,
                   1e-5});
  cases.push_back(
      {"batch norm of a matrix", {{{1, 3}}, {{3}, 0.5, 1.5}, {{3}}}, [](const Tensors& x) {
         return batch_norm(concat({x[0], x[0] * 2}), x[2], x[1], {}, {}, 0.1);
       }});
  cases.push_back({"batch norm without elements", {{{0, 3, 2}}, {{3}}}, [](const Tensors& x) {
                     return batch_norm(x[0], x[1], square(x[1]), x[1]);
                   }});
  cases.push_back({"group norm",
                   {{{3, 4, 5}}, {{4}, 0.5, 1.5}, {{4}}},
                   [](const Tensors& x) { return group_norm(x[0], 2, x[1], x[2]); },
                   true,
                   true,
                   true,
                   1e-5});
  cases.push_back({"layer norm",
                   {{{5, 9}}, {{9}, 0.5, 1.5}, {{9}}},
                   [](const Tensors& x) { return layer_norm(x[0], {9}, x[1], x[2]); },
                   true,
                   true,
                   true,
                   1e-5});
  for (const bool even : {false, true})
    cases.push_back(
        {even ? "local response norm of 4" : "local response norm of 5",
         {{{2, 7, 3, 2}}},
         [even](const Tensors& x) { return local_response_norm(x[0], even ? 4 : 5, 0.3, 0.75, 2); },
         true,
         true,
         true,
         1e-5});
  for (const bool even : {false, true})
    cases.push_back({even ? "local contrast norm of 2, with means" : "local contrast norm of 3",
                     {{{2, 3, 5, 4}}, {{2, 1, 5, 4}}},
                     [even](const Tensors& x) {
                       return local_contrast_norm(
                           x[0], even ? LocalContrastNormOptions{2, 0.7, 0.75, 1.5, x[1]}
                                      : LocalContrastNormOptions{3, 0.7, 0.5, 1.5, x[1] * x[1]});
                     },
                     true,
                     true,
                     true,
                     1e-5});
  cases.push_back({"local response norm of a matrix", {{{3, 4}}}, [](const Tensors& x) {
                     return local_response_norm(x[0], 3, 0.3, 0.5, 1);
                   }});
  cases.push_back({"adaptive average pool, uneven", {{{2, 3, 7, 5}}}, [](const Tensors& x) {
                     return adaptive_avg_pool2d(x[0], {3, 2});
                   }});
  cases.push_back({"adaptive average pool, even and more than there is",
                   {{{2, 3, 6, 2}}},
                   [](const Tensors& x) {
                     return adaptive_avg_pool2d(x[0], {3, 4});
                   }});
  cases.push_back({"adaptive maximum pool", {{{3, 7, 6}}}, [](const Tensors& x) {
                     return adaptive_max_pool2d(x[0], {3, 2});
                   }});
  cases.push_back({"causal attention of grouped queries",
                   {{{2, 4, 3, 5}}, {{2, 2, 4, 5}}, {{2, 2, 4, 2}}},
                   [](const Tensors& x) {
                     return scaled_dot_product_attention(x[0], x[1], x[2], {},
                                                         {.causal = true, .enable_gqa = true});
                   },
                   true,
                   true,
                   false,
                   1e-5});
  cases.push_back({"attention with a mask that is added",
                   {{{3, 4}}, {{5, 4}}, {{5, 2}}, {{3, 5}}},
                   [](const Tensors& x) {
                     return scaled_dot_product_attention(x[0], x[1], x[2], x[3], {.scale = 0.7});
                   },
                   true,
                   true,
                   false,
                   1e-5});
  cases.push_back({"attention",
                   {{{2, 5, 4}}, {{2, 5, 4}}, {{2, 5, 3}}},
                   [](const Tensors& x) {
                     const Tensor scores = matmul(x[0], transpose(x[1])) * 0.5;
                     const Tensor mask = ge(unsqueeze(arange(0, 5), 1), arange(0, 5));
                     return matmul(softmax(where(mask, scores, -1e4), -1), x[2]);
                   },
                   true,
                   true,
                   false,
                   1e-5});
  cases.push_back({"recurrent",
                   {{{2, 3}}, {{3, 3}, -1, 1}, {{3}}},
                   [](const Tensors& x) {
                     Tensor h = x[0];
                     for (int t = 0; t < 3; ++t)
                       h = tanh(matmul(h, x[1]) + x[2]) + h * sigmoid(x[0]);
                     return h;
                   },
                   true,
                   true,
                   false,
                   1e-5});
  cases.push_back({"residual block",
                   {{{2, 3, 5, 5}}, {{3, 3, 3, 3}, -0.5, 0.5}, {{3}}, {{3, 3, 3, 3}, -0.5, 0.5}},
                   [](const Tensors& x) {
                     Conv2dOptions o;
                     o.padding = {1, 1};
                     const Tensor h = relu(conv2d(x[0], x[1], x[2], o));
                     return mean(relu(conv2d(h, x[3], {}, o) + x[0]), {2, 3});
                   },
                   true,
                   false,
                   false,
                   1e-5});
  // Shapes of graphs that fusion handled wrongly in the past.
  cases.push_back({"rows with axes of size 1", {{{7, 1, 3}}, {{3}}}, [](const Tensors& x) {
                     return sum(tanh(x[0]) / (1 + square(relu(x[0])))) + (x[0] + x[1]) * 0.5;
                   }});
  cases.push_back({"rows beside columns", {{{33, 17}}, {{17}}}, [](const Tensors& x) {
                     const Tensor y = x[0] - x[1];
                     return sum(y * y) + sum(y * 2, {0});
                   }});
  cases.push_back({"operand beside epilogue", {{{1, 1}}, {{1, 1}}}, [](const Tensors& x) {
                     const Tensor scaled = x[1] * 0.3;
                     return maximum(matmul(x[0], scaled), tanh(x[0])) * scaled;
                   }});
  cases.push_back({"residual of a slice",
                   {{{5, 3, 7}}, {{7, 7}}, {{5, 2, 7}}},
                   [](const Tensors& x) {
                     const Tensor part = slice(x[0], 1, 0, 2);
                     const Tensor h = tanh(linear(part, x[1]) + part);
                     return h * exp(-square(part)) + x[2];
                   },
                   true,
                   true,
                   false,
                   1e-5});
  // An operand computed by two kernels, the first of which is larger and read through a slice.
  cases.push_back(
      {"product of kernels in a row", {{{1, 3}}, {{2, 3}}, {{3, 4}}}, [](const Tensors& x) {
         return matmul(x[0] * 100.0 + slice(x[1] * 2.0, 0, 1, 2), x[2]);
       }});
  cases.push_back({"product of gradients of what is padded and used",
                   {{{1, 3}}, {{2, 3}}, {{3, 4}}},
                   [](const Tensors& x) {
                     const Tensor loss = sum(pad(x[0], {0, 0, 0, 1}) * tanh(x[1])) +
                                         sum(x[0] * square(slice(x[1], 0, 0, 1)));
                     return matmul(grad(loss, x[0]), x[2]);
                   }});
}

}  // namespace cases
