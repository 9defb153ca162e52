// Cases of matrix products, convolutions and pooling.
#include "cases/cases.h"

using namespace tenon;

namespace cases {
namespace {

Conv2dOptions conv(std::int64_t stride, std::int64_t padding, std::int64_t dilation = 1,
                   std::int64_t groups = 1) {
  Conv2dOptions o;
  o.stride = {stride, stride};
  o.padding = {padding, padding};
  o.dilation = {dilation, dilation};
  o.groups = groups;
  return o;
}

void add_conv(Cases& cases, const std::string& name, const Shape& x, const Shape& w,
              const Conv2dOptions& o) {
  cases.push_back({"conv2d " + name, {{x}, {w}}, [o](const Tensors& in) {
                     return conv2d(in[0], in[1], {}, o);
                   }});
  cases.push_back({"conv2d bias relu " + name,
                   {{x}, {w}, {{w[0]}}},
                   [o](const Tensors& in) { return relu(conv2d(in[0], in[1], in[2], o)); },
                   true,
                   false});
}

// Element-wise ops on operands before the multiplication: engines may compute them while loading.
void add_prologues(Cases& cases) {
  cases.push_back({"linear of relu", {{{9, 22}}, {{7, 22}}, {{7}}}, [](const Tensors& x) {
                     return linear(relu(x[0]), x[1], x[2]);
                   }});
  cases.push_back({"matmul of scaled views", {{{13, 9}}, {{13, 5}}, {{13}}}, [](const Tensors& x) {
                     return matmul(transpose(x[0] * reshape(x[2], {13, 1})), x[1] + 0.5);
                   }});
  cases.push_back(
      {"matmul of masked batches",
       {{{2, 5, 6}}, {{2, 5, 6}}, {{6, 8}}},
       [](const Tensors& x) { return matmul(where(gt(x[1], 0.0), x[0], 0.0), x[2] * x[2]); },
       true,
       false});
  cases.push_back({"matmul of an empty relu", {{{4, 0}}, {{0, 3}}}, [](const Tensors& x) {
                     return matmul(relu(x[0]), x[1] * 2.0);
                   }});
  cases.push_back({"linear of flattened relu", {{{3, 2, 3, 5}}, {{4, 30}}}, [](const Tensors& x) {
                     return linear(reshape(relu(x[0]), {3, 30}), x[1]);
                   }});
  cases.push_back({"conv2d of bytes",
                   {whole({2, 3, 8, 8}, 0, 256, DType::UInt8), {{5, 3, 4, 4}}, {{3, 1, 1}}},
                   [](const Tensors& x) {
                     return conv2d(cast(x[0], x[1].dtype()) * (1.0 / 255) - x[2], x[1], {},
                                   conv(4, 0));
                   },
                   true,
                   false});
  cases.push_back(
      {"conv2d of padded relu",
       {{{2, 3, 5, 7}}, {{4, 3, 3, 3}}},
       [](const Tensors& x) { return conv2d(relu(x[0]) + 1.0, x[1] * 0.5, {}, conv(2, 1)); },
       true,
       false});
}

}  // namespace

void add_contractions(Cases& cases) {
  add_prologues(cases);
  const std::pair<Shape, Shape> shapes[] = {
      {{3, 4}, {4, 5}},       {{4}, {4}},          {{3, 4}, {4}},       {{4}, {4, 3}},
      {{2, 3, 4}, {2, 4, 5}}, {{2, 3, 4}, {4, 2}}, {{3, 4}, {2, 4, 2}}, {{2, 1, 2, 3}, {3, 3, 2}},
      {{1, 1}, {1, 1}},       {{2, 0}, {0, 3}},    {{0, 3}, {3, 2}},    {{17, 33}, {33, 9}}};
  for (const auto& [a, b] : shapes) {
    const bool big = a.numel() > 300;
    cases.push_back({"matmul" + a.str() + b.str(),
                     {{a}, {b}},
                     [](const Tensors& x) { return matmul(x[0], x[1]); },
                     !big,
                     !big});
  }
  cases.push_back({"matmul of views", {{{4, 3}}, {{5, 4}}}, [](const Tensors& x) {
                     return matmul(transpose(x[0]), transpose(x[1]));
                   }});
  cases.push_back(
      {"matmul of itself", {{{4, 4}}}, [](const Tensors& x) { return matmul(x[0], x[0]) + x[0]; }});
  cases.push_back({"matmul wide",
                   {{{65, 130}}, {{130, 70}}},
                   [](const Tensors& x) { return matmul(x[0], x[1]); },
                   false,
                   false});
  cases.push_back({"linear", {{{5, 3}}, {{4, 3}}, {{4}}}, [](const Tensors& x) {
                     return linear(x[0], x[1], x[2]);
                   }});
  cases.push_back({"linear rank 3",
                   {{{2, 3, 4}}, {{5, 4}}, {{5}}},
                   [](const Tensors& x) { return gelu(linear(x[0], x[1], x[2])); },
                   true,
                   false});
  cases.push_back(
      {"linear vector", {{{4}}, {{5, 4}}}, [](const Tensors& x) { return linear(x[0], x[1]); }});
  cases.push_back({"linear residual",
                   {{{6, 4}}, {{4, 4}}, {{4}}},
                   [](const Tensors& x) { return relu(linear(x[0], x[1], x[2]) + x[0]); },
                   true,
                   false});
  add_conv(cases, "3x3", {2, 3, 6, 5}, {4, 3, 3, 3}, conv(1, 1));
  add_conv(cases, "1x1", {2, 3, 4, 3}, {2, 3, 1, 1}, conv(1, 0));
  add_conv(cases, "5x5 stride 2", {1, 2, 9, 8}, {3, 2, 5, 5}, conv(2, 2));
  add_conv(cases, "stride 3 rest", {1, 2, 9, 9}, {2, 2, 2, 2}, conv(3, 0));
  add_conv(cases, "dilated", {1, 2, 7, 7}, {2, 2, 3, 3}, conv(1, 2, 2));
  add_conv(cases, "groups", {2, 4, 5, 5}, {6, 2, 3, 3}, conv(1, 1, 1, 2));
  add_conv(cases, "depthwise", {1, 3, 5, 4}, {3, 1, 3, 3}, conv(2, 1, 1, 3));
  add_conv(cases, "empty batch", {0, 2, 5, 5}, {3, 2, 3, 3}, conv(1, 0));
  add_conv(cases, "whole image", {2, 2, 3, 4}, {3, 2, 3, 4}, conv(1, 0));
  Conv2dOptions uneven;
  uneven.stride = {1, 2};
  uneven.padding = {2, 0};
  uneven.dilation = {2, 1};
  add_conv(cases, "uneven", {1, 2, 6, 7}, {3, 2, 3, 2}, uneven);
  cases.push_back({"conv2d big",
                   {{{2, 16, 17, 13}}, {{24, 16, 3, 3}}},
                   [](const Tensors& x) { return conv2d(x[0], x[1], {}, conv(1, 1)); },
                   false,
                   false});
}

void add_pooling(Cases& cases) {
  struct Row {
    const char* name;
    Shape shape;
    Pool2dOptions options;
    bool average;
  };
  Pool2dOptions plain, overlap, ceil, inside, dilated, centred, clipped;
  overlap.kernel = {3, 3}, overlap.stride = {2, 1}, overlap.padding = {1, 1};
  ceil = overlap, ceil.ceil_mode = true, ceil.stride = {2, 2};
  inside = ceil, inside.count_include_pad = false;
  centred.kernel = {5, 3}, centred.stride = {1, 1}, centred.padding = {2, 1};
  clipped = centred, clipped.count_include_pad = false;
  dilated.kernel = {2, 2}, dilated.stride = {1, 2}, dilated.dilation = {2, 3};
  const Row rows[] = {
      {"plain", {2, 2, 4, 6}, plain, true},     {"rest", {1, 2, 5, 7}, plain, true},
      {"overlap", {2, 1, 7, 6}, overlap, true}, {"ceil", {1, 2, 6, 8}, ceil, true},
      {"inside", {1, 1, 6, 7}, inside, true},   {"dilated", {1, 2, 6, 8}, dilated, false},
      {"centred", {1, 2, 4, 6}, centred, true}, {"clipped", {1, 2, 4, 6}, clipped, true},
      {"empty", {0, 2, 4, 4}, plain, true}};
  for (const Row& r : rows) {
    cases.push_back({std::string("max_pool2d ") + r.name,
                     {{r.shape}},
                     [o = r.options](const Tensors& x) { return max_pool2d(x[0], o); }});
    cases.push_back({std::string("max_pool2d square ") + r.name,
                     {{r.shape}},
                     [o = r.options](const Tensors& x) { return square(max_pool2d(x[0] * 2, o)); },
                     true,
                     true});
    if (r.average)
      cases.push_back({std::string("avg_pool2d ") + r.name,
                       {{r.shape}},
                       [o = r.options](const Tensors& x) { return square(avg_pool2d(x[0], o)); }});
  }
  // Windows that contain only uncounted padding: 0, as in PyTorch, not 0 / 0.
  Pool2dOptions nothing;
  nothing.kernel = {3, 2}, nothing.stride = {1, 1}, nothing.padding = {1, 1};
  nothing.count_include_pad = false;
  cases.push_back({"avg_pool2d of no columns", {{{1, 2, 4, 0}}}, [nothing](const Tensors& x) {
                     return avg_pool2d(x[0], nothing);
                   }});
}

}  // namespace cases
