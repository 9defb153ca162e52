// A libcudnn for the emulated GPU: loops compute the engine's operation graph.
//
// Descriptors keep their attributes as bytes. Actions that the real library forbids are refused:
// changing or using a descriptor at the wrong time, tensors with inconsistent sizes, a missing
// workspace. As in the real library, the objects for making plans are created with the first plan
// and destroyed when the process ends. Plans are counted; with TENON_FAKE_CUDNN_MS each takes that
// many milliseconds. With TENON_FAKE_IDLE the library computes nothing, for GPUs without memory
// (tools/idle_gpu.cpp), and has several plans.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>
#include <vector>

#include "cuda/engines/vendor/cudnn_api.h"
#include "elements.h"

#define TENON_EXPORT extern "C" __attribute__((visibility("default")))

using namespace tenon::cuda;
using tenon_fake::Type;

namespace {

constexpr cudnnStatus_t kBad = 2000;
constexpr std::int64_t kWorkspace = 512;
#ifdef TENON_FAKE_IDLE
constexpr bool kIdle = true;
constexpr std::size_t kVersion = 91400;  // that the built-in choices were measured with
constexpr std::int64_t kPlans = 8;
#else
constexpr bool kIdle = false;
constexpr std::size_t kVersion = 91900;
constexpr std::int64_t kPlans = 1;
#endif
constexpr int kGraphOfConfig = -1;  // an attribute of the fake's own

struct Descriptor {
  int type = 0;
  bool final = false;
  std::map<int, std::vector<char>> attributes;

  template <class T>
  T get(int name, std::size_t i = 0) const {
    T value{};
    const auto it = attributes.find(name);
    if (it != attributes.end() && it->second.size() >= (i + 1) * sizeof(T))
      std::memcpy(&value, it->second.data() + i * sizeof(T), sizeof(T));
    return value;
  }
  std::size_t count(int name, std::size_t item) const {
    const auto it = attributes.find(name);
    return it == attributes.end() ? 0 : it->second.size() / item;
  }
  const Descriptor& part(int name, std::size_t i = 0) const {
    return *get<const Descriptor*>(name, i);
  }
};

std::size_t item_of(int type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
      return 1;
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    default:
      return 4;
  }
}

Descriptor& of(cudnnBackendDescriptor_t raw) { return *static_cast<Descriptor*>(raw); }

/// A tensor while a plan runs.
struct Tensor {
  std::int64_t size[4], stride[4];
  std::vector<double> values;

  double& at(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
    return values[static_cast<std::size_t>(a * stride[0] + b * stride[1] + c * stride[2] +
                                           d * stride[3])];
  }
};

