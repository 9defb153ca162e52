// The PTX instructions of the ladder that CUDA C++ has no name for, one function each. Semantics:
// NVIDIA, "PTX ISA", chapters on mma, wgmma, cp.async, cp.async.bulk.tensor, mbarrier. Nothing here
// depends on tiles or matrices.
#pragma once

#include <cstdint>

namespace lab {

__device__ __forceinline__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// ---- sm_80: asynchronous 16-byte copies, matrix loads, mma.sync ----

/// Copies 16 bytes to shared memory without registers; writes zeros when !inside.
__device__ __forceinline__ void copy_async_16(unsigned to, const void* from, bool inside) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
               "r"(inside ? 16 : 0)
               : "memory");
}
__device__ __forceinline__ void copy_async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
/// Waits until at most kLeft of this thread's groups are in flight.
template <int kLeft>
__device__ __forceinline__ void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

/// Four 8 x 8 matrices of 16-bit elements; lane i gives the address of row i % 8 of matrix i / 8.
__device__ __forceinline__ void ldmatrix_x4(unsigned (&r)[4], unsigned from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(from)
               : "memory");
}
__device__ __forceinline__ void ldmatrix_x4_trans(unsigned (&r)[4], unsigned from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(from)
               : "memory");
}

/// d += a · b with a 16 x 16, b 16 x 8, spread over a warp.
__device__ __forceinline__ void mma_m16n8k16(float (&d)[4], const unsigned (&a)[4], unsigned b0,
                                             unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// ---- sm_90: barriers in shared memory that also count bytes ----

__device__ __forceinline__ void barrier_init(unsigned barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
/// Makes initialised barriers visible to TMA and to the other blocks of the cluster.
__device__ __forceinline__ void barrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
/// Arrives once and adds `bytes` to the bytes that the current phase waits for.
__device__ __forceinline__ void barrier_expect(unsigned barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
/// Arrives at the barrier at the same address in block `rank` of the cluster.
__device__ __forceinline__ void barrier_arrive_cluster(unsigned barrier, unsigned rank) {
  asm volatile(
      "{.reg .b32 remote;"
      "mapa.shared::cluster.u32 remote, %0, %1;"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];}" ::"r"(barrier),
      "r"(rank)
      : "memory");
}
/// Waits for the end of the phase with that parity. A new barrier is in phase 0; the phase before
/// the first, parity 1, counts as complete.
__device__ __forceinline__ void barrier_wait(unsigned barrier, unsigned parity) {
  unsigned over = 0;
  while (over == 0) {
    asm volatile(
        "{.reg .pred p;"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;"
        "selp.u32 %0, 1, 0, p;}"
        : "=r"(over)
        : "r"(barrier), "r"(parity)
        : "memory");
  }
}

__device__ __forceinline__ unsigned cluster_rank() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release; barrier.cluster.wait.acquire;" ::: "memory");
}
/// A barrier among `threads` threads of the block; ids 1 to 15 are free (0 is __syncthreads).
__device__ __forceinline__ void named_barrier(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// ---- sm_90: tensor memory accelerator (TMA) ----

__device__ __forceinline__ void prefetch_map(const void* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
/// Copies the map's box at (x, y) to shared memory; its bytes count at the barrier.
__device__ __forceinline__ void tma_load(unsigned to, const void* map, int x, int y,
                                         unsigned barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%2, %3}], [%4];" ::"r"(to),
      "l"(map), "r"(x), "r"(y), "r"(barrier)
      : "memory");
}
/// The same to all blocks of the cluster in `mask`, at the same addresses in each.
__device__ __forceinline__ void tma_load_multicast(unsigned to, const void* map, int x, int y,
                                                   unsigned barrier, unsigned short mask) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
      "l"(map), "r"(x), "r"(y), "r"(barrier), "h"(mask)
      : "memory");
}
/// Writes a box from shared memory; elements outside the matrix are not written.
__device__ __forceinline__ void tma_store(const void* map, unsigned from, int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map),
      "r"(from), "r"(x), "r"(y)
      : "memory");
}
__device__ __forceinline__ void tma_store_commit() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
/// Waits until at most kLeft of this thread's stores still have to read shared memory.
template <int kLeft>
__device__ __forceinline__ void tma_store_wait() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kLeft) : "memory");
}
/// Makes this thread's ordinary writes to shared memory visible to TMA.
__device__ __forceinline__ void async_proxy_fence() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// ---- sm_90a: products by a warpgroup of four warps ----

