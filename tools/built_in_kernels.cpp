// Writes the store of kernels that are compiled ahead (cmake/TenonCubins.cmake): plans the
// reference networks for cards that need not be there and compiles every kernel that the plans ask
// for.
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

using namespace tenon;

namespace {

struct Network {
  const char* model;
  const char* optimizer;
  std::int64_t batch;
};

// The kernels depend on the sizes' patterns alone, so the wide one may be narrower here.
const Network kNetworks[] = {{"lenet5", "sgd", 64},
                             {"lenet5", "adam", 64},
                             {"keras_cnn", "adam", 128},
                             {"mlp:784-64-128-32-10", "sgd", 1024},
                             {"mlp:2048-512-512-512-2048", "sgd", 64}};

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

void plan_network(const Network& n, const cuda::Target& target, Arithmetic arithmetic) {
  const nn::AnyModule net = models::create(n.model);
  optim::OptimizerOptions options;
  if (std::string(n.optimizer) == "sgd") options.momentum = 0.9;
  const auto optimizer = optim::create(n.optimizer, net, options);
  const std::string model = n.model;
  const std::int64_t width = model.rfind("mlp:", 0) == 0 ? std::stoll(model.substr(4)) : 784;
  const Shape space = width == 784 ? Shape{n.batch, 1, 28, 28} : Shape{n.batch, width};
  const Tensor x =
      Tensor::from(std::vector<float>(static_cast<std::size_t>(n.batch * width)), space);
  const Tensor y =
      Tensor::from(std::vector<std::int64_t>(static_cast<std::size_t>(n.batch)), {n.batch});
  plan_roots({net(x)}, target, arithmetic);
  const Tensor loss = cross_entropy(net(x), y);
  std::vector<Tensor> roots = optimizer->updates(grad(loss, optimizer->parameters()));
  roots.insert(roots.begin(), loss);
  plan_roots(roots, target, arithmetic);
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
      for (const Arithmetic each : {Arithmetic::Fp32, Arithmetic::Tf32, Arithmetic::Bf16})
        plan_network(network, card(arch), each);

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
