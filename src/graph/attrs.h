// Attrs: the typed parameters of a node, one small struct for each family of ops.
//
// Attrs is a value that is cheap to copy, compare and hash: small structs are stored inside, large
// ones are shared and immutable. Structs have no padding, because their bytes are compared. Numbers
// that change from step to step (learning rate, step number, seed) are leaves, never attributes:
// attributes are part of the program's key.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <variant>

#include <tenon/number.h>
#include <tenon/precision.h>
#include <tenon/shape.h>

namespace tenon {

/// A whole number if the node's dtype is integral or bool, otherwise a floating one (constant() of
/// ops/infer.h).
struct ConstantAttrs {
  Scalar value;
};

/// Whether the gradient of a Gather is kept as rows (optim/row_gradient.h). Only a Gather of whole
/// rows by one vector has such a gradient.
enum class RowForm : std::int64_t {
  None,
  Rows,   // a ScatterAdd of rows, whose numbers may repeat
  Summed  // the numbers are sorted, and the last of equal ones has their sum; the others are zero
};

/// Iota and Concat: the axis. Gather: out[.., j, ..] = x[.., index[.., j, ..], ..]; out and index
/// have the same shape, other axes agree with x. ScatterAdd: inputs (base, index, updates); returns
/// base with updates added where Gather would have read. Scatter: updates replace base there; of
/// equal positions the last one wins.
struct AxisAttrs {
  std::int64_t axis = 0;
  RowForm rows = RowForm::None;
};

enum class RandomKind : std::int64_t {
  Uniform,  // float32
  Normal,   // float32
  Bits      // raw 32-bit words, int64
};
struct RandomAttrs {
  RandomKind kind = RandomKind::Uniform;
  std::int64_t offset = 0;  // added to the counter: the index of this draw in its program
};

/// Result: the index of the result.
struct ResultAttrs {
  std::int64_t index = 0;
};

struct ReduceAttrs {
  std::int64_t axes = 0;  // bit mask
};

/// axes[a]: the input axis that becomes output axis a.
struct PermuteAttrs {
  std::uint8_t axes[kMaxRank] = {};
};

/// Element c of an axis is element start + c * step of the input's axis. Steps are not zero and may
/// be negative. Lengths are given by the node's shape.
struct SliceAttrs {
  std::int64_t start[kMaxRank] = {}, step[kMaxRank] = {};
};

struct PadAttrs {
  std::int64_t before[kMaxRank] = {}, after[kMaxRank] = {};  // elements added to each axis
  Scalar value;
};

/// Number of elements of a sorted row that are kept, whether the largest come first, and the first
/// one that is kept.
struct SortAttrs {
  std::int64_t count = 0, descending = 0, first = 0;
};

/// The result y along an axis, element t after element t - 1; x, a and b are inputs.
enum class RecurrenceKind : std::int32_t {
  Sum,      // y[t] = y[t-1] + x[t]
  Product,  // y[t] = y[t-1] x[t]
  Linear,   // y[t] = a[t] y[t-1] + b[t], 0 before the first; b[t] where a[t] is 0
  Largest,  // the index of the largest element so far: NaN wins, and of equal ones the last
  Smallest
};
struct RecurrenceAttrs {
  std::int32_t axis = 0;
  RecurrenceKind kind = RecurrenceKind::Sum;
  std::int64_t reverse = 0;  // from the last element to the first; not for indices
};

/// Fourier: results X[k] = scale Σ x[j] exp(∓2πi jk / length) along an axis, with + if `inverse`,
/// for k below `kept`. Numbers behind the given ones are zero or, if `mirrored`, conjugates: x[j] =
/// conj x[length - j]; then length / 2 + 1 numbers are given, of which the first and the middle one
/// are taken to be real, and the second result is zero.
struct FourierAttrs {
  std::int32_t axis = 0;
  std::int16_t inverse = 0, mirrored = 0;
  std::int64_t length = 1, kept = 1;
  double scale = 1;
};

/// ToDevice.
struct DeviceAttrs {
  std::int32_t kind = 0, index = 0;
};

enum class CollectiveKind : std::int32_t { AllReduce, Broadcast, AllGather, ReduceScatter };

/// Collective. Inputs: one tensor of each member, by rank. For Broadcast: the one tensor that is
/// sent to `members`, a bit mask of devices of kind `device`, ranked by index.
struct CollectiveAttrs {
  CollectiveKind kind = CollectiveKind::AllReduce;
  std::int32_t device = 0;
  std::uint64_t members = 0;
};

struct ConvAttrs {
  std::int64_t stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0, dil_h = 1, dil_w = 1, groups = 1;
};

/// Matmul: inputs are [.., M, K] and [.., K, N] with equal batch axes; `conv` is unused. Conv2d and
/// its gradients: the output shape is the node's own. `precision` says how float32 operands are
/// multiplied, captured when the node is built; for other dtypes it is Fp32.
struct ContractionAttrs {
  ConvAttrs conv;
  Precision precision = Precision::Fp32;
  std::uint8_t unused[7] = {};  // explicit padding
};

/// Causal attention: the query at position i sees keys up to position i. `precision` as in
/// contractions.
struct AttentionAttrs {
  double scale = 1;
  Precision precision = Precision::Fp32;
  bool causal = false;
  std::uint8_t unused[6] = {};  // explicit padding
};

/// count_include_pad affects average pooling only.
struct PoolAttrs {
  std::int64_t kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0,
               dil_h = 1, dil_w = 1;
  std::int64_t ceil_mode = 0, count_include_pad = 1;
};

/// x (k + alpha m)^-beta, with m the mean of the squares of `size` channels around each channel. If
/// `size` is even, there is one more channel before it than after it. Channels beyond the ends
/// count as zero.
struct ResponseAttrs {
  std::int64_t size = 1;
  double alpha = 1, beta = 1, k = 1;
  std::int64_t before() const { return size / 2; }
  std::int64_t after() const { return (size - 1) / 2; }
};

/// Formula: its number in ops/formula.h, and its whole parameter: an order, a degree or an axis.
struct FormulaAttrs {
  std::int64_t formula = 0, parameter = 0;
};

struct Body;

/// A 128-bit hash of a structure: two different structures have the same key with negligible
/// probability.
struct GraphKey {
  std::uint64_t lo = 0x243F6A8885A308D3ull, hi = 0x13198A2E03707344ull;
  void mix(std::uint64_t v) {
    lo = (lo ^ v) * 0x9E3779B97F4A7C15ull;
    lo ^= lo >> 29;
    hi = (hi + v) * 0xC2B2AE3D27D4EB4Full;
    hi ^= hi >> 31;
    hi += lo;
  }
  bool operator==(const GraphKey&) const = default;
};

/// Inputs: carries, rows [length, …], then the values that the body captures from outside. Results:
/// the final carries, then the body's other results, each [length, …].
struct ScanAttrs {
  GraphKey key;
  std::int64_t length = 0, reverse = 0, carries = 0, rows = 0;
  std::shared_ptr<const Body> body;
  // of the members before the body
  static constexpr std::size_t kWordBytes = 6 * sizeof(std::uint64_t);
};

/// Inputs: the predicate, operands of both branches, then the captured values of on_true and of
/// on_false.
struct CondAttrs {
  GraphKey key_true, key_false;
  std::int64_t operands = 0, captured = 0;  // of on_true
  std::shared_ptr<const Body> on_true, on_false;
  static constexpr std::size_t kWordBytes = 6 * sizeof(std::uint64_t);
  /// The index, after the predicate, of the input for a branch's parameter.
  std::int64_t input_of(bool branch, std::int64_t parameter) const {
    return branch || parameter < operands ? parameter : parameter + captured;
  }
};

struct HostCallTypes;
struct OwnKernelCode;

/// HostCall: inputs are the code (graph/host_code.h), then the arguments of the call. OwnKernel:
/// the arguments; `kernel` is the code, and `code` identifies it. `name` is the interned name of
/// the operation; `key` identifies the dtypes and shapes of the results.
struct HostCallAttrs {
  std::uint64_t name = 0;
  GraphKey key, code;
  std::shared_ptr<const HostCallTypes> types;
  std::shared_ptr<const OwnKernelCode> kernel;
  static constexpr std::size_t kWordBytes = 5 * sizeof(std::uint64_t);
};

struct ElementCode;

/// OwnElement: the key of the code, and the interned name of the operation.
struct ElementAttrs {
  GraphKey key;
  std::uint64_t name = 0;
  std::shared_ptr<const ElementCode> code;
  static constexpr std::size_t kWordBytes = 2 * sizeof(std::uint64_t);
};

struct FunctionRule;

/// Inputs: the values of the results, the arguments, what the forward computation saved, then what
/// the values depend on besides the arguments. The numbers count the first three. Result k is value
/// k; the gradient is the rule's. The rule is not in the program's key, because a plan contains the
/// values only.
struct FunctionAttrs {
  std::int64_t results = 0, arguments = 0, saved = 0;
  std::shared_ptr<const FunctionRule> rule;
  static constexpr std::size_t kWordBytes = 3 * sizeof(std::uint64_t);
};

class Attrs {
 public:
  Attrs() = default;
  template <class T>
  requires(!std::is_same_v<std::remove_cvref_t<T>, Attrs>) Attrs(const T& value)
      : value_(held(value)) {  // NOLINT: a struct is its attributes
    static_assert(word_bytes<T>() % sizeof(std::uint64_t) == 0);
  }

