// Modules: the building blocks of networks, with named parameters, buffers and child modules.
//
// A module is a handle: copies share parameters, mode and children, as copies of a Tensor share one
// value. A new module class derives from Module (one tensor in, one tensor out; containers and the
// Trainer accept it) or from ModuleOf (any inputs and outputs). The constructor registers
// parameters, buffers and children; forward() computes the output. See examples/.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include <tenon/each_tensor.h>
#include <tenon/precision.h>
#include <tenon/print.h>
#include <tenon/tensor.h>

namespace tenon {

/// Tensors by name. Modules, optimizers and checkpoints save and load state in this form; PyTorch's
/// state_dict.
using StateDict = std::map<std::string, Tensor>;

/// Modules, layers, initializers and losses; PyTorch's torch.nn.
namespace nn {

class AnyModule;
class ModuleBase;
struct ModuleState;
struct ModuleSummary;
struct Walk;

/// A parameter or buffer and its name.
struct NamedTensor {
  std::string name;  ///< Path inside the module, for example "features.0.weight".
  Tensor tensor;     ///< The variable itself, not a copy.
};

/// Runs before a module's forward(). `inputs` are the tensors inside the arguments of the call, in
/// order; the hook may replace them. PyTorch: `register_forward_pre_hook`.
using ForwardPreHook = std::function<void(const ModuleBase& module, std::vector<Tensor>& inputs)>;
/// Runs after a module's forward(). `outputs` are the tensors inside the result, in order; the hook
/// may replace them. PyTorch: `register_forward_hook`.
using ForwardHook = std::function<void(const ModuleBase& module, std::span<const Tensor> inputs,
                                       std::vector<Tensor>& outputs)>;
/// Runs when grad() has built the gradients with respect to a module's inputs, which the hook may
/// replace. If no input depends on a parameter that learns, as in the first layer of a network, it
/// runs when grad() has built those of the outputs, and the gradients of the inputs are undefined.
/// PyTorch: `register_full_backward_hook`.
using BackwardHook =
    std::function<void(const ModuleBase& module, std::vector<Tensor>& input_gradients,
                       std::span<const Tensor> output_gradients)>;

/// Removes a hook from its module. The hook stays if the handle is dropped. PyTorch:
/// `RemovableHandle`.
class TENON_API HookHandle {
 public:
  /// A handle without a hook.
  HookHandle() = default;
  /// Removes the hook. Does nothing if the hook was removed before or the module is gone.
  void remove();

 private:
  friend class ModuleBase;
  std::weak_ptr<ModuleState> state_;
  std::uint64_t id_ = 0;
};

/// Common base of Module and ModuleOf: parameters, buffers, children, mode and state. A copy of a
/// module is a second handle to the same parameters.
class TENON_API ModuleBase {
 public:
  virtual ~ModuleBase();
  /// Copies the handle: both modules share parameters, mode and children.
  ModuleBase(const ModuleBase& other);
  /// Replaces the handle; the module's previous state is released if no other handle uses it.
  /// Compiled functions that call the module through this handle are traced again.
  ModuleBase& operator=(const ModuleBase& other);

  /// The module's type and settings as text, for example "Conv2d(1, 6, kernel_size=(5, 5),
  /// padding=(2, 2))". The default is the type's name without namespaces. PyTorch's `extra_repr`.
  virtual std::string describe() const;
  /// The tree of modules, one line each with its describe(), and the number of parameters. Equal
  /// neighbours in a list are one line. Needs no input; summary() also has the output shapes.
  /// PyTorch: `print(net)`.
  std::string str() const;

  /// All parameters of this module and its children in order of registration. A parameter that is
  /// registered several times (tied weights) appears once. Names are paths ("features.0.weight").
  std::vector<NamedTensor> named_parameters() const;
  /// All buffers of this module and its children, named and ordered as named_parameters().
  std::vector<NamedTensor> named_buffers() const;
  /// The tensors of named_parameters().
  std::vector<Tensor> parameters() const;
  /// The parameters that are not frozen. Pass these to an optimizer.
  std::vector<Tensor> trainable_parameters() const;
  /// trainable_parameters() with names.
  std::vector<NamedTensor> named_trainable_parameters() const;
  /// The direct children and their names, in order of registration.
  std::vector<std::pair<std::string, AnyModule>> children() const;
  /// Number of elements of all parameters, frozen ones included.
  std::int64_t parameter_count() const;

