// Every instruction that CUDA C++ has no plain expression for: conversions, warp exchange, tensor
// cores, asynchronous copies, tickets. Apart from intrinsics_hopper.cuh no other kernel file holds
// inline PTX. The tests replace this file to run the kernels on a CPU, so each function's comment
// says exactly what the function does.
//
// Warps are full: all lanes of a warp call the warp-wide functions together.
#pragma once

#include "scalar/convert.h"

#define TENON_DEVICE __device__ __forceinline__
/// Declares the block's dynamic shared memory under a name.
#define TENON_DYNAMIC_SHARED(name) extern __shared__ __align__(128) unsigned char name[]

namespace tenon::cuda {

// ---- Conversions -------------------------------------------------------------------------------

TENON_DEVICE float bf16_to_float(unsigned short bits) { return scalar::from_bfloat16(bits); }
/// Rounds to nearest even; NaN stays a quiet NaN.
TENON_DEVICE unsigned short float_to_bf16(float x) {
  unsigned short bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}
TENON_DEVICE float f16_to_float(unsigned short bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
}
/// Rounds to nearest even; overflows to infinity.
TENON_DEVICE unsigned short float_to_f16(float x) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}
/// Rounds both to nearest even; `lo` goes to the lower half.
TENON_DEVICE unsigned pack_bf16(float lo, float hi) {
  unsigned bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(hi), "f"(lo));
  return bits;
}
TENON_DEVICE unsigned pack_f16(float lo, float hi) {
  unsigned bits;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(hi), "f"(lo));
  return bits;
}
/// Rounds to 10 bits of mantissa, to nearest, ties away from zero; returns the bits of a float32.
TENON_DEVICE unsigned to_tf32(float x) {
  unsigned bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return bits;
}

/// 2 to the power x, within 2 units in the last place; results below the normal numbers are 0.
TENON_DEVICE float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// 2 to the power x, within 2 units in the last place, including denormal results.
TENON_DEVICE float exp2_approximate(float x) {
  float y;
  asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
/// 1 / x within 1 unit in the last place, including denormal results.
TENON_DEVICE float reciprocal_approximate(float x) {
  float y;
  asm("rcp.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// 1 / x within 1 unit in the last place; results below the normal numbers are 0.
TENON_DEVICE float reciprocal_fast(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
/// The maximum; NaN if either is NaN.
TENON_DEVICE float max_or_nan(float a, float b) {
  float y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}

/// The upper half of the 64-bit product.
TENON_DEVICE unsigned multiply_high(unsigned a, unsigned b) { return __umulhi(a, b); }

// ---- Warp exchange -----------------------------------------------------------------------------

template <class T>
TENON_DEVICE T shuffle_xor(T x, int mask) {
  return __shfl_xor_sync(0xffffffffu, x, mask);
}
/// The value of lane + delta; a lane without such a partner keeps its own value.
template <class T>
TENON_DEVICE T shuffle_down(T x, int delta) {
  return __shfl_down_sync(0xffffffffu, x, delta);
}
template <class T>
TENON_DEVICE T shuffle(T x, int lane) {
  return __shfl_sync(0xffffffffu, x, lane);
}

// ---- Tensor cores: d += a * b ------------------------------------------------------------------
// With g = lane / 4 and t = lane % 4, d holds (g, 2t) (g, 2t+1) (g+8, 2t) (g+8, 2t+1) of the 16x8
// result. 16-bit operands come in pairs along k, the lower half first: a holds rows g, g+8, g, g+8
// at k = 2t, 2t, 2t+8, 2t+8; b holds column g at k = 2t, 2t+8. tf32: a holds (g, t) (g+8, t)
// (g, t+4) (g+8, t+4); b holds (t, g) (t+4, g).

TENON_DEVICE void mma_bf16_m16n8k16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
TENON_DEVICE void mma_f16_m16n8k16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
TENON_DEVICE void mma_tf32_m16n8k8(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// ---- Shared memory -----------------------------------------------------------------------------

TENON_DEVICE unsigned shared_address(const void* shared) {
  return static_cast<unsigned>(__cvta_generic_to_shared(shared));
}
/// 8x8 matrices of 16-bit elements: lane 8i + j gives the address of row j (16 bytes, aligned) of
/// matrix i; register i of a lane gets elements 2t and 2t+1 of row g of matrix i (_trans: of column
/// g). _x2 uses the addresses of lanes 0 to 15.
TENON_DEVICE void ldmatrix_x4(unsigned (&r)[4], const void* shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(shared))
               : "memory");
}
TENON_DEVICE void ldmatrix_x4_trans(unsigned (&r)[4], const void* shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(shared))
               : "memory");
}
TENON_DEVICE void ldmatrix_x2(unsigned (&r)[2], const void* shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(shared_address(shared))
               : "memory");
}
TENON_DEVICE void ldmatrix_x2_trans(unsigned (&r)[2], const void* shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(shared_address(shared))
               : "memory");
}

