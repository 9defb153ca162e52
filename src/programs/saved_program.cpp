// Saving and loading programs: the file, and what a program takes. The graph itself is written and
// read by the files beside this one.
#include <tenon/saved_program.h>

#include <algorithm>
#include <array>
#include <memory>
#include <unordered_set>
#include <utility>

#include <tenon/error.h>
#include <tenon/shapes_only.h>

#include "base/make_error.h"
#include "graph/context.h"
#include "graph/node.h"
#include "io/tensors/safetensors.h"
#include "programs/batch_sizes.h"
#include "programs/graph_reader.h"
#include "programs/graph_writer.h"
#include "programs/program_file.h"
#include "programs/traced_function.h"

namespace tenon {

using io::Json;

struct SavedProgram::Impl {
  std::shared_ptr<const ProgramRecord> record;
  io::Metadata metadata;
  std::size_t results = 0;
  CompiledFunction function;
};

namespace {

constexpr char kGraphKey[] = "tenon.program";
constexpr std::int64_t kFormat = 1;

// ---- Saving

std::vector<TensorType> types_of(const std::vector<Tensor>& inputs) {
  std::vector<TensorType> types;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (!inputs[k].defined())
      throw ValueError(cat("save_program: inputs[", k, "] has no value: it was never assigned"));
    types.push_back({inputs[k].dtype(), inputs[k].shape()});
  }
  return types;
}

// The batch size of the batched inputs.
std::int64_t batch_of(const std::vector<TensorType>& types, const std::vector<int>& batched) {
  std::int64_t batch = -1;
  for (const int k : batched) {
    if (k < 0 || static_cast<std::size_t>(k) >= types.size())
      throw ValueError(cat("save_program: batched input ", k, " is outside the ", types.size(),
                           " inputs, which are counted from 0"));
    const Shape& shape = types[static_cast<std::size_t>(k)].shape;
    if (shape.rank() == 0)
      throw ShapeError(cat("save_program: batched input ", k, " has no axis for the batch"));
    if (batch >= 0 && shape[0] != batch)
      throw ShapeError(cat("save_program: the first axes of the batched inputs are ", batch,
                           " and ", shape[0], "; they must be equal"));
    batch = shape[0];
  }
  return batch;
}

std::vector<TensorType> with_batch(std::vector<TensorType> types, const std::vector<int>& batched,
                                   std::int64_t n) {
  for (const int k : batched) types[static_cast<std::size_t>(k)].shape[0] = n;
  return types;
}

struct SavedGraph {
  Json record;
  io::TensorMap weights;
};

SavedGraph graph_of(const CompiledFunction::Body& function, const std::vector<TensorType>& types,
                    Device device, const std::vector<int>& batched) {
  WeightNames names;
  const TracedFunction first = trace_function(function, types, device);
  if (batched.empty()) {
    Json record = record_of(first, names);
    return {std::move(record), names.tensors()};
  }
  // A batch of 1 has simpler graphs; of the others, one is odd and one even.
  const std::int64_t n = std::max<std::int64_t>(batch_of(types, batched), 2);
  const std::array<std::int64_t, 3> sizes{n, n + 1, 2 * n + 3};
  std::array<Json, 3> records;
  std::vector<TracedFunction> traces;  // leaves of all records live until the last is written
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    traces.push_back(trace_function(function, with_batch(types, batched, sizes[k]), device));
    names.begin_next_size();
    records[k] = record_of(traces.back(), names);
  }
  Json record = join_records(records, sizes);
  record.add("batch", n);
  return {std::move(record), names.tensors()};
}

void check_metadata(const io::Metadata& metadata) {
  for (const auto& [key, value] : metadata)
    if (key.starts_with("tenon."))
      throw ValueError(cat("save_program: the metadata key '", key,
                           "' is reserved: use one that does not begin with 'tenon.'"));
}

// ---- Loading

std::vector<ProgramInput> inputs_of(const Json& graph, std::int64_t batch) {
  std::vector<ProgramInput> inputs;
  const Json& nodes = graph.at("nodes");
  for (const Json& number : graph.at("inputs")) {
    const Json& row = nodes[number.get<std::size_t>()];
    if (row.at("input").get<std::size_t>() != inputs.size())
      throw Json::type_error("the inputs are not in order");
    TensorType type = type_of_record(row, batch);
    const Json::Array& sizes = row.at("shape").items();
    inputs.push_back({type.dtype, type.shape, !sizes.empty() && sizes[0].is_string()});
  }
  return inputs;
}

std::unordered_set<std::string> variables_of(const Json& graph) {
  std::unordered_set<std::string> variables;
  for (const Json& row : graph.at("nodes"))
    if (row.value("variable", false)) variables.insert(row.at("weight").text());
  return variables;
}

// The tensors on the current device.
io::TensorMap placed_weights(const io::TensorMap& stored,
                             const std::unordered_set<std::string>& variables) {
  io::TensorMap weights;
  for (const auto& [name, tensor] : stored) {
    const Tensor here = tensor.to(default_device()).compute();
    weights.emplace(name, variables.contains(name) ? variable(here, name) : here);
  }
  return weights;
}

// Builds the graph once, so that a damaged file is refused when it is loaded.
std::size_t checked_results(const ProgramRecord& program) {
  RandomTrace random;
  random.leaf = without_memory(Shape{2}, DType::Int64, default_device());
  const RandomTraceGuard guard(&random);
  std::vector<Tensor> inputs;
  for (const ProgramInput& input : program.inputs)
    inputs.push_back(without_memory(input.shape, input.dtype, default_device()));
  return build_program(program, inputs, program.batch, {}).size();
}

