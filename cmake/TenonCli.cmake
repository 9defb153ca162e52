# The command: bin/tenon, linked with the static library so that it is one file to copy.
file(GLOB TENON_CLI_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cli/*.cpp)
if(TENON_CLI_SOURCES)
  find_package(fmt REQUIRED)
  find_package(CURL REQUIRED)
  add_executable(tenon_cli ${TENON_CLI_SOURCES})
  set_target_properties(tenon_cli PROPERTIES OUTPUT_NAME tenon)
  target_include_directories(tenon_cli PRIVATE ${PROJECT_SOURCE_DIR}/cli)
  # The command is not time-critical; the library is.
  target_compile_options(tenon_cli PRIVATE $<$<CONFIG:Release>:-Os> ${TENON_FEWER_PASSES} "${TENON_HARDENED}")
  # libcurl is loaded at the first download. Linking it would load thirty libraries at every start.
  target_include_directories(tenon_cli PRIVATE ${CURL_INCLUDE_DIRS})
  target_link_libraries(tenon_cli PRIVATE tenon tenon_options fmt::fmt ${CMAKE_DL_LIBS})
  target_link_options(tenon_cli PRIVATE -Wl,--gc-sections)
  if(TENON_PRECOMPILE)
    # Unity files, as in the library: templates of fmt and JSON are then instantiated once for several files. Precompiled headers
    # would take 6 s for so few units and save 1 s.
    set_target_properties(tenon_cli PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${TENON_FILES_AT_ONCE})
  endif()
endif()