  /// Sets training mode (for example, dropout is active) or evaluation mode for this module and all
  /// modules below it. A new module is in training mode.
  void train(bool on = true);
  /// Sets evaluation mode: train(false).
  void eval() { train(false); }
  /// Whether the module is in training mode.
  bool is_training() const;
  /// Freezes parameters: optimizers do not change them, even optimizers that were created earlier,
  /// and trainable_parameters() omits them. A compiled step is traced again. With a path
  /// ("features" or "0.weight"), freezes only the parameters at that path; throws ValueError if
  /// there are none. PyTorch: `requires_grad_(False)`.
  void freeze(const std::string& path = "") { set_frozen(path, true); }
  /// Reverses freeze(), for all parameters or for those at a path.
  void unfreeze(const std::string& path = "") { set_frozen(path, false); }

  /// Sets the precision of matrix products and convolutions in this module and all modules below
  /// it. It overrides the context's precision; a setting on a module further down overrides this
  /// one. With a path ("features.0"), sets only that module and those below it; throws ValueError
  /// if there is no such module. Compiled functions that call the module are traced again.
  void set_precision(Precision precision, const std::string& path = "");
  /// Whether set_precision() gave this precision to this module or to a module below it.
  bool has_precision(Precision precision) const;

  /// Converts all floating-point parameters and buffers of this module and the modules below it to
  /// a floating-point dtype: `net.to(DType::Float64)`. The variables stay the same ones. Tensors
  /// that were built from them before are refused when they are evaluated or differentiated.
  /// Convert before you create the optimizer, whose state has the dtype of its parameters. Throws
  /// ValueError for an integer or bool dtype and inside a function that is being compiled. PyTorch:
  /// `to`, `double`, `half`.
  void to(DType dtype);

  /// Adds a hook; hooks run in the order in which they were added, at each call of this module
  /// through any handle. A hook adds operations to the graph or observes the call. In a compiled
  /// function it runs when the function is traced, and adding or removing a hook traces the
  /// function again; a hook that reads values cannot be traced. clone() copies hooks. Throws
  /// ValueError for an empty function, and for a list of modules, which is not called.
  /// @{
  HookHandle register_forward_pre_hook(ForwardPreHook hook);
  HookHandle register_forward_hook(ForwardHook hook);
  HookHandle register_full_backward_hook(BackwardHook hook);
  /// @}

  /// All parameters and buffers by name: the variables themselves, not copies.
  StateDict state_dict() const;
  /// Copies values into parameters and buffers and converts dtypes. Returns the number of tensors
  /// loaded. Checks everything before it writes anything: throws ValueError that names missing and
  /// unexpected keys (with similar names), and ShapeError that names tensors of another shape. With
  /// `strict` off, missing and unexpected keys are ignored.
  int load_state_dict(const StateDict& state, bool strict = true);

 protected:
  /// A module without parameters, buffers or children, in training mode.
  ModuleBase();
  /// Registers a parameter and returns its variable. `init` is evaluated at once. The name must be
  /// unique in this module and contain no dot. PyTorch: `register_parameter`.
  Tensor parameter(const std::string& name, const Tensor& init);
  /// Registers a parameter of another module under a name of this module (tied weights) and returns
  /// the parameter. The tensor is counted, saved and updated once, under the first of its paths. A
  /// state dict to load may contain any of its names. Throws ValueError if the tensor is not a
  /// parameter.
  Tensor tie(const std::string& name, const Tensor& parameter);
  /// Registers state that is saved but not trained, and returns its variable. PyTorch:
  /// `register_buffer`.
  Tensor buffer(const std::string& name, const Tensor& init);
  /// Assigns a new value to a buffer from within forward(): `update(mean_, 0.9 * mean_ + 0.1 *
  /// batch_mean)`. The outputs of the module call carry the assignment, so it takes effect once,
  /// when the loss is evaluated by compute(), step(loss), a compiled function or the Trainer. If
  /// the Trainer skips a step, it skips the assignment too. In evaluation mode update() does
  /// nothing (with_updates() works in both modes). Throws ValueError outside of a module call and
  /// for a second value of the same buffer; ShapeError or DTypeError if the value's shape or dtype
  /// differs from the buffer's.
  void update(const Tensor& buffer, const Tensor& value) const;
  /// Registers a child module and returns it: `conv_(child("conv", nn::Conv2d(1, 6, 5)))`.
  template <class M>
  requires std::derived_from<M, ModuleBase> M child(const std::string& name, M module);

