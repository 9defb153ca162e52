# Tests: one program for all doctest files, one ctest entry for each folder of tests/; the command's tests; the guards.
#
# Every test runs in the source folder, with TENON_COMMAND naming the built command.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
find_package(doctest REQUIRED)

file(GLOB TENON_TEST_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/*/*.cpp)
list(FILTER TENON_TEST_SOURCES EXCLUDE REGEX "/tests/(fuzz|consumer|guards|conformance|plugins)/")
add_executable(tenon_tests ${TENON_TEST_SOURCES})
target_include_directories(tenon_tests PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
# Lightly optimised, for half the compile time. The timed code is in the library.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # With few passes, GCC 12 takes the buffer of a std::string in a temporary for the whole object (GCC bug 105329).
  set_property(SOURCE ${PROJECT_SOURCE_DIR}/tests/cases/functions.cpp ${PROJECT_SOURCE_DIR}/tests/programs/test_saved_program.cpp
               PROPERTY COMPILE_OPTIONS -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
endif()
target_compile_options(tenon_tests PRIVATE $<$<CONFIG:Release>:-O1>)
if(TENON_PRECOMPILE)
  target_compile_options(tenon_tests PRIVATE ${TENON_FEWER_PASSES})
  # Precompiles the headers that nearly all tests include, which saves a third of the time. Tenon's headers are excluded, because their
  # names clash with some tests. The file with doctest's main configures doctest itself.
  target_precompile_headers(tenon_tests PRIVATE <doctest/doctest.h> ${TENON_COMMON_HEADERS} <cmath> <filesystem> <fstream>
                            <limits> <set> <thread>)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/tests/base/test_main.cpp PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
endif()
target_link_libraries(tenon_tests PRIVATE tenon tenon_options doctest::doctest ${CMAKE_DL_LIBS})
include(cmake/TenonEmulator.cmake)
add_dependencies(tenon_tests tenon_fake_cuda tenon_fake_nvrtc)

function(tenon_add_test name seconds)
  add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${seconds}
                       ENVIRONMENT "TENON_COMMAND=${CMAKE_BINARY_DIR}/bin/tenon")
endfunction()

set(TENON_TEST_FOLDERS "")
foreach(source ${TENON_TEST_SOURCES})
  get_filename_component(folder ${source} DIRECTORY)
  get_filename_component(folder ${folder} NAME)
  list(APPEND TENON_TEST_FOLDERS ${folder})
endforeach()
list(REMOVE_DUPLICATES TENON_TEST_FOLDERS)
list(REMOVE_ITEM TENON_TEST_FOLDERS cuda)
foreach(folder ${TENON_TEST_FOLDERS})
  tenon_add_test(tests.${folder} 900 tenon_tests "--source-file=*/tests/${folder}/*" --no-intro)
endforeach()
# This test times planning.
set_tests_properties(tests.null PROPERTIES RUN_SERIAL ON)
# One entry per file, so that ctest -j runs them in parallel: compiling kernels for the emulated GPU takes most of the time.
foreach(source ${TENON_TEST_SOURCES})
  if(source MATCHES "/tests/cuda/test_([^/]*)\\.cpp$")
    tenon_add_test(tests.cuda.${CMAKE_MATCH_1} 900 tenon_tests "--source-file=*/tests/cuda/test_${CMAKE_MATCH_1}.cpp" --no-intro)
    tenon_use_emulator(tests.cuda.${CMAKE_MATCH_1})
  endif()
endforeach()
# Without a pool: freed memory is unmapped, and the emulated GPU reports later accesses.
set_property(TEST tests.cuda.train_launches APPEND PROPERTY ENVIRONMENT "TENON_CUDA_POOL=off")
tenon_add_test(tests.vendor 300 tenon_tests "--test-case=vendor:*" --no-intro)
tenon_use_emulator(tests.vendor)
tenon_use_fake_libraries(tests.vendor)

# PyTorch's samples for every operation: the committed part, or all from a folder that make_samples.py writes.
file(GLOB TENON_CONFORMANCE_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/conformance/*.cpp)
add_executable(tenon_conformance ${TENON_CONFORMANCE_SOURCES})
target_include_directories(tenon_conformance PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
target_compile_options(tenon_conformance PRIVATE $<$<CONFIG:Release>:-O1>)
target_link_libraries(tenon_conformance PRIVATE tenon tenon_options ${CMAKE_DL_LIBS})
tenon_add_test(tests.conformance 300 tenon_conformance tests/conformance)
tenon_add_test(tests.cuda.slopes 600 tenon_conformance tests/conformance --id /slopes/ --form data --device cuda:0)
tenon_use_emulator(tests.cuda.slopes)
tenon_add_test(guards.differences 60 ${Python3_EXECUTABLE} tests/conformance/document.py --check)

# Tests of the command are Python programs (unittest, standard library only).
if(TARGET tenon_cli)
  file(GLOB TENON_COMMAND_TESTS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/cli/test_*.py)
  foreach(source ${TENON_COMMAND_TESTS})
    get_filename_component(name ${source} NAME_WE)
    string(REPLACE "test_" "" name ${name})
    tenon_add_test(cli.${name} 600 ${Python3_EXECUTABLE} -B ${source})
  endforeach()
  tenon_add_command(tenon_own_command tenon_own ${PROJECT_SOURCE_DIR}/tests/cli/own_transform.cpp)
  set_property(TEST cli.own_transform APPEND PROPERTY ENVIRONMENT "TENON_OWN_COMMAND=$<TARGET_FILE:tenon_own_command>")
  # Plugins: the example, and those that must be refused. All are in one folder.
  include(cmake/TenonPlugin.cmake)
  set(TENON_PLUGIN_FOLDER ${CMAKE_BINARY_DIR}/plugins)
  foreach(plugin examples/plugin/stripes tests/plugins/other_version tests/plugins/throwing tests/plugins/colliding)
    get_filename_component(name ${plugin} NAME)
    tenon_add_plugin(tenon_plugin_${name} ${PROJECT_SOURCE_DIR}/${plugin}.cpp)
    target_compile_options(tenon_plugin_${name} PRIVATE $<$<CONFIG:Release>:-O1>)
    target_link_libraries(tenon_plugin_${name} PRIVATE tenon_options)
    set_target_properties(tenon_plugin_${name} PROPERTIES OUTPUT_NAME ${name} LIBRARY_OUTPUT_DIRECTORY ${TENON_PLUGIN_FOLDER})
  endforeach()
  set_property(TEST cli.plugin APPEND PROPERTY ENVIRONMENT "TENON_PLUGINS=${TENON_PLUGIN_FOLDER}")
  tenon_use_emulator(cli.gpu)
  set_tests_properties(cli.built_in PROPERTIES TIMEOUT 1200)
  set_property(TEST cli.built_in APPEND PROPERTY ENVIRONMENT "TENON_IDLE_GPU=$<TARGET_FILE:tenon_idle_gpu>"
               "TENON_BUILT_IN_TOOL=$<TARGET_FILE:tenon_built_in>")
  if(TENON_STORE)
    set_property(TEST cli.built_in APPEND PROPERTY ENVIRONMENT "TENON_IDLE_CUBLASLT=$<TARGET_FILE:tenon_idle_cublaslt>"
                 "TENON_IDLE_CUDNN=$<TARGET_FILE:tenon_idle_cudnn>")
  endif()
endif()

include(cmake/TenonGuards.cmake)
