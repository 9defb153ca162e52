# The emulated GPU for tests: a driver library and an NVRTC library that run kernels on the CPU. They test the
# CUDA backend without a GPU and without a toolkit.
#
# tenon_use_emulator(test…) sends ctest's runs of these tests to it. To run the same programs on a real GPU, start them without
# ctest, or configure with -DTENON_TEST_GPU=ON; without a GPU they say 'skipped'.
option(TENON_TEST_GPU "Run the tests of the CUDA backend on this machine's GPU, not on the emulated one" OFF)

file(GLOB TENON_EMULATOR_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/cuda/emulator/*.cpp)
set(TENON_NVRTC_SOURCES ${TENON_EMULATOR_SOURCES})
list(FILTER TENON_NVRTC_SOURCES INCLUDE REGEX "/(fake_nvrtc|rewrite)\\.cpp$")
set(TENON_DRIVER_SOURCES ${TENON_EMULATOR_SOURCES})
list(FILTER TENON_DRIVER_SOURCES EXCLUDE REGEX "/(fake_nvrtc|rewrite)\\.cpp$")

add_library(tenon_fake_cuda MODULE ${TENON_DRIVER_SOURCES})
add_library(tenon_fake_nvrtc MODULE ${TENON_NVRTC_SOURCES})
target_compile_definitions(tenon_fake_nvrtc PRIVATE TENON_EMULATOR_COMPILER="${CMAKE_CXX_COMPILER}"
                           TENON_EMULATOR_FOLDER="${PROJECT_SOURCE_DIR}/tests/cuda/emulator")
# NVIDIA's libraries for the emulated GPU: loops compute what the vendor engines describe.
add_library(tenon_fake_cublaslt MODULE ${PROJECT_SOURCE_DIR}/tests/cuda/vendor/fake_cublaslt.cpp)
add_library(tenon_fake_cudnn MODULE ${PROJECT_SOURCE_DIR}/tests/cuda/vendor/fake_cudnn.cpp)
add_library(tenon_fake_nvjpeg MODULE ${PROJECT_SOURCE_DIR}/tests/cuda/vendor/fake_nvjpeg.cpp)
target_link_libraries(tenon_fake_nvjpeg PRIVATE JPEG::JPEG)
foreach(library tenon_fake_cuda tenon_fake_nvrtc tenon_fake_cublaslt tenon_fake_cudnn tenon_fake_nvjpeg)
  target_include_directories(${library} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_compile_options(${library} PRIVATE -Wall -Wextra -Wpedantic -Wshadow $<$<BOOL:${TENON_WARNINGS_AS_ERRORS}>:-Werror>
                         $<$<CONFIG:Release>:-O1>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(${library} PRIVATE -Wno-restrict) # as in cmake/TenonLibrary.cmake
  endif()
  # Not instrumented, because sanitizers do not follow changes of stacks.
  target_link_libraries(${library} PRIVATE ${CMAKE_DL_LIBS})
  set_target_properties(${library} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endforeach()

# Fiber switches and warp products are half of the tests' time, so these files are optimised.
target_compile_options(tenon_fake_cuda PRIVATE $<$<CONFIG:Release>:-O2>)

# Kernels for the emulator stay in a cache whose name changes with the emulator.
file(GLOB_RECURSE TENON_EMULATOR_HEADERS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/cuda/emulator/include/*
     ${PROJECT_SOURCE_DIR}/tests/cuda/emulator/*.h)
set(TENON_EMULATOR_STAMP "${CMAKE_CXX_COMPILER}${CMAKE_CXX_COMPILER_VERSION}")
foreach(source ${TENON_EMULATOR_HEADERS} ${TENON_NVRTC_SOURCES})
  set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
  file(SHA256 ${source} hash)
  string(APPEND TENON_EMULATOR_STAMP ${hash})
endforeach()
string(SHA256 TENON_EMULATOR_STAMP "${TENON_EMULATOR_STAMP}")
string(SUBSTRING "${TENON_EMULATOR_STAMP}" 0 12 TENON_EMULATOR_STAMP)

function(tenon_use_emulator)
  if(TENON_TEST_GPU)
    return()
  endif()
  foreach(test ${ARGN})
    set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT "TENON_CUDA_DRIVER=$<TARGET_FILE:tenon_fake_cuda>"
                 "TENON_NVRTC=$<TARGET_FILE:tenon_fake_nvrtc>" "TENON_CUBLASLT=off" "TENON_CUDNN=off" "TENON_CUDA_BUILT_IN=off"
                 "TENON_NVJPEG=$<TARGET_FILE:tenon_fake_nvjpeg>"
                 "TENON_CACHE=${CMAKE_BINARY_DIR}/emulator-cache-${TENON_EMULATOR_STAMP}")
  endforeach()
endfunction()

# The vendor engines on the emulated GPU. In other tests these libraries are off, because their calls cannot be captured there.
function(tenon_use_fake_libraries)
  if(TENON_TEST_GPU)
    return()
  endif()
  foreach(test ${ARGN})
    set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT "TENON_CUBLASLT=$<TARGET_FILE:tenon_fake_cublaslt>"
                 "TENON_CUDNN=$<TARGET_FILE:tenon_fake_cudnn>")
  endforeach()
endfunction()
