// Instructions of compute capability 9.0 that CUDA C++ has no expression for: barriers that count
// bytes (mbarrier), the tensor memory accelerator (TMA), products by a warpgroup of four warps
// (wgmma). Inline PTX is only here and in intrinsics.cuh. The tests do not emulate this file:
// kernels that include it are prepared only where the driver makes tensor maps.
//
// Semantics: NVIDIA, "PTX ISA", chapters mbarrier, cp.async.bulk.tensor, wgmma. Shared memory is
// named by its 32-bit address (shared_address).
#pragma once

#include "cuda/kernels/intrinsics.cuh"

namespace tenon::cuda {

// ---- Barriers in shared memory, 8 bytes each ----------------------------------------------------

TENON_DEVICE void barrier_init(unsigned barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
/// Makes initialised barriers visible to TMA and to the cluster's other blocks.
TENON_DEVICE void barrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
/// Arrives once, and makes the phase wait for `bytes` more bytes.
TENON_DEVICE void barrier_expect(unsigned barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
/// Arrives at the barrier with this address in block `rank` of the cluster.
TENON_DEVICE void barrier_arrive(unsigned barrier, unsigned rank) {
  asm volatile(
      "{.reg .b32 remote;"
      "mapa.shared::cluster.u32 remote, %0, %1;"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];}" ::"r"(barrier),
      "r"(rank)
      : "memory");
}
/// Waits for the end of the phase with that parity. A new barrier is in phase 0, and the phase
/// before it (parity 1) counts as complete.
TENON_DEVICE void barrier_wait(unsigned barrier, unsigned parity) {
  unsigned over = 0;
  while (over == 0)
    asm volatile(
        "{.reg .pred p;"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;"
        "selp.u32 %0, 1, 0, p;}"
        : "=r"(over)
        : "r"(barrier), "r"(parity)
        : "memory");
}

/// Waits for `threads` threads of the block (whole warps) at hardware barrier `id` (1 to 15).
TENON_DEVICE void threads_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/// Loads from this block's shared memory. The load is not moved before the preceding waits.
TENON_DEVICE float shared_load(unsigned address) {
  float x;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(address));
  return x;
}
TENON_DEVICE void shared_load(float (&x)[2], unsigned address) {
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x[0]), "=f"(x[1]) : "r"(address));
}

TENON_DEVICE unsigned cluster_rank() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
/// Barrier of all threads of all blocks of the cluster.
TENON_DEVICE void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release; barrier.cluster.wait.acquire;" ::: "memory");
}
/// Loads four floats from this address in block `rank` of the cluster.
TENON_DEVICE void cluster_load(float (&x)[4], unsigned address, unsigned rank) {
  asm volatile(
      "{.reg .b32 remote;"
      "mapa.shared::cluster.u32 remote, %4, %5;"
      "ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [remote];}"
      : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3])
      : "r"(address), "r"(rank)
      : "memory");
}

// ---- Asynchronous copies -----------------------------------------------------------------------

/// Copies 16 bytes to a 32-bit address of shared memory. Writes zeros if not `inside`; `global` is
/// then not read.
TENON_DEVICE void copy_async_16(unsigned shared, const void* global, bool inside) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global),
               "r"(inside ? 16 : 0)
               : "memory");
}

// ---- Tensor memory accelerator (TMA) ------------------------------------------------------------

TENON_DEVICE void prefetch_map(const void* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
/// Copies `bytes` bytes: a multiple of 16, both addresses multiples of 16.
TENON_DEVICE void bulk_load(unsigned to, const void* from, unsigned bytes, unsigned barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(to),
      "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
}
/// Copies the map's box at (x, y), with zeros outside the tensor; the bytes count at the barrier.
TENON_DEVICE void tma_load(unsigned to, const void* map, int x, int y, unsigned barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%2, %3}], [%4];" ::"r"(to),
      "l"(map), "r"(x), "r"(y), "r"(barrier)
      : "memory");
}
TENON_DEVICE void tma_load(unsigned to, const void* map, int x, int y, int z, unsigned barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%2, %3, %4}], [%5];" ::"r"(to),
      "l"(map), "r"(x), "r"(y), "r"(z), "r"(barrier)
      : "memory");
}
TENON_DEVICE void tma_load(unsigned to, const void* map, int x, int y, int z, int w,
                           unsigned barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%2, %3, %4, %5}], [%6];" ::"r"(to),
      "l"(map), "r"(x), "r"(y), "r"(z), "r"(w), "r"(barrier)
      : "memory");
}
/// The same for every block of the cluster in `mask`, to the same addresses in each.
TENON_DEVICE void tma_load_multicast(unsigned to, const void* map, int x, int y, unsigned barrier,
                                     unsigned short mask) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
      "l"(map), "r"(x), "r"(y), "r"(barrier), "h"(mask)
      : "memory");
}

