// The case table: a case is a few inputs and a function that builds a graph from them.
// test_cases.cpp runs every case in every mode (fast against reference, fused against unfused,
// gradients against finite differences, second derivatives).
//
// A new op needs one case here and nothing else; a test finds ops without cases.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <tenon/ops.h>

namespace cases {

/// An input: uniform on [low, high), of the dtype that the mode uses; or integers of a fixed dtype.
struct In {
  tenon::Shape shape;
  double low = -2, high = 2;
  bool whole = false;
  tenon::DType dtype = tenon::DType::Int64;  // of whole inputs
};

inline In whole(const tenon::Shape& shape, double low, double high,
                tenon::DType dtype = tenon::DType::Int64) {
  return {shape, low, high, true, dtype};
}

using Tensors = std::vector<tenon::Tensor>;

struct Case {
  std::string name;
  std::vector<In> inputs;
  std::function<tenon::Tensor(const Tensors&)> build;
  bool grad = true;        // check gradients
  bool grad2 = true;       // and second derivatives
  bool in_16_bits = true;  // run in float16 and bfloat16 too
  // Tolerance of fast against reference, relative to the norm.
  double tolerance = 2e-6;     // float32; 16-bit types get multiples of it
  double tolerance64 = 1e-12;  // float64
};

using Cases = std::vector<Case>;
void add_elementwise(Cases& cases);
void add_activations(Cases& cases);
void add_reductions(Cases& cases);
void add_views(Cases& cases);
void add_movement(Cases& cases);
void add_order(Cases& cases);
void add_composites(Cases& cases);
void add_special(Cases& cases);
void add_contractions(Cases& cases);
void add_pooling(Cases& cases);
void add_losses(Cases& cases);
void add_networks(Cases& cases);
void add_options(Cases& cases);

/// A number that depends only on a case's name and selects its shapes, so that a new case leaves
/// the others unchanged.
std::size_t number_of(const std::string& name);

const Cases& all_cases();

}  // namespace cases
