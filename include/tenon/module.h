// Modules: what networks are made of. Named parameters, buffers and children; modes; calls.
//
// A module is a handle: copies share parameters, mode and children, as copies of a Tensor share its
// value. One's own derives from Module (a tensor to a tensor, which containers and the Trainer
// take) or from ModuleOf (any inputs and outputs), registers what it is made of in its constructor
// and defines forward(); see examples/.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <tenon/each_tensor.h>
#include <tenon/precision.h>
#include <tenon/tensor.h>

namespace tenon {

/// Tensors by name: what modules, optimizers and checkpoints save and load.
using StateDict = std::map<std::string, Tensor>;

namespace nn {

class AnyModule;
struct ModuleState;
struct ModuleSummary;
struct Walk;

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

/// Base of everything that has parameters: what Module and ModuleOf have in common. Copying copies
/// the handle.
class TENON_API ModuleBase {
 public:
  virtual ~ModuleBase();
  ModuleBase(const ModuleBase&) = default;
  ModuleBase& operator=(const ModuleBase&) = default;

  /// "Conv2d(1, 6, kernel_size=(5, 5), padding=(2, 2))": kind and settings, for printing. Unless
  /// overridden the name of the type, without its namespaces.
  virtual std::string describe() const;

  /// All parameters (buffers) of this module and its children in order of registration, each once,
  /// named by path ("features.0.weight").
  std::vector<NamedTensor> named_parameters() const;
  std::vector<NamedTensor> named_buffers() const;
  std::vector<Tensor> parameters() const;
  /// The parameters that are not frozen: what an optimizer is given.
  std::vector<Tensor> trainable_parameters() const;
  std::vector<NamedTensor> named_trainable_parameters() const;
  std::vector<std::pair<std::string, AnyModule>> children() const;
  std::int64_t parameter_count() const;

  /// Training mode (dropout draws) or evaluation mode, for this module and all below. A new module
  /// trains.
  void train(bool on = true) const;
  void eval() const { train(false); }
  bool is_training() const;
  /// Optimizers leave frozen parameters alone, whenever they were made, and trainable_parameters()
  /// leaves them out; a compiled step keeps what was frozen when it was traced. With a path
  /// ("features" or "0.weight") only what lies there; throws ValueError when nothing does.
  void freeze(const std::string& path = "") const { set_frozen(path, true); }
  void unfreeze(const std::string& path = "") const { set_frozen(path, false); }

  /// Products of this module and of all below compute in `precision`, whatever the process's is; a
  /// module further down may say otherwise. With a path ("features.0") only there; throws
  /// ValueError when there is no such module. Functions that are compiled already keep what they
  /// traced.
  void set_precision(Precision precision, const std::string& path = "") const;
  /// Whether a module here or below was given this precision.
  bool has_precision(Precision precision) const;

  /// The variables themselves (not copies) of parameters and buffers.
  StateDict state_dict() const;
  /// Writes values into parameters and buffers. Throws ValueError naming missing and unexpected
  /// keys (with near misses) and ShapeError naming those that do not fit, before anything is
  /// written. Dtypes are converted. With `strict` off, keys that are missing or unexpected are left
  /// alone; returns how many were loaded.
  int load_state_dict(const StateDict& state, bool strict = true) const;

 protected:
  ModuleBase();
  /// Registers a parameter (variable); `init` is evaluated now. Names are unique and without dots.
  Tensor parameter(const std::string& name, const Tensor& init);
  /// Registers a parameter of another module under a name of this one (tied weights): one tensor,
  /// which is counted, saved and updated once, under the first of its paths. A state dict may hold
  /// any of its names. Returns it. Throws ValueError for what is no parameter.
  Tensor tie(const std::string& name, const Tensor& parameter);
  /// State that is saved but not trained.
  Tensor buffer(const std::string& name, const Tensor& init);
  /// Renews a buffer, from within forward(): `update(mean_, 0.9 * mean_ + 0.1 * batch_mean)`. What
  /// this call returns carries it, so it happens, once, with whatever evaluates the loss: eval(),
  /// step(loss), a compiled function, the Trainer, which leaves it out where it leaves out the
  /// step. In evaluation mode this does nothing; with_updates() asks for no mode. Throws ValueError
  /// outside of a call and for a second value of the same buffer, ShapeError or DTypeError where
  /// the value does not fit.
  void update(const Tensor& buffer, const Tensor& value) const;
  /// Registers a child and returns it: `conv_(child("conv", nn::Conv2d(1, 6, 5)))`.
  template <class M>
  requires std::derived_from<M, ModuleBase> M child(const std::string& name, M module);

  /// One call of a module: what forward() builds lies in a Scope of the module's name, so that
  /// errors and plans quote the path, computes in the module's precision, and renews buffers that
  /// the outputs then carry.
  class TENON_API Call {
   public:
    explicit Call(const ModuleBase& module);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    template <class... In>
    void take_inputs(const In&... in) {
      if (is_observed())
        (detail::visit_tensors(in, [this](const Tensor& t) { inputs_.push_back(t); }), ...);
    }
    template <class Out>
    void give_outputs(Out& out) {
      detail::visit_tensors(out, [this](Tensor& t) { give(t); });
      end();
    }

   private:
    friend class ModuleBase;
    static bool is_observed();
    void give(Tensor& output);
    void end();
    const ModuleBase& module_;
    std::size_t path_length_;  // of the module that calls
    std::optional<Scope> scope_;
    std::optional<PrecisionScope> precision_;
    std::vector<Tensor> updates_, inputs_, outputs_;
    Call* outer_;
  };
  ModuleSummary summary_of(const std::function<void()>& call) const;