TENON_DEVICE void tma_load_multicast(unsigned to, const void* map, int x, int y, int z,
                                     unsigned barrier, unsigned short mask) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(to),
      "l"(map), "r"(x), "r"(y), "r"(z), "r"(barrier), "h"(mask)
      : "memory");
}

// ---- Products by a warpgroup --------------------------------------------------------------------

/// Sets the number of registers of every thread of this warpgroup from now on.
template <int N>
TENON_DEVICE void registers_more() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}
template <int N>
TENON_DEVICE void registers_fewer() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}

/// Orders earlier accesses to the accumulators before the following products.
TENON_DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
TENON_DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/// Waits until at most N groups of this warpgroup's products are in flight.
template <int N>
TENON_DEVICE void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}
/// Keeps the compiler from reading or moving accumulators across this point.
template <int N>
TENON_DEVICE void pin(float (&x)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+f"(x[i])::"memory");
}

template <int N>
TENON_DEVICE void pin(unsigned (&x)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+r"(x[i])::"memory");
}

/// The wgmma descriptor of a tile at a multiple of 1024 bytes, with lines of 128 bytes swizzled in
/// groups of eight. k along the lines: groups of eight rows follow one another. k across the lines:
/// a group is eight steps of k, and the box of the next 64 columns follows after 64 x kDepth.
template <bool kAcross, int kDepth = 64>
TENON_DEVICE unsigned long long tile_descriptor(unsigned address) {
  constexpr unsigned long long kSwizzle128 = 1ull << 62, kGroup = 1024 >> 4;
  constexpr unsigned long long kNextBox = kAcross ? kDepth * 128 >> 4 : 1;
  return kSwizzle128 | kGroup << 32 | kNextBox << 16 | (address & 0x3FFFF) >> 4;
}
/// The descriptor of a tile with lines of 64 bytes along k, swizzled in groups of eight; at a
/// multiple of 512 bytes.
TENON_DEVICE unsigned long long short_line_descriptor(unsigned address) {
  constexpr unsigned long long kSwizzle64 = 2ull << 62, kGroup = 512 >> 4;
  return kSwizzle64 | kGroup << 32 | 1ull << 16 | (address & 0x3FFFF) >> 4;
}
/// The step of a descriptor for one product along k: 32 bytes along a line, or sixteen lines.
template <bool kAcross>
inline constexpr int kDescriptorStep = (kAcross ? 16 * 128 : 32) >> 4;

// clang-format off
#define TENON_EIGHT(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), \
                       "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define TENON_WGMMA_128(shape, types, left, add_at, order, ...)                        \
  asm volatile(                                                                        \
    "{.reg .pred p; setp.ne.b32 p, " add_at ", 0;"                                     \
    "wgmma.mma_async.sync.aligned." shape ".f32." types " {"                           \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "           \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"   \
    "}, " left ", p, 1, 1" order ";}"                                                  \
    : TENON_EIGHT(0), TENON_EIGHT(8), TENON_EIGHT(16), TENON_EIGHT(24),                \
      TENON_EIGHT(32), TENON_EIGHT(40), TENON_EIGHT(48), TENON_EIGHT(56)               \
    : __VA_ARGS__)