  /// The struct. Throws InternalError if the node has another one.
  template <class T>
  const T& as() const {
    const T* found = get_if<T>();
    if (found == nullptr) refuse();
    return *found;
  }
  template <class T>
  const T* get_if() const noexcept {
    if constexpr (sizeof(T) <= kInline) {
      return std::get_if<T>(&value_);
    } else {
      const auto* shared = std::get_if<std::shared_ptr<const T>>(&value_);
      return shared == nullptr ? nullptr : shared->get();
    }
  }

  bool operator==(const Attrs& other) const noexcept {  // NOLINT(bugprone-exception-escape): below
    if (value_.index() != other.value_.index()) return false;
    const Bytes a = bytes(), b = other.bytes();
    return a.data == b.data || std::memcmp(a.data, b.data, a.size) == 0;
  }

  /// Calls f with the struct's index, then with its words. Used for hashing.
  template <class F>
  void each_word(F&& f) const {
    f(static_cast<std::uint64_t>(value_.index()));
    const Bytes b = bytes();
    for (std::size_t at = 0; at < b.size; at += sizeof(std::uint64_t)) {
      std::uint64_t word;
      std::memcpy(&word, b.data + at, sizeof word);
      f(word);
    }
  }

 private:
  static constexpr std::size_t kInline = 16;
  /// All members of a struct, or the members that determine the rest.
  template <class T>
  static constexpr std::size_t word_bytes() {
    if constexpr (requires { T::kWordBytes; }) {
      return T::kWordBytes;
    } else {
      static_assert(std::is_trivially_copyable_v<T>);
      return sizeof(T);
    }
  }
  struct Bytes {
    const char* data = nullptr;
    std::size_t size = 0;
  };