 private:
  friend class AnyModule;
  friend struct Walk;
  static thread_local Call* t_call;
  void add_entry(const std::string& name, const Tensor& tensor, bool is_buffer);
  void add_child(const std::string& name, const AnyModule& module);
  void set_frozen(const std::string& path, bool frozen) const;
  std::shared_ptr<ModuleState> state_;
};

/// A module of one tensor to one tensor: layers, and what containers, AnyModule and Trainer take.
class TENON_API Module : public ModuleBase {
 public:
  Tensor operator()(const Tensor& x) const;
  /// What the module computes. Call the module itself, not this.
  virtual Tensor forward(const Tensor& x) const = 0;
  /// Layers with output shapes, parameters and multiply-adds, for one input of this shape (batch
  /// axis included). Only builds the graph: nothing is computed.
  ModuleSummary summary(const Shape& input) const;
  /// For an input of another dtype, as a model of language takes: `net.summary(zeros({8, 64},
  /// DType::Int64))`.
  ModuleSummary summary(const Tensor& input) const;
};

/// A module of any inputs and outputs. `Self` is the class that derives from this one:
///
///   struct Attention : nn::ModuleOf<Attention> {
///     Tensor forward(const Tensor& query, const Memory& memory, const Tensor& mask = {}) const;
///   };
///
/// It is called like any module, with what its forward() takes. Tensors may stand in ranges, pairs,
/// optionals and plain structs (each_tensor.h); what else is given is passed on. Where forward()
/// takes one tensor and returns one, containers and AnyModule take the module too. `Base` may be a
/// class derived from ModuleBase that several such modules share.
template <class Self, class Base = ModuleBase>
class ModuleOf : public Base {
 public:
  using Base::Base;
  template <class... In>
  auto operator()(In&&... in) const {
    ModuleBase::Call call(*this);
    call.take_inputs(in...);
    auto out = static_cast<const Self&>(*this).forward(std::forward<In>(in)...);
    call.give_outputs(out);
    return out;
  }
  /// As Module::summary(), for a call with these inputs: `net.summary(zeros({2, 3}), mask)`.
  template <class... In>
  ModuleSummary summary(const In&... in) const;
};

template <class M>
concept TakesOneTensor = requires(const M& m, const Tensor& x) {
  { m.forward(x) } -> std::same_as<Tensor>;
};

/// Any module, by value: what containers keep and models::create() returns. One that takes other
/// inputs than one tensor can be held and asked for its parameters, and called as what it is:
/// `any.as<Attention>()`; forward() throws NotSupported for it.
class TENON_API AnyModule final : public Module {
 public:
  template <class M>
  requires(std::derived_from<std::remove_cvref_t<M>, ModuleBase> &&
           !std::same_as<std::remove_cvref_t<M>, AnyModule>)
      AnyModule(M&& module)  // NOLINT: implicit by design
      : AnyModule(new std::remove_cvref_t<M>(std::forward<M>(module)),
                  call_of<std::remove_cvref_t<M>>()) {}
  /// Throws ValueError for a null pointer.
  explicit AnyModule(std::shared_ptr<const Module> module);
  AnyModule(const AnyModule&) = default;  // no move: what was moved from stays a module
  AnyModule& operator=(const AnyModule&) = default;
  Tensor forward(const Tensor& x) const override;
  std::string describe() const override { return module_->describe(); }
  /// Whether forward() takes one tensor and returns one.
  bool takes_one_tensor() const { return call_ != nullptr; }
  /// The module as an M, or nullptr when it is something else.
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
  /// Takes ownership. No pointer of M's own: it would be made anew for each class of modules.
  AnyModule(const ModuleBase* module, CallOf call);
  AnyModule(std::shared_ptr<const ModuleBase> module, CallOf call);
  std::shared_ptr<const ModuleBase> module_;
  CallOf call_;
};

template <class M>
requires std::derived_from<M, ModuleBase> M ModuleBase::child(const std::string& name, M module) {
  add_child(name, AnyModule(module));
  return module;
}

struct ModuleSummary {
  struct Row {
    std::string path, kind;                     ///< "0", "Conv2d(…)"
    std::vector<Shape> outputs;                 ///< of each tensor that it returns
    std::int64_t parameters = 0;                ///< its own, without its children's
    std::int64_t multiply_adds = 0;             ///< of its own matrix products and convolutions
    TENON_API std::string output_text() const;  ///< "[2, 5], [2, 8]"
  };
  std::vector<Row>
      rows;  ///< leaf modules (and others with own parameters or products) in order of their calls
  std::vector<Shape> inputs, outputs;
  std::int64_t parameters = 0, trainable = 0, parameter_bytes = 0;
  std::int64_t multiply_adds = 0;     ///< of the whole forward pass
  std::int64_t activation_bytes = 0;  ///< sum of the rows' outputs
  /// The table as text.
  TENON_API std::string str() const;
};

template <class Self, class Base>
template <class... In>
ModuleSummary ModuleOf<Self, Base>::summary(const In&... in) const {
  return this->summary_of([&] { (void)(*this)(in...); });
}

/// While it lives, is called after every module call of this thread with the path, the module, and
/// the tensors that went in and came out.
class TENON_API CallObserver {
 public:
  using Callback =
      std::function<void(const std::string& path, const ModuleBase& module,
                         std::span<const Tensor> inputs, std::span<const Tensor> outputs)>;
  /// Throws ValueError when `f` is empty.
  explicit CallObserver(Callback f);
  ~CallObserver();
  CallObserver(const CallObserver&) = delete;
  CallObserver& operator=(const CallObserver&) = delete;

 private:
  Callback function_;
  CallObserver* previous_;
  friend class ModuleBase;
};

}  // namespace nn
}  // namespace tenon
