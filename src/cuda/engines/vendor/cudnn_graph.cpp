// Builds cuDNN's operation graph of a convolution and makes a plan of one of its proposals. Only
// deterministic proposals that keep the precision are used. Equal convolutions share a plan. A
// worker thread can make plans in advance, because each takes milliseconds.
#include "cuda/engines/vendor/cudnn_graph.h"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include <tenon/error.h>

#include "base/str.h"
#include "cuda/device/gpu.h"
#include "cuda/jit/workers.h"

namespace tenon::cuda {
namespace {

constexpr std::int64_t kMostPlanWorkspace = std::int64_t{64} << 20;
// A large workspace has at most 1 / kLargeShare of the GPU's memory.
constexpr std::int64_t kLargeShare = 32;

// Names of the tensors in a plan.
enum Uid : std::int64_t { kX = 1, kW, kY, kBias, kProduct, kBiased };

/// A GPU's handle. Its stream is set at each launch, so launches take turns. More handles would not
/// plan faster: the library serves one thread at a time.
struct GpuHandle {
  std::mutex mutex;
  cudnnHandle_t handle = nullptr;
};

GpuHandle& gpu_handle(int ordinal) {
  static std::mutex mutex;
  // Never destroyed: a job may still create a handle when the process ends.
  static auto& handles = *new std::map<int, GpuHandle>;
  context_of(ordinal);
  const std::lock_guard lock(mutex);
  GpuHandle& gpu = handles[ordinal];
  if (gpu.handle == nullptr) check_cudnn(cudnn().cudnnCreate(&gpu.handle), "creating its handle");
  return gpu;
}

int cudnn_type(DType dtype) {
  switch (dtype) {
    case DType::Float16:
      return CUDNN_DATA_HALF;
    case DType::BFloat16:
      return CUDNN_DATA_BFLOAT16;
    case DType::Float64:
      return CUDNN_DATA_DOUBLE;
    default:
      return CUDNN_DATA_FLOAT;
  }
}

CudnnDescriptor tensor(const Shape& shape, DType dtype, Uid uid, bool is_virtual,
                       bool channels_last) {
  CudnnDescriptor d(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  constexpr int kInner[2][4] = {{3, 2, 1, 0}, {1, 3, 2, 0}};  // axes from the inside out
  std::int64_t sizes[4], strides[4], step = 1;
  const std::int64_t id = uid, alignment = 16;
  for (const int a : kInner[channels_last ? 1 : 0]) {
    sizes[a] = shape[a];
    strides[a] = step;
    step *= shape[a];
  }
  d.set_int(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, cudnn_type(dtype));
  d.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, sizes);
  d.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides);
  d.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
  d.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
  d.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
  check_cudnn(d.finalize(), "describing a tensor");
  return d;
}

/// The type of sums and of intermediate values.
DType sums_of(const CudnnConvolution& c) {
  return c.operands == DType::Float64 ? DType::Float64 : DType::Float32;
}

CudnnDescriptor geometry(const CudnnConvolution& c) {
  CudnnDescriptor d(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  const std::int64_t spatial = 2;
  const std::int64_t dilations[] = {c.attrs.dil_h, c.attrs.dil_w};
  const std::int64_t strides[] = {c.attrs.stride_h, c.attrs.stride_w};
  const std::int64_t padding[] = {c.attrs.pad_h, c.attrs.pad_w};
  d.set_int(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, cudnn_type(sums_of(c)));
  d.set_int(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION);
  d.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &spatial);
  d.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, dilations);
  d.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, strides);
  d.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, padding);
  d.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, padding);
  check_cudnn(d.finalize(), "describing a convolution");
  return d;
}

/// The names of the parts of the three operations.
struct Names {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t alpha, beta, geometry, x, w, y;
};

Names names_of(Op op) {
  if (op == Op::Conv2d)
    return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y};
  if (op == Op::Conv2dInputGrad)
    return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY};
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY};
}

