# The command: bin/tenon, linked with the static library so that it is one file to copy.
#
# TENON_COMMAND_SOURCES adds source files of your own to the command, for instance one that registers transforms of images in a static
# initializer (docs/images.md). Tests link the command's objects with such a file too.
set(TENON_COMMAND_SOURCES "" CACHE STRING "C++ files of your own that are linked into bin/tenon, as absolute paths")
file(GLOB TENON_CLI_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cli/*.cpp)
if(TENON_CLI_SOURCES)
  find_package(fmt REQUIRED)
  find_package(CURL REQUIRED)
  add_library(tenon_cli_objects OBJECT ${TENON_CLI_SOURCES})
  target_include_directories(tenon_cli_objects PRIVATE ${PROJECT_SOURCE_DIR}/cli)
  # The command is not time-critical; the library is.
  target_compile_options(tenon_cli_objects PRIVATE $<$<CONFIG:Release>:-Os> ${TENON_FEWER_PASSES} "${TENON_HARDENED}")
  # libcurl is loaded at the first download. Linking it would load thirty libraries at every start.
  target_include_directories(tenon_cli_objects PRIVATE ${CURL_INCLUDE_DIRS})
  target_link_libraries(tenon_cli_objects PRIVATE tenon tenon_options fmt::fmt)
  function(tenon_add_command target name)
    add_executable(${target} $<TARGET_OBJECTS:tenon_cli_objects> ${ARGN})
    set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name})
    target_link_libraries(${target} PRIVATE tenon tenon_options fmt::fmt ${CMAKE_DL_LIBS})
    target_link_options(${target} PRIVATE -Wl,--gc-sections)
  endfunction()
  tenon_add_command(tenon_cli tenon ${TENON_COMMAND_SOURCES})
  if(TENON_PRECOMPILE)
    # Unity files, as in the library: templates of fmt and JSON are then instantiated once for several files. Precompiled headers
    # would take 6 s for so few units and save 1 s.
    set_target_properties(tenon_cli_objects PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${TENON_FILES_AT_ONCE})
  endif()
endif()
