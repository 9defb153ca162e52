// Calls host code (graph/host_code.h) on the memory of a program.
//
// The code fills all results. A result that nothing reads has no memory in the program, so it gets
// a part of the workspace.
#include <exception>
#include <string>
#include <vector>

#include <tenon/error.h>

#include "base/index.h"
#include "base/make_error.h"
#include "cpu/cpu.h"
#include "cpu/engines/run/workspace.h"
#include "graph/called.h"
#include "graph/host_code.h"
#include "graph/node.h"

namespace tenon::cpu {
namespace {

class HostCallKernel final : public Kernel {
 public:
  HostCallKernel(const Region& region, std::span<const Value> values)
      : o_(region.opaque), label_(region.label), name_(shown_name(o_.op, o_.attrs)) {
    for (std::size_t k = 1; k < o_.inputs.size(); ++k)
      dtypes_.push_back(values[at(o_.inputs[k])].dtype);
    for (std::size_t k = 0; k < o_.outs.size(); ++k)
      if (o_.outs[k] == kNoValue) workspace_bytes += unread_bytes(k);
  }

  void run(const Binding& binding) const override {
    const LabelGuard label(label_);  // errors name the layer that the op was built in
    const Called called(name_);
    std::vector<HostInput> inputs;
    for (std::size_t k = 1; k < o_.inputs.size(); ++k)
      inputs.emplace_back(binding.values[o_.inputs[k]], dtypes_[k - 1], o_.shapes[k]);
    std::vector<HostOutput> results;
    std::byte* unread = binding.workspace;
    for (std::size_t k = 0; k < o_.outs.size(); ++k) {
      const TensorType& type = types()[k];
      const bool is_read = o_.outs[k] != kNoValue;
      results.emplace_back(is_read ? binding.values[o_.outs[k]] : unread, type.dtype, type.shape,
                           is_read);
      if (!is_read) unread += unread_bytes(k);
    }
    call(code_at(binding.values[o_.inputs[0]]), inputs, results);
  }

 private:
  const std::vector<TensorType>& types() const { return o_.attrs.as<HostCallAttrs>().types->types; }
  std::size_t unread_bytes(std::size_t k) const {
    return whole_lines(at(types()[k].shape.numel()) * item_size(types()[k].dtype));
  }

  // An error that names an operation was made by where() in the code, and so names this one.
  void call(const HostCode& code, std::span<const HostInput> inputs,
            std::span<const HostOutput> results) const {
    try {
      code(inputs, results);
    } catch (const Error& error) {
      rethrow_named(error, where(name_));
    } catch (const std::exception& error) {
      std::throw_with_nested(make_error<Error>(where(name_), ": ", error.what()));
    }
  }

  const Opaque o_;
  const std::uint32_t label_;
  const char* const name_;
  std::vector<DType> dtypes_;
};

class HostCallEngine final : public Engine {
 public:
  const char* name() const override { return "host code"; }

  bool claims(const Region& region, std::span<const Value>, std::string* why) const override {
    const bool mine = region.kind == RegionKind::Opaque && region.opaque.op == Op::HostCall;
    if (!mine) *why = "runs the C++ functions of the user only";
    return mine;
  }
  std::unique_ptr<Kernel> prepare(const Region& region, std::span<const Value> values,
                                  int) const override {
    return std::make_unique<HostCallKernel>(region, values);
  }
};

}  // namespace

const Engine& host_call_engine() {
  static const HostCallEngine engine;
  return engine;
}

}  // namespace tenon::cpu