/// The operations of one graph and the tensors between them, which must outlive the graph.
class Operations {
 public:
  explicit Operations(const CudnnConvolution& c) {
    const bool more = c.bias || c.relu;
    const bool last = c.channels_last;
    const auto dtype = [&](Op result_of) { return c.op == result_of ? c.result : c.operands; };
    // Weight gradients write w, input gradients x, forward y.
    const CudnnDescriptor& x = keep(tensor(c.x, dtype(Op::Conv2dInputGrad), kX, false, last));
    const CudnnDescriptor& w = keep(tensor(c.w, dtype(Op::Conv2dWeightGrad), kW, false, last));
    const CudnnDescriptor& y = keep(tensor(c.y, dtype(Op::Conv2d), kY, false, last));
    const CudnnDescriptor& product =
        more ? keep(tensor(c.y, DType::Float32, kProduct, true, last)) : y;
    convolve(c, x, w, product);
    if (c.bias) {
      const CudnnDescriptor& bias =
          keep(tensor({1, c.y[1], 1, 1}, DType::Float32, kBias, false, last));
      const CudnnDescriptor& sum =
          c.relu ? keep(tensor(c.y, DType::Float32, kBiased, true, last)) : y;
      pointwise(CUDNN_POINTWISE_ADD, product, &bias, sum);
      if (c.relu) pointwise(CUDNN_POINTWISE_RELU_FWD, sum, nullptr, y);
    } else if (c.relu) {
      pointwise(CUDNN_POINTWISE_RELU_FWD, product, nullptr, y);
    }
  }

  const std::vector<cudnnBackendDescriptor_t>& list() const { return operations_; }

 private:
  const CudnnDescriptor& keep(CudnnDescriptor d) {
    kept_.push_back(std::make_unique<CudnnDescriptor>(std::move(d)));
    return *kept_.back();
  }

  void convolve(const CudnnConvolution& c, const CudnnDescriptor& x, const CudnnDescriptor& w,
                const CudnnDescriptor& y) {
    const Names n = names_of(c.op);
    CudnnDescriptor d(n.type);
    const double one = 1, zero = 0;
    const float one_f = 1, zero_f = 0;
    const bool wide = sums_of(c) == DType::Float64;
    const auto number = wide ? CUDNN_TYPE_DOUBLE : CUDNN_TYPE_FLOAT;
    d.set(n.alpha, number, 1, wide ? static_cast<const void*>(&one) : &one_f);
    d.set(n.beta, number, 1, wide ? static_cast<const void*>(&zero) : &zero_f);
    d.set_descriptor(n.geometry, keep(geometry(c)));
    d.set_descriptor(n.x, x);
    d.set_descriptor(n.w, w);
    d.set_descriptor(n.y, y);
    check_operation(d.finalize());
    operations_.push_back(keep(std::move(d)).get());
  }