  /// The state of one module call, while forward() runs. Nodes that forward() builds get the
  /// module's path (a Scope), so errors and plans show it, and the module's precision. Buffer
  /// updates are collected and attached to the outputs.
  class TENON_API Call {
   public:
    /// Begins a call of the module.
    explicit Call(const ModuleBase& module);
    ~Call();
    Call(const Call&) = delete;             ///< Not copyable.
    Call& operator=(const Call&) = delete;  ///< Not copyable.
    /// Records the tensors inside the inputs, if a hook or a CallObserver needs them.
    template <class... In>
    void take_inputs(const In&... in) {
      if (needs_inputs())
        (detail::visit_tensors(in, [this](const Tensor& t) { take_input(t); }), ...);
    }
    /// Whether hooks may replace the inputs that take_inputs() recorded.
    bool replaces_inputs() const { return replaces_inputs_; }
    /// Calls the hooks that may replace inputs, and writes their results to the tensors inside
    /// `in`, which are copies of what take_inputs() got.
    template <class... In>
    void replace_inputs(In&... in) {
      call_input_hooks();
      std::size_t next = 0;
      (detail::visit_tensors(in, [&](auto& t) { replace_input(t, next++); }), ...);
    }
    /// Calls the hooks that may replace outputs, attaches the collected buffer updates to the
    /// tensors inside `out`, and ends the call.
    template <class Out>
    void give_outputs(Out& out) {
      const auto visit = [this](Tensor& t) { visit_output(t); };
      if (hooks_outputs_) {
        detail::visit_tensors(out, visit);
        call_output_hooks();
      }
      detail::visit_tensors(out, visit);
      end();
    }

   private:
    friend class ModuleBase;
    bool needs_inputs() const;
    void take_input(const Tensor& input);
    void call_input_hooks();
    void replace_input(Tensor& input, std::size_t k) const;
    void replace_input(const Tensor& input, std::size_t k) const;
    void visit_output(Tensor& output);
    void call_output_hooks();
    void end();
    const ModuleBase& module_;
    std::size_t path_length_;  // of the module that calls
    std::optional<Scope> scope_;
    std::optional<PrecisionScope> precision_;
    std::vector<Tensor> updates_, inputs_, outputs_;
    std::vector<Tensor> hooked_;  // outputs after the hooks
    std::size_t given_ = 0;       // number of those that are written back
    struct Gradients;
    std::shared_ptr<Gradients> gradients_;  // for backward hooks
    bool replaces_inputs_ = false, hooks_outputs_ = false, inputs_learn_ = false;
    Call* outer_;
  };
  /// The summary of the layers that `call` calls.
  ModuleSummary summary_of(const std::function<void()>& call) const;

 private:
  friend class AnyModule;
  friend struct Walk;
  static thread_local Call* t_call;
  template <class Hook>
  HookHandle add_hook(const char* function, Hook hook);
  void add_entry(const std::string& name, const Tensor& tensor, bool is_buffer);
  void add_child(const std::string& name, const AnyModule& module);
  void set_frozen(const std::string& path, bool frozen);
  std::shared_ptr<ModuleState> state_;
  mutable bool traced_ = false;  // a compiled function has called the module through this handle
};

/// Writes the module's str().
TENON_API std::ostream& operator<<(std::ostream& out, const ModuleBase& module);

/// Implementation.
namespace detail {
/// While it lives, copies that this thread makes of a module's handles refer to its clone.
class TENON_API CloneScope {
 public:
  /// Begins to clone `module`, an object of type `type`.
  CloneScope(const ModuleBase& module, const std::type_info& type);
  ~CloneScope();
  CloneScope(const CloneScope&) = delete;             ///< Not copyable.
  CloneScope& operator=(const CloneScope&) = delete;  ///< Not copyable.

  struct Impl;  ///< The implementation, for use in the library.

