// Reads samples: JSON names the position of each tensor in the flat tensors of a .safetensors file.
#include "conformance/samples.h"

#include <cstdlib>

using namespace tenon;
using nlohmann::json;

namespace conformance {

Sample::Sample(Pool pool, json record)
    : pool_(std::move(pool)),
      record_(std::move(record)),
      args_(record_.value("args", json::object())),
      op_(record_.at("op")),
      id_(record_.at("id")),
      dtype_(record_.at("dtype")) {}

Tensor Sample::tensor(const json& place) const {
  const Tensor& flat = pool_->at(place.at(0));
  const auto offset = place.at(1).get<std::size_t>() * item_size(flat.dtype());
  Shape shape;
  for (const json& size : place.at(2)) shape.push_back(size.get<std::int64_t>());
  return Tensor::from_data(static_cast<const std::byte*>(flat.data()) + offset, shape,
                           flat.dtype());
}

std::vector<Tensor> Sample::tensors(const char* key) const {
  std::vector<Tensor> out;
  if (record_.contains(key))
    for (const json& place : record_.at(key)) out.push_back(tensor(place));
  return out;
}

std::vector<Operand> Sample::operands() const {
  std::vector<Operand> out;
  for (const json& in : record_.at("in"))
    if (in.is_array())
      out.emplace_back(tensor(in));
    else
      out.emplace_back(number(in));
  return out;
}

std::vector<int> Sample::wrt() const { return record_.value("wrt", std::vector<int>()); }

Scalar number(const json& text) {
  if (text.contains("i")) return text.at("i").get<std::int64_t>();
  return std::strtod(text.at("f").get<std::string>().c_str(), nullptr);
}

SampleFile load_samples(const std::string& stem) {
  SampleFile file;
  const auto pool =
      std::make_shared<io::TensorMap>(io::load_safetensors(stem + ".safetensors").tensors);
  const json all = json::parse(io::read_file(stem + ".json"));
  for (const json& skipped : all.at("skipped"))
    file.skipped.push_back({skipped.at(0), skipped.at(1), skipped.at(2), skipped.at(3)});
  for (const json& record : all.at("samples")) file.samples.emplace_back(pool, record);
  return file;
}

}  // namespace conformance