  void pointwise(cudnnPointwiseMode_t mode, const CudnnDescriptor& x, const CudnnDescriptor* b,
                 const CudnnDescriptor& y) {
    CudnnDescriptor function(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    function.set_int(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
    function.set_int(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    check_cudnn(function.finalize(), "describing a function");
    CudnnDescriptor d(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    d.set_descriptor(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, keep(std::move(function)));
    d.set_descriptor(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (b != nullptr) d.set_descriptor(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b);
    d.set_descriptor(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    check_operation(d.finalize());
    operations_.push_back(keep(std::move(d)).get());
  }

  static void check_operation(cudnnStatus_t status) {
    if (status != CUDNN_STATUS_SUCCESS)
      throw NotSupported(
          cat("cuDNN does not support this convolution: ", cudnn().cudnnGetErrorString(status)));
  }

  std::vector<std::unique_ptr<CudnnDescriptor>> kept_;
  std::vector<cudnnBackendDescriptor_t> operations_;
};

/// Engine configurations, fastest first by the library's estimate.
std::vector<CudnnDescriptor> proposals(const CudnnDescriptor& graph, cudnnBackendHeurMode_t mode) {
  const Cudnn& dnn = cudnn();
  CudnnDescriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set_descriptor(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristics.set_int(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  std::vector<CudnnDescriptor> configs;
  std::int64_t count = 0;
  if (heuristics.finalize() != CUDNN_STATUS_SUCCESS ||
      dnn.cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                   CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count,
                                   nullptr) != CUDNN_STATUS_SUCCESS)
    return configs;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::int64_t k = 0; k < count; ++k)
    raw.push_back(configs.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).get());
  std::int64_t got = 0;
  if (dnn.cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                   CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &got,
                                   raw.data()) != CUDNN_STATUS_SUCCESS)
    got = 0;
  while (static_cast<std::int64_t>(configs.size()) > got) configs.pop_back();
  return configs;
}

std::vector<int> notes_of(const CudnnDescriptor& engine, cudnnBackendAttributeName_t name,
                          cudnnBackendAttributeType_t type) {
  std::int64_t count = 0;
  int notes[32] = {};
  if (cudnn().cudnnBackendGetAttribute(engine.get(), name, type, 32, &count, notes) !=
      CUDNN_STATUS_SUCCESS)
    count = 0;
  return {notes, notes + std::clamp<std::int64_t>(count, 0, 32)};
}

/// True if an engine with these notes is deterministic, keeps the operands' precision and sums in
/// float32.
bool is_faithful(const std::vector<int>& notes, const CudnnConvolution& c) {
  const bool exact = c.operands == DType::Float32 && !c.tf32;
  return std::none_of(notes.begin(), notes.end(), [&](int note) {
    switch (note) {
      case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
      case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13:
        return true;
      case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
      case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
        return exact;
      default:
        return false;
    }
  });
}

}  // namespace

std::array<std::int64_t, 23> CudnnConvolution::words() const {
  std::array<std::int64_t, 23> words{};
  std::size_t n = 0;
  for (const Shape* shape : {&x, &w, &y})
    for (const std::int64_t size : *shape) words[n++] = size;
  for (const std::int64_t number :
       {attrs.stride_h, attrs.stride_w, attrs.pad_h, attrs.pad_w, attrs.dil_h, attrs.dil_w,
        attrs.groups, static_cast<std::int64_t>(op), static_cast<std::int64_t>(operands),
        static_cast<std::int64_t>(result)})
    words[n++] = number;
  std::int64_t flags = 0;
  for (const bool is : {tf32, channels_last, bias, relu, large}) flags = 2 * flags + (is ? 1 : 0);
  words[n] = flags;
  return words;
}

CudnnDescriptor::CudnnDescriptor(cudnnBackendDescriptorType_t type) {
  check_cudnn(cudnn().cudnnBackendCreateDescriptor(type, &descriptor_), "creating a descriptor");
}

CudnnDescriptor::~CudnnDescriptor() {
  if (descriptor_ != nullptr) cudnn().cudnnBackendDestroyDescriptor(descriptor_);
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                          std::int64_t count, const void* values) {
  check_cudnn(cudnn().cudnnBackendSetAttribute(descriptor_, name, type, count, values),
              cat("setting attribute ", static_cast<int>(name)));
}

void CudnnDescriptor::set_descriptor(cudnnBackendAttributeName_t name,
                                     const CudnnDescriptor& value) {
  const cudnnBackendDescriptor_t raw = value.get();
  set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw);
}

cudnnStatus_t CudnnDescriptor::finalize() { return cudnn().cudnnBackendFinalize(descriptor_); }

CudnnPlan::CudnnPlan(const Target& target, const CudnnConvolution& convolution, int rank)
    : ordinal_(target.ordinal), bias_(convolution.bias) {
  GpuHandle& gpu = gpu_handle(ordinal_);
  const std::lock_guard lock(gpu.mutex);
  const auto operations = std::make_shared<const Operations>(convolution);
  operations_ = operations;
  graph_ = std::make_unique<CudnnDescriptor>(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  CudnnDescriptor& graph = *graph_;
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &gpu.handle);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
            static_cast<std::int64_t>(operations->list().size()), operations->list().data());
  // Engines that compile their kernels at run time start slowly: used only if there is no other.
  int found = 0;
  if (graph.finalize() == CUDNN_STATUS_SUCCESS)
    for (const bool compile : {false, true})
      for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK})
        for (CudnnDescriptor& config : proposals(graph, mode))
          if (!(compile && found > 0) && take(target, config, convolution, compile) &&
              found++ == rank)
            return;
  throw NotSupported(
      "cuDNN has no deterministic plan, or no plan of this rank, for this convolution");
}