// ---- Asynchronous copies from global to shared memory ------------------------------------------

/// Copies 16 bytes; both addresses are multiples of 16. Writes zeros if not `inside`; `global` is
/// then not read.
TENON_DEVICE void copy_async_16(void* shared, const void* global, bool inside) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)),
               "l"(global), "r"(inside ? 16 : 0)
               : "memory");
}
/// Copies 16 bytes through the multiprocessor's L1 cache: for data that several of its blocks read.
TENON_DEVICE void copy_async_16_near(void* shared, const void* global) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(shared_address(shared)),
               "l"(global)
               : "memory");
}
/// Copies 4 bytes, as copy_async_16.
TENON_DEVICE void copy_async_4(void* shared, const void* global, bool inside) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(shared)),
               "l"(global), "r"(inside ? 4 : 0)
               : "memory");
}
/// Closes the group of this thread's copies since the last commit.
TENON_DEVICE void copy_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Waits until at most the N latest groups of this thread are in flight.
template <int N>
TENON_DEVICE void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

// ---- Programmatic dependent launch --------------------------------------------------------------

/// Waits until the kernels that this one may overlap have ended and their writes are visible. Once
/// all blocks have called it, the next kernel may be launched and runs up to its own wait. Every
/// thread of every kernel calls it once, before it touches memory that other kernels touch; a
/// kernel that has ended has therefore seen the end of all kernels before it. Without kernels to
/// overlap, and below compute capability 9.0, it does nothing.
TENON_DEVICE void await_kernels() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// ---- Blocks that finish one another's work -----------------------------------------------------

/// Adds 1 to the counter and returns the value before. Writes of this thread (and, after a barrier,
/// of its block) before the call are visible to threads that take a later ticket.
TENON_DEVICE unsigned take_ticket(unsigned* counter) {
  unsigned ticket;
  asm volatile("atom.acq_rel.gpu.add.u32 %0, [%1], 1;" : "=r"(ticket) : "l"(counter) : "memory");
  return ticket;
}
/// Adds 1 to the counter. Writes of this thread (and, before a barrier, of its block) before the
/// call are visible to threads that have awaited the new value.
TENON_DEVICE void raise_counter(unsigned* counter) {
  asm volatile("red.release.gpu.add.u32 [%0], 1;" ::"l"(counter) : "memory");
}
/// Waits until raise_counter() of blocks with lower numbers has brought the counter to `value`. The
/// hardware starts blocks with lower numbers first. CUDA does not promise this order; CUTLASS
/// relies on it too.
TENON_DEVICE void await_counter(const unsigned* counter, unsigned value) {
  unsigned now;
  for (;;) {
    asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(now) : "l"(counter) : "memory");
    if (now == value) break;
    __nanosleep(20);
  }
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
}

}  // namespace tenon::cuda