class Run {
 public:
  explicit Run(const Descriptor& pack) {
    for (std::size_t i = 0; i < pack.count(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, 8); ++i)
      memory_[pack.get<std::int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, i)] =
          pack.get<char*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, i);
  }

  bool operation(const Descriptor& op) {
    switch (op.type) {
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
        return convolve(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, kY);
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
        return convolve(op, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, kX);
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
        return convolve(op, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, kW);
      default:
        return pointwise(op);
    }
  }

 private:
  static Type type_of(const Descriptor& tensor) {
    const int type = tensor.get<int>(CUDNN_ATTR_TENSOR_DATA_TYPE);
    return type == CUDNN_DATA_DOUBLE     ? Type::F64
           : type == CUDNN_DATA_HALF     ? Type::F16
           : type == CUDNN_DATA_BFLOAT16 ? Type::BF16
                                         : Type::F32;
  }

  Tensor& tensor(const Descriptor& d, bool load) {
    const auto id = d.get<std::int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
    Tensor& t = tensors_[id];
    if (!t.values.empty()) return t;
    std::int64_t count = 1;
    for (std::size_t a = 0; a < 4; ++a) {
      t.size[a] = d.get<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS, a);
      t.stride[a] = d.get<std::int64_t>(CUDNN_ATTR_TENSOR_STRIDES, a);
      count += (t.size[a] - 1) * t.stride[a];
    }
    t.values.assign(static_cast<std::size_t>(count), 0);
    for (std::int64_t i = 0; load && i < count; ++i)
      t.values[static_cast<std::size_t>(i)] = tenon_fake::load(memory_.at(id), type_of(d), i);
    return t;
  }

  void finish(const Descriptor& d, const Tensor& t) {
    if (d.get<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL)) return;
    char* to = memory_.at(d.get<std::int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID));
    for (std::size_t i = 0; i < t.values.size(); ++i)
      tenon_fake::store(to, type_of(d), static_cast<std::int64_t>(i), t.values[i]);
  }

  // All three kinds list alpha, beta, geometry, w, x, y in this order.
  static constexpr int kGeometry = 2, kW = 3, kX = 4, kY = 5;

  bool convolve(const Descriptor& op, int first, int result) {
    const bool forward = op.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR;
    const bool filter = op.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR;
    Tensor& x = tensor(op.part(first + kX), forward || filter);
    Tensor& w = tensor(op.part(first + kW), !filter);
    Tensor& y = tensor(op.part(first + kY), !forward);
    const Descriptor& g = op.part(first + kGeometry);
    std::int64_t stride[2], pad[2], dil[2];
    for (std::size_t i = 0; i < 2; ++i) {
      stride[i] = g.get<std::int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, i);
      pad[i] = g.get<std::int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, i);
      dil[i] = g.get<std::int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS, i);
    }
    const std::int64_t groups = x.size[1] / w.size[1], group_out = w.size[0] / groups;
    if (y.size[1] != w.size[0] || x.size[0] != y.size[0] || groups * w.size[1] != x.size[1])
      return false;
    for (std::int64_t n = 0; n < y.size[0]; ++n)
      for (std::int64_t k = 0; k < y.size[1]; ++k)
        for (std::int64_t p = 0; p < y.size[2]; ++p)
          for (std::int64_t q = 0; q < y.size[3]; ++q)
            for (std::int64_t c = 0; c < w.size[1]; ++c)
              for (std::int64_t r = 0; r < w.size[2]; ++r)
                for (std::int64_t s = 0; s < w.size[3]; ++s) {
                  const std::int64_t i = p * stride[0] - pad[0] + r * dil[0];
                  const std::int64_t j = q * stride[1] - pad[1] + s * dil[1];
                  if (i < 0 || i >= x.size[2] || j < 0 || j >= x.size[3]) continue;
                  double& at_x = x.at(n, k / group_out * w.size[1] + c, i, j);
                  double& at_w = w.at(k, c, r, s);
                  double& at_y = y.at(n, k, p, q);
                  if (forward) at_y += at_x * at_w;
                  if (filter) at_w += at_x * at_y;
                  if (!forward && !filter) at_x += at_y * at_w;
                }
    const Descriptor& out = op.part(first + result);
    finish(out, tensor(out, false));
    return true;
  }

  bool pointwise(const Descriptor& op) {
    const int mode =
        op.part(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR).get<int>(CUDNN_ATTR_POINTWISE_MODE);
    const Descriptor& dy = op.part(CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
    Tensor& x = tensor(op.part(CUDNN_ATTR_OPERATION_POINTWISE_XDESC), true);
    Tensor& y = tensor(dy, false);
    Tensor* b = mode == CUDNN_POINTWISE_ADD
                    ? &tensor(op.part(CUDNN_ATTR_OPERATION_POINTWISE_BDESC), true)
                    : nullptr;
    for (std::int64_t n = 0; n < y.size[0]; ++n)
      for (std::int64_t c = 0; c < y.size[1]; ++c)
        for (std::int64_t i = 0; i < y.size[2]; ++i)
          for (std::int64_t j = 0; j < y.size[3]; ++j) {
            const double v = x.at(n, c, i, j);
            y.at(n, c, i, j) = b != nullptr ? v + b->at(0, c, 0, 0) : v < 0 ? 0 : v;
          }
    finish(dy, y);
    return true;
  }

  std::map<std::int64_t, char*> memory_;
  std::map<std::int64_t, Tensor> tensors_;
};

}  // namespace

