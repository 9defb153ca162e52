# Instruction sets by file suffix. Only files with such a suffix may use instructions beyond the baseline; the library asks
# the CPU before it calls into them.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(TENON_FOREIGN_SUFFIXES "_neon")
else()
  set(TENON_FOREIGN_SUFFIXES "_avx2|_avx512|_amx")
endif()

set(TENON_FLAGS_avx2 -mavx2 -mfma -mf16c)
set(TENON_FLAGS_avx512 -march=x86-64-v4 -mavx512bf16 -mavx512vnni -mprefer-vector-width=512)
set(TENON_FLAGS_amx ${TENON_FLAGS_avx512} -mamx-tile -mamx-bf16 -mamx-int8)
set(TENON_FLAGS_neon "")
# Only processors without AVX2 use the baseline of x86-64, so its kernels are compiled for size: a third to a half of
# what -O2 with vectors makes. Tiles of matrix products use vector types, so they stay vectorized.
set(TENON_FLAGS_base "")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(TENON_FLAGS_base "$<$<CONFIG:Release>:-Os;-fno-tree-vectorize>")
endif()
# Tile loops and tiles of matrix products are as fast as with -O3, which also unrolls the last iterations of each loop and copies loops for
# each case of a condition. The vectors of AVX2 are short, so their last iterations need no vectors of half the width.
# Special functions, which no step of a training waits for, get the same flags. Their long formulas are not repeated for last iterations.
set(TENON_FLAGS_tile "$<$<CONFIG:Release>:-O2;-ftree-vectorize>")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(TENON_FLAGS_narrow_tile "$<$<CONFIG:Release>:--param=vect-epilogues-nomask=0>")
endif()
# `_exact` is not an instruction set and comes before its suffix. Results that must be equal on every machine forbid the compiler
# to fuse multiply-adds.
set(TENON_FLAGS_exact -ffp-contract=off)

# Removes files of other architectures from the list and sets the flags of files with a suffix.
function(tenon_choose_isa list)
  list(FILTER ${list} EXCLUDE REGEX "(${TENON_FOREIGN_SUFFIXES})\\.cpp$")
  foreach(source ${${list}})
    if(source MATCHES "_(avx2|avx512|amx|neon|base|exact)\\.cpp$")
      set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS ${TENON_FLAGS_${CMAKE_MATCH_1}})
    endif()
    if(source MATCHES "/(formula|gemm|tile)/[a-z0-9_]+_(avx2|avx512)\\.cpp$")
      set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS ${TENON_FLAGS_tile})
    endif()
    if(source MATCHES "/(formula/[a-z0-9_]+|tile/[a-z0-9_]+_avx2)\\.cpp$")
      set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS ${TENON_FLAGS_narrow_tile})
    endif()
    if(source MATCHES "_exact_[a-z0-9]+\\.cpp$")
      set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS ${TENON_FLAGS_exact})
    endif()
  endforeach()
  set(${list} ${${list}} PARENT_SCOPE)
endfunction()
