// LAPACK, loaded when the first operation needs it: any library with the Fortran interface and
// 32-bit integers, such as the reference implementation, OpenBLAS or MKL.
//
// Matrices are in column-major order here, as Fortran has them.
#pragma once

#include <cstddef>
#include <string>

namespace tenon::linalg {

// F(name, parameters): routines whose names begin with s for float and d for double. Strings have
// their lengths as further arguments at the end.
#define TENON_LAPACK_ROUTINES(F)                                                                   \
  F(potrf, (const char* uplo, const int* n, T* a, const int* lda, int* info, std::size_t))         \
  F(getrf, (const int* m, const int* n, T* a, const int* lda, int* pivots, int* info))             \
  F(getrs, (const char* trans, const int* n, const int* nrhs, const T* a, const int* lda,          \
            const int* pivots, T* b, const int* ldb, int* info, std::size_t))                      \
  F(sytrf, (const char* uplo, const int* n, T* a, const int* lda, int* pivots, T* work,            \
            const int* lwork, int* info, std::size_t))                                             \
  F(sytrs, (const char* uplo, const int* n, const int* nrhs, const T* a, const int* lda,           \
            const int* pivots, T* b, const int* ldb, int* info, std::size_t))                      \
  F(geqrf, (const int* m, const int* n, T* a, const int* lda, T* tau, T* work, const int* lwork,   \
            int* info))                                                                            \
  F(orgqr, (const int* m, const int* n, const int* k, T* a, const int* lda, const T* tau, T* work, \
            const int* lwork, int* info))                                                          \
  F(gesdd, (const char* job, const int* m, const int* n, T* a, const int* lda, T* s, T* u,         \
            const int* ldu, T* vt, const int* ldvt, T* work, const int* lwork, int* iwork,         \
            int* info, std::size_t))                                                               \
  F(syevd, (const char* job, const char* uplo, const int* n, T* a, const int* lda, T* w, T* work,  \
            const int* lwork, int* iwork, const int* liwork, int* info, std::size_t, std::size_t)) \
  F(geev, (const char* left, const char* right, const int* n, T* a, const int* lda, T* real,       \
           T* imaginary, T* vl, const int* ldvl, T* vr, const int* ldvr, T* work,                  \
           const int* lwork, int* info, std::size_t, std::size_t))                                 \
  F(gelsd,                                                                                         \
    (const int* m, const int* n, const int* nrhs, T* a, const int* lda, T* b, const int* ldb,      \
     T* s, const T* rcond, int* rank, T* work, const int* lwork, int* iwork, int* info))           \
  F(gemm, (const char* trans_a, const char* trans_b, const int* m, const int* n, const int* k,     \
           const T* alpha, const T* a, const int* lda, const T* b, const int* ldb, const T* beta,  \
           T* c, const int* ldc, std::size_t, std::size_t))                                        \
  F(trsm, (const char* side, const char* uplo, const char* trans, const char* diag, const int* m,  \
           const int* n, const T* alpha, const T* a, const int* lda, T* b, const int* ldb,         \
           std::size_t, std::size_t, std::size_t, std::size_t))

/// The routines for one element type.
template <class T>
struct Lapack {
#define TENON_DECLARE_ROUTINE(name, parameters) void(*name) parameters = nullptr;
  TENON_LAPACK_ROUTINES(TENON_DECLARE_ROUTINE)
#undef TENON_DECLARE_ROUTINE
};

/// The loaded routines for float or double; requires lapack_problem() to be empty.
template <class T>
const Lapack<T>& lapack();
template <>
const Lapack<float>& lapack();
template <>
const Lapack<double>& lapack();

/// Why LAPACK cannot be used, with the remedy; empty if it can.
const std::string& lapack_problem();

}  // namespace tenon::linalg
