// Fourier transforms compiled for AVX-512.
#define TENON_FOURIER_LOOPS(type) avx512_##type##_fft
#include "cpu/kernels/fourier/fourier_loops.inc"