namespace {

std::atomic<int> plans{0};
std::atomic<bool> is_gone{false};

void make_plan() {
  if (is_gone) std::abort();
  if (plans++ == 0) std::atexit([] { is_gone = true; });
  if (const char* ms = std::getenv("TENON_FAKE_CUDNN_MS"); ms != nullptr)
    std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(ms)));
  if (is_gone) std::abort();
}

}  // namespace

/// For tests: how many plans were made.
TENON_EXPORT int tenon_fake_cudnn_plans() { return plans; }

TENON_EXPORT std::size_t cudnnGetVersion() { return kVersion; }
TENON_EXPORT const char* cudnnGetErrorString(cudnnStatus_t) { return "bad parameter"; }
TENON_EXPORT cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  static char one;
  *handle = reinterpret_cast<cudnnHandle_t>(&one);
  return 0;
}
TENON_EXPORT cudnnStatus_t cudnnSetStream(cudnnHandle_t, void*) { return 0; }

TENON_EXPORT cudnnStatus_t cudnnBackendCreateDescriptor(int type, cudnnBackendDescriptor_t* out) {
  auto* made = new Descriptor;
  made->type = type;
  *out = made;
  return 0;
}
TENON_EXPORT cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t raw) {
  delete static_cast<Descriptor*>(raw);
  return 0;
}
TENON_EXPORT cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t raw) {
  if (of(raw).final) return kBad;
  of(raw).final = true;
  if (of(raw).type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) make_plan();
  return 0;
}

TENON_EXPORT cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t raw, int name,
                                                    int type, std::int64_t count,
                                                    const void* values) {
  Descriptor& d = of(raw);
  if (d.final || count < 1) return kBad;
  const auto* bytes = static_cast<const char*>(values);
  d.attributes[name].assign(bytes, bytes + static_cast<std::size_t>(count) * item_of(type));
  if (type != CUDNN_TYPE_BACKEND_DESCRIPTOR) return 0;
  for (std::int64_t i = 0; i < count; ++i)
    if (!d.part(name, static_cast<std::size_t>(i)).final) return kBad;
  return 0;
}

TENON_EXPORT cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t raw, int name, int,
                                                    std::int64_t wanted, std::int64_t* count,
                                                    void* values) {
  const Descriptor& d = of(raw);
  if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS) {
    *count = kPlans;
    auto* const* configs = static_cast<cudnnBackendDescriptor_t*>(values);
    const auto* graph = &d.part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    for (std::int64_t k = 0; k < std::min(wanted, kPlans); ++k) {
      std::vector<char>& bytes = of(configs[k]).attributes[kGraphOfConfig];
      bytes.resize(sizeof graph);
      std::memcpy(bytes.data(), &graph, sizeof graph);
      of(configs[k]).final = true;
    }
    return 0;
  }
  *count = name == CUDNN_ATTR_ENGINECFG_ENGINE || name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE;
  if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)
    std::memcpy(values, &kWorkspace, sizeof kWorkspace);
  return d.final ? 0
         : name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE || name == CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE
             ? 0
             : kBad;
}

TENON_EXPORT cudnnStatus_t cudnnBackendExecute(cudnnHandle_t, cudnnBackendDescriptor_t plan,
                                               cudnnBackendDescriptor_t raw_pack) {
  if (kIdle) return 0;
  const Descriptor& pack = of(raw_pack);
  auto* workspace = pack.get<char*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  if (!of(plan).final || !pack.final || reinterpret_cast<std::uintptr_t>(workspace) % 256 != 0)
    return kBad;
  std::memset(workspace, 0x55, static_cast<std::size_t>(kWorkspace));
  const Descriptor& graph =
      of(plan).part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG).part(kGraphOfConfig);
  Run run(pack);
  for (std::size_t i = 0; i < graph.count(CUDNN_ATTR_OPERATIONGRAPH_OPS, 8); ++i)
    if (!run.operation(graph.part(CUDNN_ATTR_OPERATIONGRAPH_OPS, i))) return kBad;
  return 0;
}
