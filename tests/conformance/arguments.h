// Operands and arguments of samples, for the files that call the ops.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include <tenon/ops.h>

#include "conformance/samples.h"

namespace conformance {

using In = std::vector<Operand>;
using Out = std::vector<tenon::Tensor>;
using nlohmann::json;

inline const tenon::Tensor& tensor(const Operand& operand) {
  return std::get<tenon::Tensor>(operand);
}
inline const tenon::Tensor& tensor(const In& in, std::size_t k) { return tensor(in.at(k)); }
inline Out both(const tenon::ValuesAndIndices& found) { return {found.values, found.indices}; }
inline Out both(const std::pair<tenon::Tensor, tenon::Tensor>& found) {
  return {found.first, found.second};
}

inline Out tensors(const In& in) {
  Out out;
  for (const Operand& operand : in) out.push_back(tensor(operand));
  return out;
}

inline tenon::Ints ints(const json& args, const char* key) {
  return args.at(key).get<tenon::Ints>();
}
inline tenon::Pair pair(const json& args, const char* key) {
  return {args.at(key).at(0), args.at(key).at(1)};
}
inline bool flag(const json& args, const char* key) { return args.value(key, 0) != 0; }
inline double real(const json& args, const char* key) { return number(args.at(key)).real(); }
inline double real(const json& args, const char* key, double otherwise) {
  return args.contains(key) ? real(args, key) : otherwise;
}
inline tenon::DType dtype(const json& args) {
  return tenon::dtype_from_name(args.at("dtype").get<std::string>().c_str());
}
inline tenon::Reduction reduction(const json& args) {
  const auto name = args.at("reduction").get<std::string>();
  return name == "mean"  ? tenon::Reduction::Mean
         : name == "sum" ? tenon::Reduction::Sum
                         : tenon::Reduction::None;
}

}  // namespace conformance
