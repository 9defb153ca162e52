// Shared, Owned and Function: what std::shared_ptr, std::unique_ptr and std::function do for the
// public headers, without the half of the standard library that <memory> and <functional> pull in
// (together they would double the time to parse tenon.h).
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

namespace tenon {

/// Sole owner of an object; moves, never copies.
template <class T>
class Owned {
 public:
  Owned() noexcept = default;
  Owned(std::nullptr_t) noexcept {}  // NOLINT: as a pointer
  explicit Owned(T* object) noexcept : object_(object) {}
  Owned(Owned&& other) noexcept : object_(other.release()) {}
  template <class U>
  requires std::is_convertible_v<U*, T*> Owned(Owned<U>&& other)
  noexcept : object_(other.release()) {}  // NOLINT: converts as pointers do
  Owned& operator=(Owned&& other) noexcept {
    reset(other.release());
    return *this;
  }
  ~Owned() { reset(); }

  T* get() const noexcept { return object_; }
  T& operator*() const noexcept { return *object_; }
  T* operator->() const noexcept { return object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }
  bool operator==(std::nullptr_t) const noexcept { return object_ == nullptr; }
  T* release() noexcept { return std::exchange(object_, nullptr); }
  void reset(T* object = nullptr) noexcept { delete std::exchange(object_, object); }

 private:
  T* object_ = nullptr;
};

template <class T, class... Args>
Owned<T> own(Args&&... args) {
  return Owned<T>(new T(std::forward<Args>(args)...));
}

namespace detail {
struct SharedBlock {
  long count;
  void* object;
  void (*destroy)(void*);
};
}  // namespace detail

/// One of several owners of an object; counts atomically, so owners may live on different threads.
template <class T>
class Shared {
 public:
  Shared() noexcept = default;
  Shared(std::nullptr_t) noexcept {}  // NOLINT: as a pointer
  template <class U>
  requires std::is_convertible_v<U*, T*>
  explicit Shared(U* object)
      : object_(object),
        block_(object == nullptr ? nullptr
                                 : new Block{1, const_cast<std::remove_const_t<U>*>(object),
                                             [](void* p) { delete static_cast<U*>(p); }}) {}
  template <class U>
  requires std::is_convertible_v<U*, T*> Shared(Owned<U>&& other)
      : Shared(other.release()) {}  // NOLINT: converts as pointers do
  Shared(const Shared& other) noexcept : object_(other.object_), block_(other.block_) { retain(); }
  template <class U>
  requires std::is_convertible_v<U*, T*> Shared(const Shared<U>& other)
  noexcept : object_(other.object_), block_(other.block_) {  // NOLINT: converts as pointers do
    retain();
  }
  Shared(Shared&& other) noexcept
      : object_(std::exchange(other.object_, nullptr)),
        block_(std::exchange(other.block_, nullptr)) {}
  template <class U>
  requires std::is_convertible_v<U*, T*> Shared(Shared<U>&& other)
  noexcept  // NOLINT: converts as pointers do
      : object_(std::exchange(other.object_, nullptr)),
        block_(std::exchange(other.block_, nullptr)) {}
  Shared& operator=(Shared other) noexcept {
    std::swap(object_, other.object_);
    std::swap(block_, other.block_);
    return *this;
  }
  ~Shared() {
    if (block_ == nullptr || __atomic_sub_fetch(&block_->count, 1, __ATOMIC_ACQ_REL) != 0) return;
    block_->destroy(block_->object);
    delete block_;
  }

  T* get() const noexcept { return object_; }
  T& operator*() const noexcept { return *object_; }
  T* operator->() const noexcept { return object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }
  bool operator==(const Shared& other) const noexcept { return object_ == other.object_; }
  bool operator==(std::nullptr_t) const noexcept { return object_ == nullptr; }
  void reset() noexcept { *this = Shared(); }

 private:
  template <class U>
  friend class Shared;
  using Block = detail::SharedBlock;
  void retain() noexcept {
    if (block_ != nullptr) __atomic_add_fetch(&block_->count, 1, __ATOMIC_RELAXED);
  }
  T* object_ = nullptr;
  Block* block_ = nullptr;
};

template <class T, class... Args>
Shared<T> share(Args&&... args) {
  return Shared<T>(new T(std::forward<Args>(args)...));
}

template <class Signature>
class Function;

/// Any callable of a signature, copied by sharing it.
template <class R, class... Args>
class Function<R(Args...)> {
 public:
  Function() noexcept = default;
  Function(std::nullptr_t) noexcept {}  // NOLINT: as a pointer
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, Function> &&
           std::is_invocable_r_v<R, F&, Args...>)
      // NOLINTNEXTLINE: converts callables; the constraint keeps copies out
      Function(F&& f)
      : body_(new Body<std::remove_cvref_t<F>>(std::forward<F>(f))) {}
  R operator()(Args... args) const { return body_->call(std::forward<Args>(args)...); }
  explicit operator bool() const noexcept { return static_cast<bool>(body_); }

 private:
  struct Base {
    virtual ~Base() = default;
    virtual R call(Args... args) = 0;
  };
  template <class F>
  struct Body final : Base {
    template <class G>
    explicit Body(G&& g) : f(std::forward<G>(g)) {}  // NOLINT: made by Function alone
    R call(Args... args) override { return f(std::forward<Args>(args)...); }
    F f;
  };
  Shared<Base> body_;
};

}  // namespace tenon
