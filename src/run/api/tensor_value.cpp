// Reading tensors from the host: evaluates pending tensors, then reads their memory. The host copy
// of a GPU tensor is kept until the tensor is assigned.
#include <cmath>
#include <mutex>

#include <tenon/compute.h>
#include <tenon/error.h>

#include "base/make_error.h"
#include "base/str.h"
#include "run/runner.h"

namespace tenon {
namespace {

void require_value(const char* method, const Tensor& x) {
  if (!x.defined())
    throw ValueError(cat(method, ": the tensor has no value: it was never assigned"));
}

double element(const void* data, DType dtype, std::int64_t k) {
  switch (dtype) {
    case DType::Bool:
      return static_cast<const std::uint8_t*>(data)[k] != 0;
    case DType::UInt8:
      return static_cast<const std::uint8_t*>(data)[k];
    case DType::Int8:
      return static_cast<const std::int8_t*>(data)[k];
    case DType::Int32:
      return static_cast<const std::int32_t*>(data)[k];
    case DType::Int64:
      return static_cast<double>(static_cast<const std::int64_t*>(data)[k]);
    case DType::Float16:
      return static_cast<float>(static_cast<const float16*>(data)[k]);
    case DType::BFloat16:
      return static_cast<float>(static_cast<const bfloat16*>(data)[k]);
    case DType::Float32:
      return static_cast<const float*>(data)[k];
    case DType::Float64:
      return static_cast<const double*>(data)[k];
  }
  return 0;
}

std::string number_text(const void* data, DType dtype, std::int64_t k) {
  if (dtype == DType::Bool) return element(data, dtype, k) != 0 ? "true" : "false";
  if (dtype == DType::Int64) return std::to_string(static_cast<const std::int64_t*>(data)[k]);
  const double v = element(data, dtype, k);
  if (!is_floating(dtype) || !std::isfinite(v)) return cat(v);
  const double rounded = std::abs(v) < 1e6 && std::abs(v) >= 1e-4 ? std::round(v * 1e4) / 1e4 : v;
  return cat(rounded);
}

constexpr std::int64_t kEdge = 3;        // elements shown at either end of a long axis
constexpr std::int64_t kAbridge = 1000;  // larger tensors are abridged

void print_axis(std::string& out, const Tensor& t, const void* data, int axis, std::int64_t at,
                const std::string& indent) {
  const Shape& shape = t.shape();
  if (axis == shape.rank()) {
    out += number_text(data, t.dtype(), at);
    return;
  }
  std::int64_t step = 1;
  for (int d = axis + 1; d < shape.rank(); ++d) step *= shape[d];
  const bool abridge = shape.numel() > kAbridge && shape[axis] > 2 * kEdge;
  const std::string separator = axis + 1 == shape.rank() ? ", " : cat(",\n", indent, " ");
  out += '[';
  for (std::int64_t i = 0; i < shape[axis]; ++i) {
    if (abridge && i == kEdge) {
      out += separator + "…";
      i = shape[axis] - kEdge;
    }
    if (i > 0) out += separator;
    print_axis(out, t, data, axis + 1, at + i * step, indent + " ");
  }
  out += ']';
}

// The value of a GPU tensor in host memory. It is copied again only if it may have changed.
const void* host_copy(Node& node) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  if (node.leaf == nullptr) node.leaf = std::make_unique<LeafState>();
  LeafState& leaf = *node.leaf;
  const std::uint64_t assigned = node.assigned_at();
  if (leaf.host_copy == nullptr || leaf.host_copied_at != assigned) {
    const std::size_t bytes = node.value->bytes();
    auto copy = Buffer::allocate(bytes);
    if (bytes != 0) node.value->read(copy->data(), bytes);
    leaf.host_copy = std::move(copy);
    leaf.host_copied_at = assigned;
  }
  return leaf.host_copy->data();
}

}  // namespace

const Tensor& Tensor::compute() const {
  require_value("compute", *this);
  if (!node_->realised()) tenon::compute({this, 1});
  return *this;
}

const void* Tensor::data() const {
  compute();
  leaf_memory(*node_);
  return node_->device.kind == Device::Kind::Cpu ? node_->value->data() : host_copy(*node_);
}

double Tensor::item() const {
  require_value("item", *this);
  if (numel() != 1)
    throw make_error<ShapeError>("item() reads one number, but the tensor has shape ", shape());
  return element(data(), dtype(), 0);
}

std::string Tensor::str() const {
  require_value("str", *this);
  std::string out = "tensor(";
  const void* bytes = data();
  print_axis(out, *this, bytes, 0, 0, "       ");
  return out + cat(", ", dtype(), shape(), ")");
}

}  // namespace tenon
