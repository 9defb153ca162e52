// Fourier transforms compiled for AVX2.
#define TENON_FOURIER_LOOPS(type) avx2_##type##_fft
#include "cpu/kernels/fourier/fourier_loops.inc"
