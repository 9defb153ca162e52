// Fourier transforms compiled for the baseline of the architecture.
#define TENON_FOURIER_LOOPS(type) base_##type##_fft
#include "cpu/kernels/fourier/fourier_loops.inc"