bool CudnnPlan::take(const Target& target, CudnnDescriptor& config,
                     const CudnnConvolution& convolution, bool compile) {
  const Cudnn& dnn = cudnn();
  const CudnnDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t raw = engine.get();
  std::int64_t count = 0;
  if (dnn.cudnnBackendGetAttribute(config.get(), CUDNN_ATTR_ENGINECFG_ENGINE,
                                   CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                                   &raw) != CUDNN_STATUS_SUCCESS)
    return false;
  if (!is_faithful(notes_of(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE),
                   convolution))
    return false;
  const std::vector<int> behaviour =
      notes_of(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE);
  if (compile != (std::find(behaviour.begin(), behaviour.end(),
                            CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) != behaviour.end()))
    return false;
  auto plan = std::make_unique<CudnnDescriptor>(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  const cudnnHandle_t handle = gpu_handle(ordinal_).handle;
  plan->set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  plan->set_descriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
  std::int64_t bytes = 0;
  if (plan->finalize() != CUDNN_STATUS_SUCCESS ||
      dnn.cudnnBackendGetAttribute(plan->get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                   CUDNN_TYPE_INT64, 1, &count, &bytes) != CUDNN_STATUS_SUCCESS)
    return false;
  if (convolution.large != (bytes > kMostPlanWorkspace) ||
      (convolution.large && bytes > target.memory_bytes / kLargeShare))
    return false;
  config_ = std::make_unique<CudnnDescriptor>(std::move(config));
  plan_ = std::move(plan);
  workspace_bytes_ = static_cast<std::size_t>(bytes);
  return true;
}

void start_cudnn(const Target& target) noexcept {
  CudnnConvolution any;
  any.attrs.pad_h = any.attrs.pad_w = 1;
  any.x = any.y = {1, 64, 8, 8};
  any.w = {64, 64, 3, 3};
  any.operands = any.result = DType::BFloat16;
  any.channels_last = true;
  try {
    const CudnnPlan plan(target, any, 0);
  } catch (...) {
    return;
  }
}

namespace {

/// The plan of a convolution and rank, for as long as it is referenced.
struct SharedPlan {
  std::mutex mutex;  // held while the plan is made; other requests wait
  std::weak_ptr<const CudnnPlan> plan;
  std::shared_ptr<const CudnnPlan> prefetched;  // until the real request
};

std::shared_ptr<SharedPlan> find_shared(const Target& target, const CudnnConvolution& convolution,
                                        int rank) {
  struct Known {
    std::mutex mutex;
    std::map<std::tuple<int, int, CudnnConvolution>, std::shared_ptr<SharedPlan>> plans;
  };
  static Known* const known = new Known;
  const std::lock_guard lock(known->mutex);
  std::shared_ptr<SharedPlan>& place = known->plans[{target.ordinal, rank, convolution}];
  if (place != nullptr) return place;
  std::shared_ptr<SharedPlan> found = place = std::make_shared<SharedPlan>();
  std::erase_if(known->plans, [](const auto& entry) {
    const std::unique_lock idle(entry.second->mutex, std::try_to_lock);
    return idle && entry.second.use_count() == 1 && entry.second->plan.expired();
  });
  return found;
}

/// Makes plans on a worker, one per job. After each job the worker calls stop_workers_at_exit(),
/// because the library may have created static objects during the job.
class Prefetcher {
 public:
  void add(const Target& target, const CudnnConvolution& convolution, int rank) {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() == kMostWaiting) return;
    waiting_.push_back({target, convolution, rank});
    if (!at_work_) at_work_ = begin_next();
  }

 private:
  struct Order {
    Target target;
    CudnnConvolution convolution;
    int rank;
  };
  static constexpr std::size_t kMostWaiting = 256, kMostKept = 64;

  bool begin_next() noexcept {
    if (waiting_.empty() || are_workers_stopped()) return false;
    try {
      run_on_worker([this] { make_next(); });
    } catch (...) {  // no thread can be created
      waiting_.clear();
      return false;
    }
    return true;
  }

  void make_next() noexcept {
    std::unique_lock lock(mutex_);
    const Order order = waiting_.front();
    waiting_.pop_front();
    lock.unlock();
    std::shared_ptr<SharedPlan> made = make(order), forgotten;
    lock.lock();
    if (made != nullptr) kept_.push_back(std::move(made));
    if (kept_.size() > kMostKept) {
      forgotten = std::move(kept_.front());
      kept_.pop_front();
    }
    at_work_ = begin_next();
    lock.unlock();
    if (forgotten == nullptr) return;
    const std::lock_guard own(forgotten->mutex);
    forgotten->prefetched.reset();
  }

  /// Null if the plan exists already or cannot be made; the real request reports the error.
  static std::shared_ptr<SharedPlan> make(const Order& order) noexcept {
    try {
      std::shared_ptr<SharedPlan> shared = find_shared(order.target, order.convolution, order.rank);
      const std::lock_guard lock(shared->mutex);
      if (!shared->plan.expired()) return nullptr;
      shared->prefetched =
          std::make_shared<const CudnnPlan>(order.target, order.convolution, order.rank);
      shared->plan = shared->prefetched;
      return shared;
    } catch (...) {
      return nullptr;
    }
  }

  std::mutex mutex_;
  std::deque<Order> waiting_;
  // The latest plans, also those that no request has asked for yet.
  std::deque<std::shared_ptr<SharedPlan>> kept_;
  bool at_work_ = false;
};

}  // namespace