// The batch size of a call. Throws for inputs that the program does not take.
std::int64_t batch_of_call(const ProgramRecord& program, const std::vector<Tensor>& inputs) {
  const std::vector<ProgramInput>& wanted = program.inputs;
  if (inputs.size() != wanted.size())
    throw make_error<ValueError>("program ", program.name, ": it takes ", wanted.size(),
                                 " inputs, not ", inputs.size());
  std::int64_t n = -1;
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    const ProgramInput& input = wanted[k];
    Shape shape = input.shape;
    if (input.batched && inputs[k].rank() > 0) {
      if (n < 0) n = inputs[k].size(0);
      shape[0] = n;
    }
    if (inputs[k].node()->placed && inputs[k].device() != program.device)
      throw make_error<DeviceError>("program ", program.name, ": input ", k, " is on ",
                                    inputs[k].device().str(), ", the program on ",
                                    program.device.str(), ": move the input with to()");
    if (inputs[k].dtype() != input.dtype)
      throw make_error<DTypeError>("program ", program.name, ": input ", k, " is ",
                                   inputs[k].dtype(), ", must be ", input.dtype, ": cast it");
    if (inputs[k].shape() != shape)
      throw make_error<ShapeError>(
          "program ", program.name, ": input ", k, " is ", inputs[k].shape(), ", must be ", shape,
          input.batched ? ", with any first axis, the same for all inputs" : "");
  }
  return std::max<std::int64_t>(n, 0);
}

std::vector<Tensor> called(const ProgramRecord& program, const std::vector<Tensor>& inputs,
                           const OptionalGenerator& generator) {
  const std::int64_t n = batch_of_call(program, inputs);
  try {
    return build_program(program, inputs, n, generator);
  } catch (const FormatError& error) {  // the file was checked: it is the batch size
    throw ShapeError(cat(error.what(), ": the program cannot run with a batch of ", n));
  }
}

// Returns the names of the weights that are variables.
std::unordered_set<std::string> parse_graph(const std::string& text, ProgramRecord& record) {
  try {
    record.graph = io::parse_json(text);
    if (record.graph.at("format").get<std::int64_t>() > kFormat)
      throw make_error<NotSupported>(
          "the program was saved by Tenon ", record.graph.value("tenon", "of another version"),
          ", whose format this version (", TENON_VERSION, ") does not know: use a newer version");
    record.batch = record.graph.value("batch", std::int64_t{0});
    record.inputs = inputs_of(record.graph, record.batch);
    return variables_of(record.graph);
  } catch (...) {
    rethrow_at(record.name + ": ", record.name);
  }
}

SavedProgram opened(io::SafeTensors file, const std::string& name,
                    const OptionalGenerator& generator) {
  const auto found = file.metadata.find(kGraphKey);
  if (found == file.metadata.end())
    throw make_error<FormatError>(FileName{name}, " is no saved program: it has no '", kGraphKey,
                                  "': write one with save_program()");
  auto record = std::make_shared<ProgramRecord>();
  record->name = name;
  record->device = default_device();
  const auto variables = parse_graph(found->second, *record);
  record->weights = placed_weights(file.tensors, variables);
  file.metadata.erase(found);
  auto impl = std::make_shared<SavedProgram::Impl>();
  impl->results = checked_results(*record);
  impl->metadata = std::move(file.metadata);
  impl->record = record;
  impl->function = compile([record, generator](const std::vector<Tensor>& inputs) {
    return called(*record, inputs, generator);
  });
  return SavedProgram(std::move(impl));
}

}  // namespace

void save_program(const std::string& path, const CompiledFunction::Body& function,
                  const std::vector<Tensor>& inputs, const SaveProgramOptions& options) {
  if (!function) throw ValueError("save_program: the function is empty");
  check_metadata(options.metadata);
  const Device device =
      inputs.empty() || !inputs[0].defined() ? default_device() : inputs[0].device();
  SavedGraph saved = graph_of(function, types_of(inputs), device, options.batched);
  Json graph = Json::object();
  graph.add("format", kFormat);
  graph.add("tenon", TENON_VERSION);
  for (const auto& [key, value] : saved.record.members()) graph.add(key, value);
  io::Metadata metadata = options.metadata;
  metadata[kGraphKey] = io::json_text(graph);
  io::save_checked_safetensors(path, saved.weights, metadata);
}

SavedProgram load_program(const std::string& path, const OptionalGenerator& generator) {
  return opened(io::load_safetensors(path), path, generator);
}

SavedProgram parse_program(std::string_view bytes, const std::string& name) {
  return opened(io::parse_safetensors(bytes, name), name, {});
}

SavedProgram program_of_graph(const std::string& graph, io::TensorMap tensors,
                              const std::string& name) {
  return opened({std::move(tensors), {{kGraphKey, graph}}}, name, {});
}

const SavedProgram::Impl& SavedProgram::held() const {
  if (impl_ == nullptr)
    throw ValueError("a saved program was used before it was loaded: assign load_program(path)");
  return *impl_;
}
Outputs SavedProgram::operator()(const std::vector<Tensor>& inputs) const {
  return held().function(inputs);
}
const std::vector<ProgramInput>& SavedProgram::inputs() const { return held().record->inputs; }
std::size_t SavedProgram::result_count() const { return held().results; }
const io::TensorMap& SavedProgram::weights() const { return held().record->weights; }
const io::Metadata& SavedProgram::metadata() const { return held().metadata; }

}  // namespace tenon
