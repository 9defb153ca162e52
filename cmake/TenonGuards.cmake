# Guards check figures and rules of the project. Each is a script that can be run by hand and says what to do if it fails.
set(guards ${PROJECT_SOURCE_DIR}/tests/guards)
set(python ${Python3_EXECUTABLE})

tenon_add_test(guard.layers 60 ${python} ${PROJECT_SOURCE_DIR}/tools/layers.py)
tenon_add_test(guard.layers_selftest 60 ${python} ${PROJECT_SOURCE_DIR}/tools/layers.py --self-test)
tenon_add_test(guard.rules 60 ${python} ${guards}/rules.py)
tenon_add_test(guard.words 60 ${python} ${guards}/words.py)
tenon_add_test(guard.links 60 ${python} ${guards}/links.py)
tenon_add_test(guard.links_selftest 60 ${python} ${guards}/links.py --self-test)
tenon_add_test(guard.scripts 60 ${python} ${guards}/scripts.py)
tenon_add_test(guard.results 60 ${python} ${guards}/results.py)
tenon_add_test(guard.tables 60 ${python} ${PROJECT_SOURCE_DIR}/bench/tables.py --check)
tenon_add_test(guard.chart 60 ${python} ${PROJECT_SOURCE_DIR}/bench/chart.py --check)
tenon_add_test(guard.times 60 ${python} ${guards}/times.py)
tenon_add_test(guard.op_cost 60 ${python} ${guards}/op_cost.py)
tenon_add_test(guard.options 60 ${python} ${guards}/options.py)
tenon_add_test(guard.header_time 120 ${python} ${guards}/header_time.py --compiler ${CMAKE_CXX_COMPILER} --limit 0.95)
tenon_add_test(guard.scalar_headers 120 ${python} ${guards}/scalar_headers.py --compiler ${CMAKE_CXX_COMPILER})
tenon_add_test(guard.lab 300 ${python} ${guards}/lab.py)
set_tests_properties(guard.lab PROPERTIES SKIP_RETURN_CODE 77)
# This guard measures times, so nothing may run in parallel.
set_tests_properties(guard.header_time PROPERTIES RUN_SERIAL ON)
if(NOT TENON_SANITIZE AND NOT TENON_BUILD_FUZZERS)
  set(kernels "")
  if(TENON_STORE) # kernels compiled ahead are counted separately
    set(kernels --kernels ${TENON_STORE})
  endif()
  tenon_add_test(guard.library 60 ${python} ${guards}/library.py --library $<TARGET_FILE:tenon_shared> --limit-mb 8.0
                 ${kernels})
  set(hardened $<TARGET_FILE:tenon_shared>)
  if(TARGET tenon_cli)
    list(APPEND hardened $<TARGET_FILE:tenon_cli>)
  endif()
  tenon_add_test(guard.hardening 60 ${python} ${guards}/hardening.py ${hardened} $<$<CONFIG:Release>:--release>)
  tenon_add_test(consumer 300 ${python} ${PROJECT_SOURCE_DIR}/tests/consumer/consumer.py --build ${CMAKE_BINARY_DIR}
                 --compiler ${CMAKE_CXX_COMPILER})
  # Compiles and runs the code and commands of the users' pages.
  tenon_add_test(docs.pages 600 ${python} ${PROJECT_SOURCE_DIR}/tests/docs/pages.py --build ${CMAKE_BINARY_DIR}
                 --compiler ${CMAKE_CXX_COMPILER})
endif()

# Replaces malloc, which sanitizers do too.
if(NOT TENON_SANITIZE AND NOT TENON_BUILD_FUZZERS AND CMAKE_SYSTEM_NAME STREQUAL "Linux")
  add_executable(tenon_allocations ${guards}/allocations.cpp)
  target_link_libraries(tenon_allocations PRIVATE tenon tenon_options)
  tenon_add_test(guard.allocations 60 tenon_allocations)
  # Tries some sequences of callers. Without options the program tries all, in an hour.
  add_executable(tenon_failing_allocations ${guards}/failing_allocations.cpp)
  target_compile_definitions(tenon_failing_allocations PRIVATE TENON_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(tenon_failing_allocations PRIVATE tenon tenon_options)
  set_target_properties(tenon_failing_allocations PROPERTIES ENABLE_EXPORTS ON) # names in stacks
  tenon_add_test(guard.failing_allocations 120 tenon_failing_allocations --seconds 20 --samples 40)
endif()
