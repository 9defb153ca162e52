# The command: bin/tenon, one file to copy. It contains all of the library and exports its public symbols, so that plugins
# (tenon --plugin) link with the copy in the command. This takes 1.1 MB and 0.3 ms at each start more than a command that contains
# only what it uses; linked with libtenon.so instead, the command would be two files that must fit.
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
  set_target_properties(tenon_cli_objects PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  # libcurl is loaded at the first download. Linking it would load thirty libraries at every start.
  target_include_directories(tenon_cli_objects PRIVATE ${CURL_INCLUDE_DIRS})
  target_link_libraries(tenon_cli_objects PRIVATE tenon tenon_options fmt::fmt)
  function(tenon_add_command target name)
    add_executable(${target} $<TARGET_OBJECTS:tenon_cli_objects> ${TENON_OBJECTS} $<TARGET_OBJECTS:tenon_built_in_objects> ${ARGN})
    set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} ENABLE_EXPORTS ON LINKER_LANGUAGE CXX)
    target_link_libraries(${target} PRIVATE tenon tenon_options fmt::fmt ${CMAKE_DL_LIBS})
    target_link_options(${target} PRIVATE -Wl,--gc-sections)
    if(NOT TENON_SANITIZE AND NOT TENON_BUILD_FUZZERS)
      target_link_options(${target} PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/exports.map)
      set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/exports.map)
    endif()
  endfunction()
  tenon_add_command(tenon_cli tenon ${TENON_COMMAND_SOURCES})
  if(TENON_PRECOMPILE)
    # Unity files, as in the library: templates of fmt and JSON are then instantiated once for several files. Precompiled headers
    # would take 6 s for so few units and save 1 s.
    set_target_properties(tenon_cli_objects PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${TENON_FILES_AT_ONCE})
  endif()
endif()
