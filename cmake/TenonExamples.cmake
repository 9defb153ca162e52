# Examples: each file is a program, and ctest runs each one in a separate folder.
file(GLOB TENON_EXAMPLE_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*.cpp)
foreach(source ${TENON_EXAMPLE_SOURCES})
  get_filename_component(name ${source} NAME_WE)
  add_executable(example_${name} ${source})
  tenon_compile_lightly(example_${name})
  target_link_libraries(example_${name} PRIVATE Tenon::tenon tenon_options) # the shared library, which links faster
  if(TENON_BUILD_TESTS)
    file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/examples/${name})
    add_test(NAME example.${name} COMMAND example_${name} WORKING_DIRECTORY ${CMAKE_BINARY_DIR}/examples/${name})
    set_tests_properties(example.${name} PROPERTIES TIMEOUT 300)
  endif()
endforeach()

# Programs of bench/ that time the library alone. They are built with the examples, so that they keep compiling, and run by hand.
file(GLOB TENON_BENCH_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/*.cpp)
foreach(source ${TENON_BENCH_SOURCES})
  get_filename_component(name ${source} NAME_WE)
  add_executable(bench_${name} ${source})
  tenon_compile_lightly(bench_${name})
  target_link_libraries(bench_${name} PRIVATE tenon tenon_options)
endforeach()

# lab/conv compares the library's convolutions with cuDNN's; also run by hand.
add_executable(lab_conv ${PROJECT_SOURCE_DIR}/lab/conv/main.cpp)
tenon_compile_lightly(lab_conv)
target_link_libraries(lab_conv PRIVATE tenon tenon_options)
