// Batch norm learns like PyTorch's over fifty steps, however the loss is evaluated.
#include <tenon/grad.h>

#include "e2e/batch_norm_course.h"

using namespace tenon;
using batch_norm_course::Course;

TEST_CASE("batch norm: fifty steps equal PyTorch's, step by step") {
  batch_norm_course::run([](Course& course, const Tensor& x, const Tensor& target) {
    return course.sgd.step(course.loss(x, target));
  });
}

TEST_CASE("batch norm: fifty steps equal PyTorch's, with the loss read before its gradients") {
  batch_norm_course::run([](Course& course, const Tensor& x, const Tensor& target) {
    const Tensor loss = course.loss(x, target);
    const double value = loss.item();
    eval(course.sgd.updates(grad(loss, course.parameters)));
    return value;
  });
}

TEST_CASE("batch norm: fifty steps equal PyTorch's, compiled") {
  CompiledFunction compiled;
  const Course* of = nullptr;
  batch_norm_course::run([&](Course& course, const Tensor& x, const Tensor& target) {
    if (of != &course || course.sgd.steps() == 0)
      compiled = compile([&course](const std::vector<Tensor>& in) {
        const Tensor loss = course.loss(in[0], in[1]);
        std::vector<Tensor> out = course.sgd.updates(grad(loss, course.parameters));
        out.insert(out.begin(), loss);
        return out;
      });
    of = &course;
    return compiled({x, target})[0].item();
  });
}
