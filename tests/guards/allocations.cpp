// Checks that a settled training step allocates no memory and never plans again.
//
// This is a separate program because its malloc replaces that of the C library. Every allocation of
// C and C++, in every thread, ends in one of the functions below (operator new calls malloc).
#include <tenon/compute.h>
#include <tenon/grad.h>
#include <tenon/models.h>
#include <tenon/optim.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace {
std::atomic<bool> counting{false};
std::atomic<long> allocations{0};
void note() {
  if (counting.load(std::memory_order_relaxed)) allocations.fetch_add(1, std::memory_order_relaxed);
}
}  // namespace

// glibc keeps its own functions reachable under these names.
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);

void* malloc(std::size_t size) {
  note();
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  note();
  return __libc_calloc(count, size);
}
void* realloc(void* memory, std::size_t size) {
  note();
  return __libc_realloc(memory, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  note();
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  note();
  *memory = __libc_memalign(alignment, size);
  return *memory != nullptr ? 0 : ENOMEM;
}
}

namespace {

using namespace tenon;
int failures = 0;

void expect(const std::string& what, long found, long allowed) {
  const bool good = found <= allowed;
  std::printf("%s %s: %ld (allowed: %ld)\n", good ? "ok  " : "FAIL", what.c_str(), found, allowed);
  failures += good ? 0 : 1;
}

struct Training {
  nn::AnyModule net;
  std::unique_ptr<optim::Optimizer> optimizer;
  CompiledFunction step;

  explicit Training(const std::string& model, const std::string& rule)
      : net(models::create(model)),
        optimizer(optim::create(rule, net)),
        step(compile([this](const std::vector<Tensor>& in) {
          const Tensor loss = cross_entropy(net(in[0]), in[1]);
          std::vector<Tensor> out = optimizer->updates(grad(loss, optimizer->parameters()));
          out.insert(out.begin(), loss);
          return out;
        })) {}
};

std::vector<Tensor> batch(std::int64_t size) {
  return {rand({size, 1, 28, 28}).compute(), randint(0, 10, {size}).compute()};
}

void settled_step_allocates_nothing(const std::string& model, const std::string& rule) {
  Training training(model, rule);
  const std::vector<Tensor> a = batch(8), b = batch(8);
  double losses = 0;
  for (int k = 0; k < 3; ++k) losses += training.step(a)[0].item();
  const std::int64_t planned = runner_stats().programs_planned;
  allocations = 0;
  counting = true;
  for (int k = 0; k < 5; ++k) {
    training.optimizer->set_lr(0.01 / (k + 1));
    losses += training.step(k % 2 == 0 ? a : b)[0].item();
  }
  counting = false;
  expect(model + " with " + rule + ": allocations in five steps with other data and learning rates",
         allocations, 0);
  expect(model + " with " + rule + ": programs planned in them",
         static_cast<long>(runner_stats().programs_planned - planned), 0);
  expect(model + " with " + rule + ": losses that are not numbers", losses == losses ? 0 : 1, 0);
}

/// The plain loop builds a new graph at each step. It allocates nodes but plans only once.
void plain_loop_plans_once() {
  const nn::AnyModule net = models::create("lenet5");
  optim::Sgd sgd(net, {.lr = 0.1, .momentum = 0.9});
  const std::vector<Tensor> data = batch(4);
  sgd.step(cross_entropy(net(data[0]), data[1]));
  const std::int64_t planned = runner_stats().programs_planned;
  for (int k = 0; k < 3; ++k) {
    sgd.set_lr(0.1 / (k + 2));
    sgd.step(cross_entropy(net(data[0]), data[1]));
  }
  expect("plain loop: programs planned after the first step",
         static_cast<long>(runner_stats().programs_planned - planned), 0);
}

void another_batch_size_plans_once() {
  Training training("lenet5", "sgd");
  const std::vector<Tensor> large = batch(8), small = batch(3);
  // Two statements: results of a step that are still held make the next step use other memory.
  const auto both = [&] {
    training.step(large);
    training.step(small);
  };
  for (int k = 0; k < 3; ++k) both();
  allocations = 0;
  counting = true;
  for (int k = 0; k < 3; ++k) both();
  counting = false;
  expect("two batch sizes in turn: allocations", allocations, 0);
  expect("two batch sizes in turn: programs traced", training.step.traced(), 2);
}

}  // namespace

int main() {
  set_threads(2);
  void* volatile probes[2];  // volatile, so that the compiler keeps both
  counting = true;
  probes[0] = std::malloc(1);
  probes[1] = ::operator new(1);
  counting = false;
  std::free(probes[0]);
  ::operator delete(probes[1]);
  expect("allocations that the counter missed, of two", 2 - allocations, 0);
  settled_step_allocates_nothing("lenet5", "sgd");
  settled_step_allocates_nothing("keras_cnn", "adam");
  plain_loop_plans_once();
  another_batch_size_plans_once();
  return failures == 0 ? 0 : 1;
}
