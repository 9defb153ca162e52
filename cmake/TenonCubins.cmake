# Compiles kernels ahead if there is a CUDA toolkit: the kernels of the reference networks, for sm_80 and sm_90a and as PTX. A
# program of this build runs the networks on GPUs that do nothing, the toolkit's NVRTC compiles the requested kernels, and the
# library stores them. The program runs with and without NVIDIA's libraries, because the engine of a product decides which kernels surround it.
#
# AUTO, the default, compiles if the toolkit's NVRTC knows sm_90a (CUDA 12), except in builds with sanitizers or fuzzers and in other
# projects' builds. The first build takes five minutes of processor time more.
set(auto OFF)
if(TENON_TOP_LEVEL AND NOT TENON_SANITIZE AND NOT TENON_BUILD_FUZZERS AND NOT CMAKE_CROSSCOMPILING)
  set(auto AUTO)
endif()
set(TENON_CUDA_CUBINS ${auto} CACHE STRING "Compile kernels of the reference networks ahead: ON, OFF, AUTO (where CUDA 12's NVRTC is found)")
set_property(CACHE TENON_CUDA_CUBINS PROPERTY STRINGS ON OFF AUTO)

function(tenon_add_idle_library target)
  add_library(${target} MODULE ${ARGN})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${target} PRIVATE tenon_options)
  set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endfunction()

set(compile_ahead OFF)
if(TENON_CUDA_CUBINS)
  file(GLOB toolkits /usr/local/cuda*)
  find_library(TENON_NVRTC_LIBRARY nvrtc HINTS $ENV{CUDA_HOME} ${toolkits} PATH_SUFFIXES lib64 lib)
  if(TENON_NVRTC_LIBRARY)
    file(REAL_PATH ${TENON_NVRTC_LIBRARY} nvrtc)
    get_filename_component(folder ${nvrtc} DIRECTORY)
    file(GLOB builtins ${folder}/libnvrtc-builtins.so*) # NVRTC needs these to compile
  endif()
  if(TENON_NVRTC_LIBRARY AND (NOT TENON_CUDA_CUBINS STREQUAL "AUTO" OR (builtins AND nvrtc MATCHES "[.]so[.](1[2-9]|[2-9][0-9])")))
    set(compile_ahead ON)
    message(STATUS "Kernels are compiled ahead, with ${nvrtc}")
  elseif(NOT TENON_CUDA_CUBINS STREQUAL "AUTO")
    message(FATAL_ERROR "TENON_CUDA_CUBINS is ON and there is no libnvrtc: set CUDA_HOME to the toolkit, or use AUTO or OFF")
  endif()
endif()

if(compile_ahead OR TENON_BUILD_TESTS)
  tenon_add_idle_library(tenon_idle_gpu ${PROJECT_SOURCE_DIR}/tools/idle_gpu.cpp)
endif()

set(TENON_BUILT_IN_SOURCE ${PROJECT_SOURCE_DIR}/cmake/built_in_none.cpp)
if(compile_ahead OR TENON_BUILD_TESTS) # always with tests, so that the tool is compiled without a toolkit too
  add_executable(tenon_built_in ${PROJECT_SOURCE_DIR}/tools/built_in_kernels.cpp ${PROJECT_SOURCE_DIR}/cli/step.cpp
                                ${PROJECT_SOURCE_DIR}/cli/data_paths.cpp ${TENON_BUILT_IN_SOURCE} ${TENON_OBJECTS})
  target_include_directories(tenon_built_in PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src
                                                    ${PROJECT_SOURCE_DIR}/cli)
  target_link_libraries(tenon_built_in PRIVATE tenon_options ${TENON_DEPENDENCIES})
  target_compile_options(tenon_built_in PRIVATE $<$<CONFIG:Release>:-O1>)
endif()
if(compile_ahead)
  set(vendor ${PROJECT_SOURCE_DIR}/tests/cuda/vendor)
  tenon_add_idle_library(tenon_idle_cublaslt ${vendor}/fake_cublaslt.cpp)
  tenon_add_idle_library(tenon_idle_cudnn ${vendor}/fake_cudnn.cpp)
  foreach(library tenon_idle_cublaslt tenon_idle_cudnn)
    target_compile_definitions(${library} PRIVATE TENON_FAKE_IDLE=1)
  endforeach()

  set(TENON_STORE ${PROJECT_BINARY_DIR}/generated/kernels.store)
  set(TENON_BUILT_IN_SOURCE ${PROJECT_BINARY_DIR}/generated/built_in.cpp)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/built_in.cpp.in ${TENON_BUILT_IN_SOURCE} @ONLY)
  set(idle ${CMAKE_COMMAND} -E env TENON_CUDA_DRIVER=$<TARGET_FILE:tenon_idle_gpu> TENON_NVRTC=${TENON_NVRTC_LIBRARY}
           TENON_CACHE=${PROJECT_BINARY_DIR}/generated/kernels)
  add_custom_command(
    OUTPUT ${TENON_STORE}
    COMMAND ${idle} TENON_CUBLASLT=off TENON_CUDNN=off $<TARGET_FILE:tenon_built_in> ${TENON_STORE}.first
    COMMAND ${idle} TENON_CUBLASLT=$<TARGET_FILE:tenon_idle_cublaslt> TENON_CUDNN=$<TARGET_FILE:tenon_idle_cudnn>
            $<TARGET_FILE:tenon_built_in> ${TENON_STORE} ${TENON_STORE}.first
    DEPENDS tenon_built_in tenon_idle_gpu tenon_idle_cublaslt tenon_idle_cudnn
    COMMENT "Compiling kernels ahead (minutes the first time; TENON_CUDA_CUBINS=OFF leaves them to run time)"
    VERBATIM)
  set_property(SOURCE ${TENON_BUILT_IN_SOURCE} PROPERTY OBJECT_DEPENDS ${TENON_STORE})
endif()

# A separate object, position-independent and hidden like the others.
add_library(tenon_built_in_objects OBJECT ${TENON_BUILT_IN_SOURCE})
target_include_directories(tenon_built_in_objects PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(tenon_built_in_objects PRIVATE tenon_options)
set_target_properties(tenon_built_in_objects PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden
                      VISIBILITY_INLINES_HIDDEN ON)
