// Attrs: the typed parameters of a node, one small struct for each family of ops.
//
// A value that is cheap to copy, compare and hash: small structs stand in it, large ones are shared
// and never change. Structs are plain words without padding, whose bits are what is compared. What
// changes from step to step (learning rate, step number, seed) is never an attribute but a leaf: an
// attribute is part of the program's key.
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

/// A whole number where the node's dtype is integral or bool, else a floating one (constant() of
/// ops/infer.h).
struct ConstantAttrs {
  Scalar value;
};

/// Iota, Concat; Gather: out[.., j, ..] = x[.., index[.., j, ..], ..], out and index have one
/// shape, other axes agree with x; ScatterAdd: inputs (base, index, updates), base with updates
/// added where Gather would have read; Scatter: with them in the base's place there, of equal
/// places the last.
struct AxisAttrs {
  std::int64_t axis = 0;
};

enum class RandomKind : std::int64_t {
  Uniform,  // float32
  Normal,   // float32
  Bits      // raw 32-bit words, int64
};
struct RandomAttrs {
  RandomKind kind = RandomKind::Uniform;
  std::int64_t offset = 0;  // added to the counter: which draw of a program this is
};

/// Result: which one.
struct ResultAttrs {
  std::int64_t index = 0;
};

struct ReduceAttrs {
  std::int64_t axes = 0;  // bit mask
};

/// Input axis that becomes output axis a.
struct PermuteAttrs {
  std::uint8_t axes[kMaxRank] = {};
};

/// Element c of an axis is element start + c * step of the input's; steps are not zero and may be
/// negative; lengths are the node's shape.
struct SliceAttrs {
  std::int64_t start[kMaxRank] = {}, step[kMaxRank] = {};
};

struct PadAttrs {
  std::int64_t before[kMaxRank] = {}, after[kMaxRank] = {};  // elements added to each axis
  Scalar value;
};

/// Elements of a row that are kept, and whether the largest come first.
struct SortAttrs {
  std::int64_t count = 0, descending = 0;
};

/// ToDevice.
struct DeviceAttrs {
  std::int32_t kind = 0, index = 0;
};

enum class CollectiveKind : std::int32_t { AllReduce, Broadcast, AllGather, ReduceScatter };

/// Collective. Inputs: what each member gives, by rank; Broadcast: what one gives to `members`, the
/// devices of kind `device` whose bits are set, ranked by index.
struct CollectiveAttrs {
  CollectiveKind kind = CollectiveKind::AllReduce;
  std::int32_t device = 0;
  std::uint64_t members = 0;
};

struct ConvAttrs {
  std::int64_t stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0, dil_h = 1, dil_w = 1, groups = 1;
};

/// Matmul, whose inputs are [.., M, K] and [.., K, N] with equal batch axes and which leaves `conv`
/// as it is; Conv2d and its gradients, whose own output shape stands in the node. `precision` is
/// how operands of float32 multiply, captured when the node is built; other dtypes say Fp32.
struct ContractionAttrs {
  ConvAttrs conv;
  Precision precision = Precision::Fp32;
  std::uint8_t unused[7] = {};  // in place of padding
};

/// The query at place i of a causal one sees keys up to place i. `precision` is as of contractions.
struct AttentionAttrs {
  double scale = 1;
  Precision precision = Precision::Fp32;
  bool causal = false;
  std::uint8_t unused[6] = {};  // in place of padding
};

/// count_include_pad concerns averages only.
struct PoolAttrs {
  std::int64_t kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0,
               dil_h = 1, dil_w = 1;
  std::int64_t ceil_mode = 0, count_include_pad = 1;
};

/// x (k + alpha m)^-beta, m the mean of the squares of `size` channels about each: of an even
/// number one more lies before it than behind. Channels beyond the ends are zero and counted.
struct ResponseAttrs {
  std::int64_t size = 1;
  double alpha = 1, beta = 1, k = 1;
  std::int64_t before() const { return size / 2; }
  std::int64_t after() const { return (size - 1) / 2; }
};

struct Body;

/// What stands for a body in a key.
struct BodyKey {
  std::uint64_t lo = 0, hi = 0;
};

/// Inputs: carries, rows [length, …], then what the body takes in beside them. Results: the last
/// carries, then the body's other results, [length, …] each.
struct ScanAttrs {
  BodyKey key;
  std::int64_t length = 0, reverse = 0, carries = 0, rows = 0;
  std::shared_ptr<const Body> body;
  static constexpr std::size_t kWordBytes = 6 * sizeof(std::uint64_t);  // what precedes the body
};

/// Inputs: the predicate, operands of both branches, then what the one and what the other takes in
/// beside them.
struct CondAttrs {
  BodyKey key_true, key_false;
  std::int64_t operands = 0, captured = 0;  // of on_true
  std::shared_ptr<const Body> on_true, on_false;
  static constexpr std::size_t kWordBytes = 6 * sizeof(std::uint64_t);
  /// Which inputs behind the predicate a branch's parameters are.
  std::int64_t input_of(bool branch, std::int64_t parameter) const {
    return branch || parameter < operands ? parameter : parameter + captured;
  }
};

class Attrs {
 public:
  Attrs() = default;
  template <class T>
  requires(!std::is_same_v<std::remove_cvref_t<T>, Attrs>) Attrs(const T& value)
      : value_(held(value)) {  // NOLINT: a struct is its attributes
    static_assert(word_bytes<T>() % sizeof(std::uint64_t) == 0);
  }

  /// The struct; an InternalError where the node holds another.
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

  /// Which struct, then its words: what a hash is made of.
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
  /// All of a struct, or what its other members follow from.
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
               DeviceAttrs, ResultAttrs, SortAttrs, AttentionAttrs, CollectiveAttrs,
               Shared<SliceAttrs>, Shared<PadAttrs>, Shared<ContractionAttrs>, Shared<PoolAttrs>,
               Shared<ScanAttrs>, Shared<CondAttrs>, Shared<ResponseAttrs>>
      value_;
};

}  // namespace tenon