std::shared_ptr<const CudnnPlan> shared_plan(const Target& target,
                                             const CudnnConvolution& convolution, int rank) {
  const std::shared_ptr<SharedPlan> shared = find_shared(target, convolution, rank);
  const std::lock_guard lock(shared->mutex);
  std::shared_ptr<const CudnnPlan> plan = std::move(shared->prefetched);
  if (plan == nullptr) plan = shared->plan.lock();
  if (plan != nullptr) return plan;
  plan = std::make_shared<const CudnnPlan>(target, convolution, rank);
  shared->plan = plan;
  return plan;
}

void prefetch_plan(const Target& target, const CudnnConvolution& convolution, int rank) {
  static Prefetcher* const prefetcher = new Prefetcher;
  prefetcher->add(target, convolution, rank);
}

void CudnnPlan::run(void* stream, const void* x, const void* w, const void* y, const void* bias,
                    void* workspace) const {
  const Cudnn& dnn = cudnn();
  const std::int64_t ids[] = {kX, kW, kY, kBias};
  const void* addresses[] = {x, w, y, bias};
  const std::int64_t count = bias_ ? 4 : 3;
  CudnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, addresses);
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
  check_cudnn(pack.finalize(), "binding tensors");
  GpuHandle& gpu = gpu_handle(ordinal_);
  const std::lock_guard lock(gpu.mutex);
  check_cudnn(dnn.cudnnSetStream(gpu.handle, stream), "choosing a stream");
  check_cudnn(dnn.cudnnBackendExecute(gpu.handle, plan_->get(), pack.get()),
              "running a convolution");
}

}  // namespace tenon::cuda