 private:
  friend class nn::AnyModule;
  static std::shared_ptr<const ModuleBase> object_of(const AnyModule& module);
  void end() noexcept;
  std::unique_ptr<Impl> impl_;
};
}  // namespace detail

/// A deep copy: a module of the same type with parameters, buffers and children of its own. Values,
/// names, modes, frozen parameters, precisions and hooks are those of the original, and weights
/// that are tied inside the module are tied inside the copy. It works for every class, also your
/// own: the copy constructor copies the members, and handles to modules and variables that are
/// registered below `module` are replaced by handles to their copies, also in vectors, maps,
/// optionals and captures of lambdas.
///
/// The limit: what a member points to (a pointer, a reference, a std::shared_ptr) stays shared,
/// and so does what is not registered, such as a teacher or a Generator. Optimizers and compiled
/// functions of the original keep referring to the original.
///
/// Throws ValueError if `module` is a reference to a base class of the object's type and inside a
/// function that is being compiled, and NotSupported if a child cannot be copied (it is not copy
/// constructible, or its AnyModule was made of a pointer to a base class). PyTorch:
/// `copy.deepcopy(net)`, `net->clone()`.
template <class M>
requires std::derived_from<M, ModuleBase> M clone(const M& module) {
  const detail::CloneScope scope(module, typeid(M));
  return M(module);
}

/// A module that maps one tensor to one tensor. Most layers are Modules; containers, AnyModule and
/// the Trainer accept them.
class TENON_API Module : public ModuleBase {
 public:
  /// Calls the module: runs forward() with the module's scope and precision, and attaches buffer
  /// updates to the result.
  Tensor operator()(const Tensor& x) const;
  /// Builds the output from the input. Defined by each module; call the module itself, not
  /// forward(), so that scope, precision and buffer updates apply.
  virtual Tensor forward(const Tensor& x) const = 0;
  /// The layers with output shapes, parameters and multiply-adds, for one float32 input of this
  /// shape (batch axis included). Builds the graph and computes nothing.
  ModuleSummary summary(const Shape& input) const;
  /// The same for an input of any dtype, for example a language model's tokens:
  /// `net.summary(zeros({8, 64}, DType::Int64))`.
  ModuleSummary summary(const Tensor& input) const;
};

/// A module with any inputs and outputs. `Self` is the class that derives from this one:
///
///     struct Attention : nn::ModuleOf<Attention> {
///       Tensor forward(const Tensor& query, const Memory& memory, const Tensor& mask = {}) const;
///     };
///
/// The module is called with the arguments of its forward(). Arguments and results may contain
/// tensors in ranges, pairs, optionals and plain structs (each_tensor.h); other arguments are
/// passed on unchanged. If forward() takes one tensor and returns one, containers and AnyModule
/// accept the module too. `Base` may be a class derived from ModuleBase that several such modules
/// share.
template <class Self, class Base = ModuleBase>
class ModuleOf : public Base {
 public:
  using Base::Base;
  /// Calls the module: runs forward() with the module's scope and precision, and attaches buffer
  /// updates to the results.
  template <class... In>
  auto operator()(In&&... in) const {
    ModuleBase::Call call(*this);
    call.take_inputs(in...);
    auto out = call.replaces_inputs()
                   ? forward_replaced(call, std::forward<In>(in)...)
                   : static_cast<const Self&>(*this).forward(std::forward<In>(in)...);
    call.give_outputs(out);
    return out;
  }
  /// As Module::summary(), for a call with these inputs, for example `net.summary(zeros({2, 3}),
  /// mask)`.
  template <class... In>
  ModuleSummary summary(const In&... in) const;

 private:
  // How forward_replaced() holds an argument: as a copy; arrays, which hold no tensors, and other
  // arguments than tensors of a forward() that changes its arguments, as a reference.
  template <class In, bool kOnlyReads>
  using Held =
      std::conditional_t<std::is_array_v<std::remove_reference_t<In>> ||
                             !(kOnlyReads || std::is_same_v<std::remove_cvref_t<In>, Tensor>),
                         In&&, std::remove_cvref_t<In>>;
  // Calls forward() with arguments whose tensors hooks may replace.
  template <class... In>
  auto forward_replaced(ModuleBase::Call& call, In&&... in) const {
    constexpr bool kOnlyReads = requires(const Self& self, const std::remove_cvref_t<In>&... read) {
      self.forward(read...);
    };
    std::tuple<Held<In, kOnlyReads>...> held(std::forward<In>(in)...);
    return std::apply(
        [&](auto&... argument) {
          call.replace_inputs(argument...);
          return static_cast<const Self&>(*this).forward(static_cast<In&&>(argument)...);
        },
        held);
  }
};

/// Types whose forward() takes one tensor and returns one tensor.
template <class M>
concept TakesOneTensor = requires(const M& m, const Tensor& x) {
  { m.forward(x) } -> std::same_as<Tensor>;
};

/// A handle to a module of any type. Containers store it and models::create() returns it. A module
/// with other inputs than one tensor can be stored and asked for its parameters; call it through
/// its own type, `(*any.as<Attention>())(…)`, because forward() throws NotSupported for it.
class TENON_API AnyModule final : public Module {
 public:
  /// Wraps a module; the conversion is implicit.
  template <class M>
  requires(std::derived_from<std::remove_cvref_t<M>, ModuleBase> &&
           !std::same_as<std::remove_cvref_t<M>, AnyModule>)
      AnyModule(M&& module)  // NOLINT: implicit by design
      : AnyModule(new std::remove_cvref_t<M>(std::forward<M>(module)),
                  call_of<std::remove_cvref_t<M>>(), copy_of<std::remove_cvref_t<M>>()) {}
  /// Shares an object. clone() refuses it if `M` is not the object's type. Throws ValueError for a
  /// null pointer.
  template <class M>
  requires std::derived_from<M, Module>
  explicit AnyModule(std::shared_ptr<M> module)
      : AnyModule(std::shared_ptr<const ModuleBase>(std::move(module)), call_of<Module>(),
                  copy_of<std::remove_const_t<M>>()) {}
  /// Copies the handle. There is no move constructor, so a moved-from AnyModule stays valid.
  AnyModule(const AnyModule& other);
  /// Replaces the handle.
  AnyModule& operator=(const AnyModule&) = default;
  Tensor forward(const Tensor& x) const override;
  std::string describe() const override { return module_->describe(); }
  /// Whether forward() of the module takes one tensor and returns one.
  bool takes_one_tensor() const { return call_ != nullptr; }
  /// The module as an `M`, or nullptr if it has another type.
  template <class M>
  const M* as() const {
    return dynamic_cast<const M*>(module_.get());
  }

