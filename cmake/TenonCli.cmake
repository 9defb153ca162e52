# The command: bin/tenon, linked with the static library so that it is one file to copy.
file(GLOB TENON_CLI_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cli/*.cpp)
if(TENON_CLI_SOURCES)
  find_package(fmt REQUIRED)
  find_package(CURL REQUIRED)
  add_executable(tenon_cli ${TENON_CLI_SOURCES})
  set_target_properties(tenon_cli PROPERTIES OUTPUT_NAME tenon)
  target_include_directories(tenon_cli PRIVATE ${PROJECT_SOURCE_DIR}/cli)
  # The command only talks; what must be fast is in the library.
  target_compile_options(tenon_cli PRIVATE $<$<CONFIG:Release>:-Os> ${TENON_FEWER_PASSES} "${TENON_HARDENED}")
  # libcurl is loaded when something is fetched: linking it would bring thirty libraries into every start.
  target_include_directories(tenon_cli PRIVATE ${CURL_INCLUDE_DIRS})
  target_link_libraries(tenon_cli PRIVATE tenon tenon_options fmt::fmt ${CMAKE_DL_LIBS})
  target_link_options(tenon_cli PRIVATE -Wl,--gc-sections)
  if(TENON_PRECOMPILE)
    # Some files at a time, as the library's rooms: what fmt and JSON are instantiated for is then made once for all of them. To
    # precompile headers for so few units would take 6 s and save 1.
    set_target_properties(tenon_cli PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${TENON_FILES_AT_ONCE})
  endif()
endif()
