# The library: every object is compiled once, position-independent and with hidden symbols, for both libtenon.a and libtenon.so.
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PNG REQUIRED)
find_package(JPEG REQUIRED)
set(TENON_DEPENDENCIES Threads::Threads ZLIB::ZLIB PNG::PNG JPEG::JPEG ${CMAKE_DL_LIBS})

# Every target of the project is compiled with these: results follow IEEE 754.
add_library(tenon_options INTERFACE)
target_compile_options(tenon_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow)
if(TENON_WARNINGS_AS_ERRORS)
  target_compile_options(tenon_options INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 sees overlaps in std::string's operator+ that are not there (GCC bug 105651).
  target_compile_options(tenon_options INTERFACE -Wno-restrict)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # GCC's hints and warning groups that clang does not know.
  target_compile_options(tenon_options INTERFACE -Wno-unknown-pragmas -Wno-unknown-warning-option -Wno-pass-failed)
endif()
if(TENON_SANITIZE)
  target_compile_options(tenon_options INTERFACE -fsanitize=${TENON_SANITIZE} -fno-omit-frame-pointer -g1)
  target_link_options(tenon_options INTERFACE -fsanitize=${TENON_SANITIZE})
endif()
target_compile_definitions(tenon_options INTERFACE TENON_VERSION="${PROJECT_VERSION}")

file(GLOB_RECURSE TENON_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.cpp)
tenon_choose_isa(TENON_SOURCES)
include(cmake/TenonEmbed.cmake)
add_library(tenon_objects OBJECT ${TENON_SOURCES} ${TENON_EMBEDDED_SOURCE})
target_include_directories(tenon_objects PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
target_compile_options(tenon_objects PRIVATE $<$<CONFIG:Release>:-O1> -fno-math-errno -fno-trapping-math -ffunction-sections -fdata-sections)
target_link_libraries(tenon_objects PRIVATE tenon_options ${TENON_DEPENDENCIES})
set_target_properties(tenon_objects PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden
                      VISIBILITY_INLINES_HIDDEN ON)

# Reading the standard library's headers is a third of the build. They are read once where that works: not through a compiler
# cache, which does the same better, nor for files with flags of their own, which could not use the result.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT CMAKE_CXX_COMPILER_LAUNCHER AND NOT TENON_SANITIZE AND TENON_TOP_LEVEL)
  set(TENON_PRECOMPILE ON)
else()
  set(TENON_PRECOMPILE OFF)
endif()
set(TENON_COMMON_HEADERS <algorithm> <array> <chrono> <cstdint> <cstring> <functional> <map> <memory> <mutex> <optional> <span> <string>
    <unordered_map> <vector>)
if(TENON_PRECOMPILE)
  target_precompile_headers(tenon_objects PRIVATE ${TENON_COMMON_HEADERS})
  foreach(source ${TENON_SOURCES} ${TENON_EMBEDDED_SOURCE})
    get_source_file_property(own_flags ${source} COMPILE_OPTIONS)
    if(own_flags OR source STREQUAL TENON_EMBEDDED_SOURCE)
      set_source_files_properties(${source} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
    endif()
  endforeach()
endif()

# What is left is reading the project's own headers: files of a room are compiled some at a time, as one, where the precompiled headers
# serve (files with flags of their own stay apart). Files must not give two things one name, in anonymous namespaces either.
set(TENON_FILES_AT_ONCE 8)
if(TENON_PRECOMPILE)
  set_target_properties(tenon_objects PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  set(room_files 0)
  set(room "")
  foreach(source ${TENON_SOURCES})
    get_filename_component(folder ${source} DIRECTORY)
    if(NOT folder STREQUAL room)
      set(room ${folder})
      set(room_files 0)
    endif()
    math(EXPR batch "${room_files} / ${TENON_FILES_AT_ONCE}")
    math(EXPR room_files "${room_files} + 1")
    string(REPLACE "${PROJECT_SOURCE_DIR}/src/" "" name ${folder})
    string(REPLACE "/" "_" name ${name})
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${name}_${batch})
  endforeach()
  # GCC warns of a class with a member of an anonymous namespace's type, except in the file that it compiles.
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/run/compile.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endif()

include(cmake/TenonCubins.cmake)

add_library(tenon STATIC $<TARGET_OBJECTS:tenon_objects> $<TARGET_OBJECTS:tenon_built_in_objects>)
target_include_directories(tenon PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                        $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(tenon PUBLIC cxx_std_20)
target_link_libraries(tenon PUBLIC ${TENON_DEPENDENCIES})
set_target_properties(tenon PROPERTIES EXPORT_NAME tenon_static LINKER_LANGUAGE CXX)

add_library(tenon_shared SHARED $<TARGET_OBJECTS:tenon_objects> $<TARGET_OBJECTS:tenon_built_in_objects>)
target_include_directories(tenon_shared PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                               $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(tenon_shared PUBLIC cxx_std_20)
target_link_libraries(tenon_shared PRIVATE ${TENON_DEPENDENCIES} $<BUILD_INTERFACE:tenon_options>)
if(NOT TENON_SANITIZE AND NOT TENON_BUILD_FUZZERS)
  target_link_options(tenon_shared PRIVATE -Wl,--no-undefined -Wl,--gc-sections)
endif()
# Before 1.0 a minor version may change the ABI, so it is part of the soname.
set_target_properties(tenon_shared PROPERTIES OUTPUT_NAME tenon EXPORT_NAME tenon_shared LINKER_LANGUAGE CXX
                      VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})

# The names that installed copies have too, for projects that add this one as a subdirectory.
add_library(Tenon::tenon_static ALIAS tenon)
add_library(Tenon::tenon_shared ALIAS tenon_shared)
add_library(Tenon::tenon ALIAS tenon)