#define TENON_WGMMA_64(types, left, add_at, order, ...)                                \
  asm volatile(                                                                        \
    "{.reg .pred p; setp.ne.b32 p, " add_at ", 0;"                                     \
    "wgmma.mma_async.sync.aligned.m64n64k16.f32." types " {"                           \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "           \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"   \
    "}, " left ", p, 1, 1, " order ";}"                                                \
    : TENON_EIGHT(0), TENON_EIGHT(8), TENON_EIGHT(16), TENON_EIGHT(24)                 \
    : __VA_ARGS__, "r"(add))
// clang-format on

/// Bf16x6: float32, as six products of bfloat16 parts.
enum class WgmmaType { Bf16, F16, Tf32, Bf16x6 };

/// d = A[64, K] · B[K, 128], plus the old d if `add` is not 0. Both tiles are in shared memory,
/// given by descriptors. K is 32 bytes: 16 elements, or 8 of tf32 (which is never across k). d[4j],
/// d[4j + 1] are at row lane / 4 of the warp's sixteen and columns 8j + lane % 4 * 2 and the next;
/// d[4j + 2], d[4j + 3] are eight rows below.
template <WgmmaType kType, bool kAcrossA, bool kAcrossB>
TENON_DEVICE void wgmma_m64n128(float (&d)[64], unsigned long long a, unsigned long long b,
                                int add) {
  if constexpr (kType == WgmmaType::Bf16) {
    TENON_WGMMA_128("m64n128k16", "bf16.bf16", "%64, %65", "%66", ", %67, %68", "l"(a), "l"(b),
                    "r"(add), "n"(int(kAcrossA)), "n"(int(kAcrossB)));
  } else if constexpr (kType == WgmmaType::F16) {
    TENON_WGMMA_128("m64n128k16", "f16.f16", "%64, %65", "%66", ", %67, %68", "l"(a), "l"(b),
                    "r"(add), "n"(int(kAcrossA)), "n"(int(kAcrossB)));
  } else {
    static_assert(!kAcrossA && !kAcrossB);
    TENON_WGMMA_128("m64n128k8", "tf32.tf32", "%64, %65", "%66", "", "l"(a), "l"(b), "r"(add));
  }
}
/// The same in bfloat16 with A in registers; a warp's sixteen rows have the layout of a 16x8x16
/// product (intrinsics.cuh).
template <bool kAcrossB>
TENON_DEVICE void wgmma_m64n128_held(float (&d)[64], const unsigned (&a)[4], unsigned long long b,
                                     int add) {
  TENON_WGMMA_128("m64n128k16", "bf16.bf16", "{%64, %65, %66, %67}, %68", "%69", ", %70", "r"(a[0]),
                  "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add), "n"(int(kAcrossB)));
}

/// The same for 64 columns and 16-bit types, both operands contiguous along k.
template <WgmmaType kType>
TENON_DEVICE void wgmma_m64n64(float (&d)[32], unsigned long long a, unsigned long long b,
                               int add) {
  if constexpr (kType == WgmmaType::Bf16)
    TENON_WGMMA_64("bf16.bf16", "%32, %33", "%34", "0, 0", "l"(a), "l"(b));
  else
    TENON_WGMMA_64("f16.f16", "%32, %33", "%34", "0, 0", "l"(a), "l"(b));
}
/// d += A[64, 16] · B[16, 64]: A in registers, in the layout of each warp's 16x8x16 product
/// (intrinsics.cuh), B contiguous across k.
template <WgmmaType kType>
TENON_DEVICE void wgmma_m64n64_held(float (&d)[32], const unsigned (&a)[4], unsigned long long b) {
  constexpr int add = 1;
  if constexpr (kType == WgmmaType::Bf16)
    TENON_WGMMA_64("bf16.bf16", "{%32, %33, %34, %35}, %36", "%37", "1", "r"(a[0]), "r"(a[1]),
                   "r"(a[2]), "r"(a[3]), "l"(b));
  else
    TENON_WGMMA_64("f16.f16", "{%32, %33, %34, %35}, %36", "%37", "1", "r"(a[0]), "r"(a[1]),
                   "r"(a[2]), "r"(a[3]), "l"(b));
}

#undef TENON_WGMMA_64
#undef TENON_WGMMA_128
#undef TENON_EIGHT

}  // namespace tenon::cuda