template <int kRegisters>
__device__ __forceinline__ void registers_more() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void registers_fewer() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

/// Orders register accesses before the following products.
__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Waits until at most kLeft groups of products are in flight.
template <int kLeft>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kLeft) : "memory");
}
/// Keeps the compiler from reading or moving accumulators across this point.
template <int kCount>
__device__ __forceinline__ void pin(float (&value)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(value[i])::"memory");
}

/// Four 8 x 8 matrices of 16-bit elements to shared memory; addresses as for ldmatrix_x4.
__device__ __forceinline__ void stmatrix_x4(unsigned to, unsigned r0, unsigned r1, unsigned r2,
                                            unsigned r3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to),
               "r"(r0), "r"(r1), "r"(r2), "r"(r3)
               : "memory");
}

/// d = A[64, 16] · B[16, N], plus the old d if add is not 0; both in shared memory, given by
/// descriptors. kTransA: A's tile is contiguous along m instead of k; kTransB: B's along n.
template <int N>
struct Wgmma;

// clang-format off
#define LAB_EIGHT(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), \
                     "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])

template <>
struct Wgmma<64> {
  template <bool kTransA, bool kTransB>
  __device__ static __forceinline__ void run(float (&d)[32], unsigned long long a,
                                             unsigned long long b, int add) {
    asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %34, 0;"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
      "}, %32, %33, p, 1, 1, %35, %36;}"
      : LAB_EIGHT(0), LAB_EIGHT(8), LAB_EIGHT(16), LAB_EIGHT(24)
      : "l"(a), "l"(b), "r"(add), "n"(int(kTransA)), "n"(int(kTransB)));
  }
};

template <>
struct Wgmma<128> {
  template <bool kTransA, bool kTransB>
  __device__ static __forceinline__ void run(float (&d)[64], unsigned long long a,
                                             unsigned long long b, int add) {
    asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %66, 0;"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
      "}, %64, %65, p, 1, 1, %67, %68;}"
      : LAB_EIGHT(0), LAB_EIGHT(8), LAB_EIGHT(16), LAB_EIGHT(24), LAB_EIGHT(32), LAB_EIGHT(40),
        LAB_EIGHT(48), LAB_EIGHT(56)
      : "l"(a), "l"(b), "r"(add), "n"(int(kTransA)), "n"(int(kTransB)));
  }
};

template <>
struct Wgmma<256> {
  template <bool kTransA, bool kTransB>
  __device__ static __forceinline__ void run(float (&d)[128], unsigned long long a,
                                             unsigned long long b, int add) {
    asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %130, 0;"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
      "}, %128, %129, p, 1, 1, %131, %132;}"
      : LAB_EIGHT(0), LAB_EIGHT(8), LAB_EIGHT(16), LAB_EIGHT(24), LAB_EIGHT(32), LAB_EIGHT(40),
        LAB_EIGHT(48), LAB_EIGHT(56), LAB_EIGHT(64), LAB_EIGHT(72), LAB_EIGHT(80), LAB_EIGHT(88),
        LAB_EIGHT(96), LAB_EIGHT(104), LAB_EIGHT(112), LAB_EIGHT(120)
      : "l"(a), "l"(b), "r"(add), "n"(int(kTransA)), "n"(int(kTransB)));
  }
};

#undef LAB_EIGHT
// clang-format on

}  // namespace lab