 private:
  using CallOf = Tensor (*)(const ModuleBase& module, const Tensor& x);
  template <class M>
  static constexpr CallOf call_of() {
    if constexpr (TakesOneTensor<M>)
      return
          [](const ModuleBase& m, const Tensor& x) { return static_cast<const M&>(m).forward(x); };
    else
      return nullptr;
  }
  using CopyOf = const ModuleBase* (*)(const ModuleBase& module);
  template <class M>
  static constexpr CopyOf copy_of() {
    if constexpr (std::is_copy_constructible_v<M>)
      return
          [](const ModuleBase& m) -> const ModuleBase* { return new M(static_cast<const M&>(m)); };
    else
      return nullptr;
  }
  /// Takes ownership. A plain pointer, because std::shared_ptr<const M> would be instantiated for
  /// each class of modules.
  AnyModule(const ModuleBase* module, CallOf call, CopyOf copy);
  AnyModule(std::shared_ptr<const ModuleBase> module, CallOf call, CopyOf copy);
  friend class detail::CloneScope;
  std::shared_ptr<const ModuleBase> module_;
  CallOf call_;
  CopyOf copy_;
};

template <class M>
requires std::derived_from<M, ModuleBase> M ModuleBase::child(const std::string& name, M module) {
  add_child(name, AnyModule(module));
  return module;
}

/// The layers of a module with shapes, parameters and multiply-adds; made by summary().
struct ModuleSummary {
  /// One layer.
  struct Row {
    std::string path;                           ///< Path of the layer, for example "0".
    std::string kind;                           ///< Its describe(), for example "Conv2d(…)".
    std::vector<Shape> outputs;                 ///< Shape of each tensor that the layer returns.
    std::int64_t parameters = 0;                ///< Parameters of the layer without its children.
    std::int64_t multiply_adds = 0;             ///< Of its own matrix products and convolutions.
    TENON_API std::string output_text() const;  ///< The output shapes as text: "[2, 5], [2, 8]".
  };
  /// Layers without children, and others with parameters or products of their own, in call order.
  std::vector<Row> rows;
  std::vector<Shape> inputs;          ///< Shapes of the module's inputs.
  std::vector<Shape> outputs;         ///< Shapes of the module's outputs.
  std::int64_t parameters = 0;        ///< Number of parameter elements.
  std::int64_t trainable = 0;         ///< Number of parameter elements that are not frozen.
  std::int64_t parameter_bytes = 0;   ///< Bytes of all parameters.
  std::int64_t multiply_adds = 0;     ///< Multiply-adds of the whole forward pass.
  std::int64_t activation_bytes = 0;  ///< Bytes of the outputs of all rows.
  /// The table as text.
  TENON_API std::string str() const;
};

template <class Self, class Base>
template <class... In>
ModuleSummary ModuleOf<Self, Base>::summary(const In&... in) const {
  return this->summary_of([&] { (void)(*this)(in...); });
}

/// Calls a function after every module call of this thread, as long as the observer lives.
class TENON_API CallObserver {
 public:
  /// Receives the module's path, the module, and the tensors of its inputs and outputs.
  using Callback =
      std::function<void(const std::string& path, const ModuleBase& module,
                         std::span<const Tensor> inputs, std::span<const Tensor> outputs)>;
  /// Starts observing. Throws ValueError if `f` is empty.
  explicit CallObserver(Callback f);
  ~CallObserver();                                        ///< Stops observing.
  CallObserver(const CallObserver&) = delete;             ///< Not copyable.
  CallObserver& operator=(const CallObserver&) = delete;  ///< Not copyable.

 private:
  Callback function_;
  CallObserver* previous_;
  friend class ModuleBase;
};

}  // namespace nn
}  // namespace tenon
