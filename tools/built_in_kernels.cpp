// Writes the store of kernels that are compiled ahead (cmake/TenonCubins.cmake): plans the
// reference networks for cards that need not be there, from the initial values of their weights
// over training and evaluation to the steps that 'tenon bench' times, and compiles every kernel
// that the plans ask for.
//
//   tenon_built_in STORE
#include <tenon/error.h>
#include <tenon/grad.h>
#include <tenon/io.h>
#include <tenon/models.h>
#include <tenon/optim.h>

#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "base/str.h"
#include "base/thread_pool.h"
#include "cuda/cuda.h"
#include "cuda/jit/built_in.h"
#include "cuda/jit/embedded.h"
#include "cuda/jit/jit.h"
#include "cuda/jit/nvrtc.h"
#include "graph/node.h"
#include "plan/program.h"
#include "train/resident.h"
#include "train/step.h"

using namespace tenon;

namespace {

struct Network {
  const char* model;
  const char* optimizer;
  std::int64_t batch;         // of 'tenon bench'
  std::int64_t batch_of_run;  // of 'tenon train', on sets of 28 x 28 pictures; 0: none
};

// The batches and optimizers of bench and of the models' recipes: tiles depend on sizes. The last
// is a narrower one of its kind.
const Network kNetworks[] = {{"lenet5", "sgd", 64, 64},
                             {"lenet5", "adam", 64, 64},
                             {"keras_cnn", "sgd", 128, 64},
                             {"keras_cnn", "adam", 128, 128},
                             {"fcn_r", "sgd", 1024, 0},
                             {"fcn_r", "adam", 1024, 256},
                             {"mlp:2048-512-512-512-2048", "sgd", 64, 0}};

cuda::Target card(int arch) {
  cuda::Target target;
  target.arch = arch;
  if (arch == 80) {  // an A100
    target.multiprocessors = 108;
    target.shared_bytes = 163 * 1024;
    target.l2_bytes = std::int64_t{40} << 20;
  }
  return target;
}

void plan_roots(const std::vector<Tensor>& roots, const cuda::Target& target,
                Arithmetic arithmetic) {
  std::vector<Node*> leaves;
  for (Node* node : topological_order(roots))
    if (node->realised()) leaves.push_back(node);
  PlanOptions options;
  options.engines = cuda::engines(target);
  options.device = {Device::Kind::Cuda, 0};
  options.arithmetic = arithmetic;
  plan_program(roots, leaves, options);
}

Owned<optim::Optimizer> optimizer_of(const Network& n, const nn::AnyModule& net,
                                     double weight_decay) {
  optim::OptimizerOptions options;
  options.weight_decay = weight_decay;
  if (std::string(n.optimizer) == "sgd") options.momentum = 0.9;
  return optim::create(n.optimizer, net, options);
}

/// What 'tenon bench' times, with and without weight decay, and predictions.
void plan_plain_steps(const Network& n, const cuda::Target& target, Arithmetic arithmetic) {
  const nn::AnyModule net = models::create(n.model);
  Shape space{n.batch};
  for (const std::int64_t extent : models::info(n.model).input) space.push_back(extent);
  const Tensor x = Tensor::from(std::vector<float>(static_cast<std::size_t>(space.numel())), space);
  const Tensor y =
      Tensor::from(std::vector<std::int64_t>(static_cast<std::size_t>(n.batch)), {n.batch});
  plan_roots({net(x)}, target, arithmetic);
  plan_roots({softmax(net(x))}, target, arithmetic);
  plan_roots({randn(space)}, target, arithmetic);
  plan_roots({randint(0, 10, {n.batch})}, target, arithmetic);
  for (const double decay : {0.0, 5e-4}) {
    const auto optimizer = optimizer_of(n, net, decay);
    const Tensor loss = cross_entropy(net(x), y);
    std::vector<Tensor> roots = optimizer->updates(grad(loss, optimizer->parameters()));
    roots.insert(roots.begin(), loss);
    plan_roots(roots, target, arithmetic);
  }
}

/// What 'tenon train' runs: initial weights, steps on a set in the card's memory, evaluation.
void plan_run(const Network& n, double decay, const cuda::Target& target, Arithmetic arithmetic) {
  constexpr std::int64_t kExamples = 1000, kTestBatch = 250;
  set_precision(arithmetic == Arithmetic::Fp16 ? Precision::Fp16 : Precision::Fp32);
  const nn::AnyModule net = models::create(n.model);
  for (const nn::NamedTensor& p : net.named_parameters())
    for (const Tensor& drawn : {nn::init::uniform(p.tensor.shape(), -0.1, 0.1),
                                nn::init::normal(p.tensor.shape(), 0, 0.1)})
      plan_roots({drawn}, target, arithmetic);
  const auto optimizer = optimizer_of(n, net, decay);
  train::TrainStep step(net, nn::CrossEntropyLoss(), *optimizer, train::TrainOptions());
  train::ResidentSet set;
  set.inputs = Tensor::from(std::vector<std::uint8_t>(kExamples * 784), {kExamples, 1, 28, 28});
  set.targets = Tensor::from(std::vector<std::int64_t>(kExamples), {kExamples});
  set.scaled = true;
  set.factor = 0.01F;
  set.offset = -0.4F;
  step.use(set);
  const std::vector<double> wide = optimizer->rates(1);
  const Shape groups{static_cast<std::int64_t>(wide.size())};
  const Tensor rates = optimizer->rate_dtype() == DType::Float64
                           ? Tensor::from(wide, groups)
                           : Tensor::from(std::vector<float>(wide.size(), 1.0F), groups);
  const Tensor numbers = Tensor::from(
      std::vector<std::int64_t>(static_cast<std::size_t>(n.batch_of_run)), {n.batch_of_run});
  plan_roots(step.graph_on_card(numbers, rates), target, arithmetic);

  net.eval();
  const Tensor x = Tensor::from(std::vector<float>(kTestBatch * 784), {kTestBatch, 1, 28, 28});
  const Tensor y = Tensor::from(std::vector<std::int64_t>(kTestBatch), {kTestBatch});
  const Tensor scores = net(x);
  plan_roots({cross_entropy(scores, y), scores}, target, arithmetic);
  set_precision(Precision::Fp32);
}

struct Job {
  cuda::Source source;
  int arch;            // that is asked of the compiler
  std::string option;  // what the key says
  std::string image;
};

void write_store(const std::string& path) {
  for (const int arch : {80, 90})
    for (const Network& network : kNetworks)
      for (const Arithmetic each :
           {Arithmetic::Fp32, Arithmetic::Tf32, Arithmetic::Bf16, Arithmetic::Fp16}) {
        plan_plain_steps(network, card(arch), each);
        if (network.batch_of_run == 0) continue;
        for (const double decay : {0.0, 5e-4}) plan_run(network, decay, card(arch), each);
      }

  std::vector<Job> jobs;
  for (const int arch : {80, 90})
    for (const cuda::Source& source : cuda::sources_without_card(arch)) {
      jobs.push_back({source, arch, cuda::nvrtc().choose_arch(arch).option, {}});
      if (arch == 80) jobs.push_back({source, 0, "--gpu-architecture=compute_80", {}});
    }
  parallel_for(static_cast<std::int64_t>(jobs.size()), [&](std::int64_t i, int) {
    Job& job = jobs[static_cast<std::size_t>(i)];
    const cuda::CompileResult result = cuda::nvrtc().compile(
        job.source.text, job.source.entry + ".cu", cuda::headers_of(job.source.text), job.arch);
    if (result.image.empty())
      throw NotSupported(
          cat(job.source.entry, " does not compile with ", job.option, ":\n", result.log));
    job.image = result.image;
  });

  std::vector<cuda::BuiltIn> kernels;
  kernels.reserve(jobs.size());
  for (const Job& job : jobs)
    kernels.push_back({cuda::built_in_key(job.source, job.option), job.image});
  const int toolkit = 1000 * cuda::nvrtc().major + 10 * cuda::nvrtc().minor;
  const std::string store = cuda::make_store(toolkit, kernels);
  io::write_file(path, store);
  std::printf("%zu kernels, %zu bytes\n", kernels.size(), store.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: tenon_built_in STORE\n", stderr);
    return 2;
  }
  try {
    write_store(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tenon_built_in: %s\n", error.what());
    return 1;
  }
  return 0;
}
