// Members of Tensor that need no evaluation, and variables. Setting a variable's value writes to
// new memory if others still read the old value. Evaluation is in src/run.
#include <cstring>

#include <tenon/error.h>

#include <tenon/shapes_only.h>
#include "base/make_error.h"
#include "device/versions.h"
#include "graph/called.h"
#include "graph/cloned.h"
#include "graph/node.h"

namespace tenon {
namespace {

thread_local const ClonedVariables* t_clones = nullptr;

// The node that a copy of a handle refers to.
Node* copied(Node* node) noexcept {
  if (node == nullptr || node->op != Op::Variable || t_clones == nullptr) return node;
  const auto clone = t_clones->find(node);
  return clone == t_clones->end() ? node : clone->second.node();
}

}  // namespace

const ClonedVariables* set_cloned_variables(const ClonedVariables* clones) noexcept {
  return std::exchange(t_clones, clones);
}

Tensor::Tensor(const Tensor& other) noexcept : node_(copied(other.node_)) { retain(node_); }
Tensor::Tensor(Node* node) noexcept : node_(node) { retain(node_); }
Tensor::~Tensor() { release(node_); }

Tensor& Tensor::operator=(const Tensor& other) & noexcept {
  if (this == &other) return *this;
  Node* const node = copied(other.node_);
  retain(node);
  release(std::exchange(node_, node));
  return *this;
}

Tensor& Tensor::operator=(Tensor&& other) & noexcept {
  if (this != &other) release(std::exchange(node_, std::exchange(other.node_, nullptr)));
  return *this;
}

namespace {
const Node& checked(const Node* node) {
  if (node == nullptr) {
    const OpPlace at = where("");  // the called op, if it is built from others, and the layer
    throw make_error<ValueError>(at, at.operation.empty() && at.layer.empty() ? "" : ": ",
                                 "a tensor without a value was used: it was never assigned");
  }
  return *node;
}

void require_data(const char* what, const void* data, std::size_t bytes) {
  if (data == nullptr && bytes != 0)
    throw make_error<ValueError>(what, ": a null pointer was given for ", bytes, " bytes");
}
}  // namespace

const Shape& Tensor::shape() const { return checked(node_).shape; }
DType Tensor::dtype() const { return checked(node_).dtype; }
Device Tensor::device() const { return checked(node_).device; }

Tensor Tensor::from_data(const void* data, const Shape& shape, DType dtype) {
  return from_data(data, shape, dtype, default_device());
}

Tensor Tensor::from_data(const void* data, const Shape& shape, DType dtype, Device device) {
  const std::size_t bytes = static_cast<std::size_t>(shape.numel()) * item_size(dtype);
  require_data("Tensor::from_data", data, bytes);
  auto buffer = Buffer::allocate(bytes, device);
  if (bytes != 0) buffer->write(data, bytes);
  return make_data(std::move(buffer), shape, dtype);
}

void Tensor::check_count(std::int64_t count, const Shape& shape) {
  if (count != shape.numel())
    throw make_error<ShapeError>("Tensor::from: ", count, " values for shape ", shape,
                                 ", which has ", shape.numel());
}

void Tensor::check_dtype(DType wanted) const {
  if (dtype() != wanted)
    throw make_error<DTypeError>("a tensor of ", dtype(), " was read as ", wanted,
                                 ": cast() it first");
}

Tensor variable(const Tensor& init, const std::string& var_name) {
  const Called called("variable");
  std::shared_ptr<Buffer> buffer;
  if (ShapesOnly::is_on()) {
    buffer = Buffer::none(init.device());
  } else {
    const auto bytes = static_cast<std::size_t>(init.numel()) * item_size(init.dtype());
    const Tensor& value = init.compute();
    buffer = Buffer::allocate(bytes, value.device());
    if (bytes != 0) buffer->copy_from(*value.node()->value, bytes);
  }
  LabelGuard guard(var_name.empty() ? current_label() : intern_label(var_name));
  Tensor t = make_node(Op::Variable, init.dtype(), init.shape(), {}, {});
  place(*t.node(), std::move(buffer));
  return t;
}

bool is_variable(const Tensor& tensor) {
  return tensor.defined() && tensor.node()->op == Op::Variable;
}

namespace {

// Writes a variable's whole value. If others read the old value, the new one is written to other
// memory.
template <class Write>
void assign_whole(Node& variable, Write&& write) {
  Buffer& value = *variable.value;
  std::uint64_t now = 0;
  if (value.bytes() != 0 && value.device().kind == Device::Kind::Cpu) {
    WholeWrite use;
    if (!use.begin(value)) refuse_two_assigners(variable);
    write(use.target());
    now = advance_clock();
    use.end();
  } else {
    keep_shared_value(value);
    if (value.bytes() != 0) write(value);
    now = advance_clock();
  }
  mark_assigned(variable, now);
}

}  // namespace

void convert_variable(const Tensor& variable, const Tensor& value) {
  Node& node = *variable.node();
  node.dtype = value.dtype();
  if (value.node()->realised()) node.value = value.node()->value;
  node.leaf->host_copy.reset();
  node.leaf->rounded = Tensor();
  ++node.leaf->conversions;
  mark_assigned(node, advance_clock());
}

void set_value(const Tensor& target, const void* data, std::size_t bytes) {
  if (!is_variable(target)) throw ValueError("set_value: the target is not a variable");
  if (ShapesOnly::is_on()) return;
  Node& node = *target.node();
  if (bytes != node.value->bytes())
    throw make_error<ShapeError>("set_value: ", bytes, " bytes given for ", node.dtype, node.shape,
                                 ", which has ", node.value->bytes());
  require_data("set_value", data, bytes);
  assign_whole(node, [&](Buffer& to) { to.write(data, bytes); });
}

void set_value(const Tensor& target, const Tensor& value) {
  const Called called("set_value");
  if (target.shape() != value.shape() || target.dtype() != value.dtype())
    throw make_error<ShapeError>("set_value: ", value.dtype(), value.shape(), " given for ",
                                 label_text(target.node()->label),
                                 target.node()->label == 0 ? "" : " ", target.dtype(),
                                 target.shape());
  if (!is_variable(target)) throw ValueError("set_value: the target is not a variable");
  if (ShapesOnly::is_on()) return;
  const auto bytes = static_cast<std::size_t>(value.numel()) * item_size(value.dtype());
  const Buffer& from = *value.compute().node()->value;
  assign_whole(*target.node(), [&](Buffer& to) { to.copy_from(from, bytes); });
}

}  // namespace tenon
