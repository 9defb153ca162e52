# Kernels compiled ahead, where a CUDA toolkit is present: those of the reference networks' training steps and predictions, for
# sm_80 and sm_90a, and as PTX. A program of this build plans these networks for cards that need not be there, compiles what
# they ask for with the toolkit's NVRTC, and the library takes the result in.
#
# OFF by default: it doubles the time of a first build, and kernels are compiled at run time anyway.
set(TENON_CUDA_CUBINS OFF CACHE STRING "Compile kernels of the reference networks ahead: ON, OFF, AUTO (where NVRTC is found)")
set_property(CACHE TENON_CUDA_CUBINS PROPERTY STRINGS ON OFF AUTO)

set(TENON_BUILT_IN_SOURCE ${PROJECT_SOURCE_DIR}/cmake/built_in_none.cpp)
if(TENON_CUDA_CUBINS)
  file(GLOB toolkits /usr/local/cuda*)
  find_library(TENON_NVRTC_LIBRARY nvrtc HINTS $ENV{CUDA_HOME} ${toolkits} PATH_SUFFIXES lib64 lib)
  if(TENON_NVRTC_LIBRARY)
    add_executable(tenon_built_in ${PROJECT_SOURCE_DIR}/tools/built_in_kernels.cpp ${TENON_BUILT_IN_SOURCE}
                                  ${TENON_OBJECTS})
    target_include_directories(tenon_built_in PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(tenon_built_in PRIVATE tenon_options ${TENON_DEPENDENCIES})
    set(TENON_STORE ${PROJECT_BINARY_DIR}/generated/kernels.store)
    set(TENON_BUILT_IN_SOURCE ${PROJECT_BINARY_DIR}/generated/built_in.cpp)
    configure_file(${PROJECT_SOURCE_DIR}/cmake/built_in.cpp.in ${TENON_BUILT_IN_SOURCE} @ONLY)
    add_custom_command(
      OUTPUT ${TENON_STORE}
      COMMAND ${CMAKE_COMMAND} -E env TENON_NVRTC=${TENON_NVRTC_LIBRARY} $<TARGET_FILE:tenon_built_in> ${TENON_STORE}
      DEPENDS tenon_built_in
      COMMENT "Compiling kernels ahead"
      VERBATIM)
    set_property(SOURCE ${TENON_BUILT_IN_SOURCE} PROPERTY OBJECT_DEPENDS ${TENON_STORE})
  elseif(NOT TENON_CUDA_CUBINS STREQUAL "AUTO")
    message(FATAL_ERROR "TENON_CUDA_CUBINS is ON and there is no libnvrtc: set CUDA_HOME to the toolkit, or use AUTO or OFF")
  endif()
endif()

# Its own object, as position-independent and hidden as the others.
add_library(tenon_built_in_objects OBJECT ${TENON_BUILT_IN_SOURCE})
target_include_directories(tenon_built_in_objects PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(tenon_built_in_objects PRIVATE tenon_options)
set_target_properties(tenon_built_in_objects PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden
                      VISIBILITY_INLINES_HIDDEN ON)