  template <class T>
  static auto held(const T& value) {
    if constexpr (sizeof(T) <= kInline)
      return value;
    else
      return std::make_shared<const T>(value);
  }
  template <class T>
  static Bytes bytes_of(const T& value) noexcept {
    return {reinterpret_cast<const char*>(&value), sizeof value};
  }
  template <class T>
  static Bytes bytes_of(const std::shared_ptr<const T>& value) noexcept {
    return {reinterpret_cast<const char*>(value.get()), word_bytes<T>()};
  }
  static Bytes bytes_of(std::monostate) noexcept { return {}; }
  Bytes bytes() const noexcept {  // NOLINT(bugprone-exception-escape): never without a value
    return std::visit([](const auto& value) { return bytes_of(value); }, value_);
  }
  [[noreturn]] void refuse() const;

  template <class T>
  using Shared = std::shared_ptr<const T>;
  std::variant<std::monostate, ConstantAttrs, AxisAttrs, RandomAttrs, ReduceAttrs, PermuteAttrs,
               DeviceAttrs, ResultAttrs, AttentionAttrs, CollectiveAttrs, FormulaAttrs,
               RecurrenceAttrs, Shared<SortAttrs>, Shared<FourierAttrs>, Shared<SliceAttrs>,
               Shared<PadAttrs>, Shared<ContractionAttrs>, Shared<PoolAttrs>, Shared<ScanAttrs>,
               Shared<CondAttrs>, Shared<ResponseAttrs>, Shared<HostCallAttrs>,
               Shared<FunctionAttrs>, Shared<ElementAttrs>>
      value_;
};

}  // namespace tenon
