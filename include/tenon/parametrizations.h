// Parametrizations: layers one of whose parameters is computed from others in each call. Names in a
// state dict are those of torch.nn.utils.parametrize.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tenon/nn.h>

namespace tenon::nn {

/// Base of the classes below: a layer with one input and one output, and without children and
/// buffers, whose parameter `name` is value(). The other parameters keep their names. Constructors
/// throw ValueError for other layers and for a name that is no parameter. After net.to(dtype), call
/// the layer once before it is compiled.
class TENON_API ParametrizedLayer : public Module {
 public:
  Tensor forward(const Tensor& x) const override;
  /// The computed parameter.
  virtual Tensor value() const = 0;

 protected:
  /// Takes the values of the layer's parameters; changes of the layer have no effect afterwards.
  ParametrizedLayer(const AnyModule& layer, const std::string& name);
  /// Registers "parametrizations.NAME" with the parameters and children of `module`.
  void hold(const AnyModule& module);
  /// The parameter that the layer was made with.
  const Tensor& initial() const;
  /// The layer's describe().
  std::string layer_text() const;

 private:
  struct Inner;
  std::shared_ptr<Inner> inner_;
  std::vector<Tensor> kept_;  // the other parameters
};

/// The parameter is a function of one of the same name (PyTorch:
/// torch.nn.utils.parametrize.register_parametrization):
///
///     const nn::Parametrized symmetric(nn::Linear(3, 3), "weight", Symmetric());
///
/// where Symmetric is a Module that maps the original to the weight. In a state dict the original
/// is "parametrizations.NAME.original", and the state of the function is
/// "parametrizations.NAME.0.…".
class TENON_API Parametrized : public ParametrizedLayer {
 public:
  /// `function` is applied in each call. The original starts with the layer's value.
  Parametrized(const AnyModule& layer, const std::string& name, const AnyModule& function);
  Tensor value() const override;
  std::string describe() const override;

 protected:
  /// The original starts with another value.
  Parametrized(const AnyModule& layer, const std::string& name, const AnyModule& function,
               const Tensor& original);

 private:
  void hold_original(const std::string& name, const Tensor& original);
  Tensor original_;
  AnyModule function_;
};

/// Options of WeightNorm.
struct WeightNormOptions {
  std::string name = "weight";  ///< The parameter.
  std::optional<int> axis = 0;  ///< The axis with a norm for each index; none: one norm for all.
};
/// The parameter as a direction and its norms, g · v / |v| (Salimans and Kingma, 2016; PyTorch:
/// torch.nn.utils.parametrizations.weight_norm). g is "parametrizations.NAME.original0", v is
/// "parametrizations.NAME.original1".
class TENON_API WeightNorm : public ParametrizedLayer {
 public:
  /// The value of the parameter does not change.
  explicit WeightNorm(const AnyModule& layer, const WeightNormOptions& options = {});
  Tensor value() const override;
  std::string describe() const override;

 private:
  std::optional<int> axis_;
  Tensor norms_, direction_;
};

/// Options of SpectralNorm.
struct SpectralNormOptions {
  std::string name = "weight";    ///< The parameter.
  int n_power_iterations = 1;     ///< Steps of the power iteration in each call in training mode.
  double eps = 1e-12;             ///< Smallest norm that vectors are divided by.
  int axis = 0;                   ///< The axis of the outputs; 1 for transposed convolutions.
  OptionalGenerator generator{};  ///< For the first vectors.
};
/// The parameter divided by its largest singular value (Miyato et al., 2018; PyTorch:
/// torch.nn.utils.parametrizations.spectral_norm). The buffers "parametrizations.NAME.0._u" and
/// "…._v" hold the singular vectors. Throws ValueError for an option out of range.
class TENON_API SpectralNorm : public Parametrized {
 public:
  /// Estimates the singular vectors with 15 iterations.
  explicit SpectralNorm(const AnyModule& layer, const SpectralNormOptions& options = {});
};

/// How Orthogonal makes orthonormal columns of the lower triangle L of a matrix, with A = L - Lᵀ.
enum class OrthogonalMap {
  MatrixExp,   ///< exp(A).
  Cayley,      ///< (I - A / 2)⁻¹ (I + A / 2).
  Householder  ///< Reflections at the columns below the diagonal.
};
/// Options of Orthogonal.
struct OrthogonalOptions {
  std::string name = "weight";  ///< The parameter.
  std::optional<OrthogonalMap> map =
      {};  ///< None: MatrixExp for square matrices, else Householder.
  /// Multiplies the result by a constant matrix, so that training begins with the orthogonal factor
  /// of the layer's value and near the identity (Lezcano-Casado, 2019).
  bool use_trivialization = true;
  OptionalGenerator generator{};  ///< For the columns that complete the constant matrix.
};
/// The parameter as matrices with orthonormal columns, or orthonormal rows if they are wider than
/// high; matrices are in the last two axes (PyTorch:
/// torch.nn.utils.parametrizations.orthogonal). The constant matrix is the buffer
/// "parametrizations.NAME.0.base". Needs LAPACK (linalg.h). Throws ValueError for a parameter with
/// fewer than two axes.
class TENON_API Orthogonal : public Parametrized {
 public:
  /// The parameter becomes the orthogonal factor of the layer's value; without trivialization and
  /// without Householder, some other orthogonal matrix.
  explicit Orthogonal(const AnyModule& layer, const OrthogonalOptions& options = {});

 private:
  Orthogonal(const AnyModule& layer, const std::string& name,
             const std::pair<AnyModule, Tensor>& made);
};

}  // namespace tenon::nn
