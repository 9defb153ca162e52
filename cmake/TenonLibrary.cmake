# The library: every object is compiled once, position-independent and with hidden symbols, for both libtenon.a and libtenon.so.
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PNG REQUIRED)
find_package(JPEG REQUIRED)
find_path(UTF8PROC_INCLUDE_DIR utf8proc.h)
find_library(UTF8PROC_LIBRARY utf8proc)
if(NOT UTF8PROC_INCLUDE_DIR OR NOT UTF8PROC_LIBRARY)
  message(FATAL_ERROR "utf8proc was not found: install libutf8proc-dev")
endif()
set(TENON_DEPENDENCIES Threads::Threads ZLIB::ZLIB PNG::PNG JPEG::JPEG utf8proc ${CMAKE_DL_LIBS})

# Image formats whose libraries are optional.
find_package(TIFF QUIET)
if(TIFF_FOUND AND NOT TIFF_VERSION_STRING VERSION_LESS 4.5)
  set(TENON_WITH_TIFF ON)
  list(APPEND TENON_DEPENDENCIES TIFF::TIFF)
endif()
find_path(WEBP_INCLUDE_DIR webp/decode.h)
find_library(WEBP_LIBRARY webp)
if(WEBP_INCLUDE_DIR AND WEBP_LIBRARY)
  set(TENON_WITH_WEBP ON)
  list(APPEND TENON_DEPENDENCIES webp)
endif()

# Videos need only the headers of FFmpeg 5.1 or newer. Its libraries are loaded when a video is opened.
find_path(FFMPEG_INCLUDE_DIR libavformat/version_major.h PATH_SUFFIXES ffmpeg)
find_path(SWSCALE_INCLUDE_DIR libswscale/version_major.h PATH_SUFFIXES ffmpeg)
if(FFMPEG_INCLUDE_DIR AND SWSCALE_INCLUDE_DIR)
  set(TENON_WITH_FFMPEG ON)
endif()

# Options of every target of the project. Results follow IEEE 754.
add_library(tenon_options INTERFACE)
target_compile_options(tenon_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow)
if(TENON_WARNINGS_AS_ERRORS)
  target_compile_options(tenon_options INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 warns wrongly of overlaps in std::string's operator+ (GCC bug 105651).
  target_compile_options(tenon_options INTERFACE -Wno-restrict)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # The compiler collects garbage at half a GB instead of an eighth. This saves a tenth of the time for a quarter more memory.
  target_compile_options(tenon_options INTERFACE --param=ggc-min-heapsize=524288 --param=ggc-min-expand=200)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # GCC options that clang does not know.
  target_compile_options(tenon_options INTERFACE -Wno-unknown-pragmas -Wno-unknown-warning-option -Wno-pass-failed)
endif()
if(TENON_SANITIZE)
  target_compile_options(tenon_options INTERFACE -fsanitize=${TENON_SANITIZE} -fno-omit-frame-pointer -g1)
  target_link_options(tenon_options INTERFACE -fsanitize=${TENON_SANITIZE})
endif()
# Hardening: tables that the loader fills are read-only afterwards (full RELRO), a write beyond an array on the stack is noticed, and
# the C library checks buffers of known size. Code that reads foreign bytes, and the command, watch every array and every variable whose
# address is taken. Operations, planning and engines, which read none, watch arrays of characters. Files that are compiled for speed (CPU
# kernels, graph nodes, devices, and what of data/ and base/ every sample goes through) do without the last two: their bounds are shapes that were checked. Sanitizers check more themselves.
if(NOT TENON_SANITIZE AND NOT TENON_BUILD_FUZZERS)
  target_link_options(tenon_options INTERFACE -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
  set(TENON_HARDENED "$<$<CONFIG:Release,RelWithDebInfo,MinSizeRel>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2;-fstack-protector-strong>")
  set(TENON_HARDENED_LESS "$<$<CONFIG:Release,RelWithDebInfo,MinSizeRel>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2;-fstack-protector>")
else()
  set(TENON_HARDENED "")
  set(TENON_HARDENED_LESS "")
endif()
target_compile_definitions(tenon_options INTERFACE TENON_VERSION="${PROJECT_VERSION}")

file(GLOB_RECURSE TENON_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.cpp)
tenon_choose_isa(TENON_SOURCES)
foreach(kind TIFF WEBP)
  if(TENON_WITH_${kind})
    string(TOLOWER ${kind} name)
    set_property(SOURCE ${PROJECT_SOURCE_DIR}/src/io/images/image_${name}.cpp APPEND PROPERTY COMPILE_DEFINITIONS TENON_WITH_${kind})
    set_property(SOURCE ${PROJECT_SOURCE_DIR}/src/io/images/image_${name}.cpp PROPERTY SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endforeach()
if(TENON_WITH_FFMPEG)
  foreach(name video video_library)
    set_property(SOURCE ${PROJECT_SOURCE_DIR}/src/io/video/${name}.cpp APPEND PROPERTY COMPILE_DEFINITIONS TENON_WITH_FFMPEG)
    set_property(SOURCE ${PROJECT_SOURCE_DIR}/src/io/video/${name}.cpp PROPERTY SKIP_UNITY_BUILD_INCLUSION ON)
    set_property(SOURCE ${PROJECT_SOURCE_DIR}/src/io/video/${name}.cpp PROPERTY INCLUDE_DIRECTORIES ${FFMPEG_INCLUDE_DIR})
  endforeach()
endif()
include(cmake/TenonEmbed.cmake)

# Kernels, and code that runs in every step or batch, get full optimisation. The rest is compiled in half the time.
set(TENON_HOT_SOURCES ${TENON_SOURCES})
list(FILTER TENON_HOT_SOURCES INCLUDE REGEX "/src/(base|cpu|data|device|graph)/")
set(TENON_DATA_SOURCES ${TENON_HOT_SOURCES})
list(FILTER TENON_DATA_SOURCES INCLUDE REGEX "/src/data/")
list(FILTER TENON_DATA_SOURCES EXCLUDE REGEX "/data/(drawn|pixels|tokens)/")
list(REMOVE_ITEM TENON_HOT_SOURCES ${TENON_DATA_SOURCES})
list(FILTER TENON_HOT_SOURCES EXCLUDE REGEX "/(base/system|graph/tracing)/")
set(TENON_COLD_SOURCES ${TENON_SOURCES})
list(REMOVE_ITEM TENON_COLD_SOURCES ${TENON_HOT_SOURCES})
# CPU engines choose kernels and write programs for them. Only the code of cpu/engines/run and cpu/engines/reference loops over elements.
set(TENON_ENGINE_SOURCES ${TENON_HOT_SOURCES})
list(FILTER TENON_ENGINE_SOURCES INCLUDE REGEX "/cpu/engines/(compile/)?[a-z_]*\\.cpp$")
list(REMOVE_ITEM TENON_HOT_SOURCES ${TENON_ENGINE_SOURCES})
list(APPEND TENON_COLD_SOURCES ${TENON_ENGINE_SOURCES})
# Code that runs once per file, network, loop, library, kernel of a plan or epoch is compiled for size, a third smaller. Passes that
# visit every node, step or pair a few hundred times are excluded, and so is the replay of CUDA graphs.
set(TENON_SMALL_SOURCES ${TENON_COLD_SOURCES})
list(FILTER TENON_SMALL_SOURCES INCLUDE
     REGEX "/src/(backends|base|cpu|cuda|data|distributions|grad|io|linalg|models|nn|ops|optim|plan|programs|run/(api|tuning)|train)/|/graph/tracing/")
list(FILTER TENON_SMALL_SOURCES EXCLUDE REGEX "/src/(plan/(cleanup|graph|memory)|cuda/capture)/")
list(REMOVE_ITEM TENON_COLD_SOURCES ${TENON_SMALL_SOURCES})
# The part of that code that reads foreign files and copies samples.
set(TENON_READER_SOURCES ${TENON_SMALL_SOURCES})
list(FILTER TENON_READER_SOURCES INCLUDE REGEX "/src/(base|data|io|models|programs|train)/")
list(REMOVE_ITEM TENON_SMALL_SOURCES ${TENON_READER_SOURCES})
# Loops that no step of a training waits for, compiled without what -O3 adds.
set(TENON_LOOP_SOURCES ${TENON_HOT_SOURCES})
list(FILTER TENON_LOOP_SOURCES INCLUDE REGEX "/src/(cpu/engines/reference|cpu/kernels/fourier|data/(drawn|tokens))/")
list(REMOVE_ITEM TENON_HOT_SOURCES ${TENON_LOOP_SOURCES})
# Code whose loops must be vectorized, without what else -O3 adds, which makes it a tenth to a third larger: what moves
# elements, sorts them, runs the tiles of a fused region, and calls the tiles of matrix products and convolutions.
set(TENON_VECTOR_SOURCES ${TENON_HOT_SOURCES})
list(FILTER TENON_VECTOR_SOURCES INCLUDE REGEX "/src/cpu/(engines/run|kernels/(attention|conv|gemm|pool|rows))/")
list(FILTER TENON_VECTOR_SOURCES EXCLUDE REGEX "_(avx2|avx512|amx|neon|base)\\.cpp$")
list(REMOVE_ITEM TENON_HOT_SOURCES ${TENON_VECTOR_SOURCES})
# Drawn images and Fourier transforms need vectorized loops. With them they are as fast as with -O3.
foreach(source ${TENON_LOOP_SOURCES})
  if(source MATCHES "/data/drawn/|/cpu/kernels/fourier/")
    set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS $<$<CONFIG:Release>:-ftree-vectorize>)
  endif()
endforeach()
if(TENON_BUILD_FUZZERS)
  # Not instrumented: these folders parse no foreign bytes, and instrumenting them takes minutes.
  set(TENON_IDLE_SOURCES ${TENON_SOURCES})
  list(FILTER TENON_IDLE_SOURCES INCLUDE REGEX "/src/(backends|cpu|cuda|device|distributions|grad|linalg|optim|plan)/")
  foreach(kind HOT LOOP VECTOR COLD SMALL)
    list(REMOVE_ITEM TENON_${kind}_SOURCES ${TENON_IDLE_SOURCES})
  endforeach()
endif()

# For code compiled for size: with a frame pointer, a stack frame has fewer rows in the unwind tables. This saves a sixth of the tables and
# costs a fiftieth of the code. Profilers that follow frame pointers see this code's callers.
set(TENON_SHORT_FRAMES -fno-omit-frame-pointer)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # For code compiled for size: disables compiler passes that take a fifth of the time and make nothing smaller.
  set(TENON_FEWER_PASSES -fno-tree-vrp -fno-tree-pta -fno-tree-pre -fno-gcse -fno-tree-dominator-opts -fno-rerun-cse-after-loop
       -fno-schedule-insns2 -fno-code-hoisting -fno-ipa-icf -fno-ipa-sra -fno-caller-saves -fno-thread-jumps)
  # Disables the passes that make loops larger: values computed before a loop take registers, which are then saved and restored.
  set(TENON_SMALL_LOOPS -fno-tree-loop-optimize -fno-move-loop-invariants)
  # Compiled for size, a copy of unknown length is one slow instruction. Samples of 8 numbers are loaded in half the time with calls.
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    set(TENON_CALLED_COPIES -mstringop-strategy=libcall)
  endif()
endif()

# Reading headers is half of the build time. Headers of the standard library are precompiled, except with a compiler cache, which does
# the same better, and for files with their own flags, which cannot use the result. For the project's headers, several files of a
# room are compiled as one unity file. Such files must not define one name twice, even in anonymous namespaces.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT CMAKE_CXX_COMPILER_LAUNCHER AND NOT TENON_SANITIZE AND TENON_TOP_LEVEL)
  set(TENON_PRECOMPILE ON)
else()
  set(TENON_PRECOMPILE OFF)
endif()
# Fuzzers are built from nothing as often, by clang, with flags of their own for what they do not instrument.
if(TENON_PRECOMPILE OR (TENON_BUILD_FUZZERS AND NOT CMAKE_CXX_COMPILER_LAUNCHER))
  set(TENON_TOGETHER ON)
else()
  set(TENON_TOGETHER OFF)
endif()
set(TENON_COMMON_HEADERS <algorithm> <array> <chrono> <cstdint> <cstring> <functional> <map> <memory> <mutex> <optional> <span> <string>
    <unordered_map> <vector>)
set(TENON_FILES_AT_ONCE 24)

# Selects the files of a list for unity files. CPU kernels are excluded, because each takes long to compile alone.
function(tenon_compile_together sources)
  set(room "")
  foreach(source ${sources})
    get_source_file_property(own_flags ${source} COMPILE_OPTIONS)
    if(own_flags)
      set_source_files_properties(${source} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
    endif()
    get_filename_component(folder ${source} DIRECTORY)
    if(own_flags OR folder MATCHES "/cpu/kernels")
      set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
      continue()
    endif()
    string(REGEX REPLACE "^${PROJECT_SOURCE_DIR}/src/([a-z]+)/.*" "\\1" name ${source})
    if(NOT name STREQUAL room)
      set(room ${name})
      set(files 0)
    endif()
    math(EXPR batch "${files} / ${TENON_FILES_AT_ONCE}")
    math(EXPR files "${files} + 1")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${name}_${batch})
  endforeach()
endfunction()

function(tenon_add_objects target optimisation)
  add_library(${target} OBJECT ${ARGN})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:${optimisation}> -fno-math-errno -fno-trapping-math
                         -ffunction-sections -fdata-sections)
  target_link_libraries(${target} PRIVATE tenon_options ${TENON_DEPENDENCIES})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden
                        VISIBILITY_INLINES_HIDDEN ON)
  # Precompiling takes four seconds, which a handful of unity files does not save.
  if(TENON_PRECOMPILE AND NOT target MATCHES "_(loop|cold)_objects")
    target_precompile_headers(${target} PRIVATE ${TENON_COMMON_HEADERS})
  endif()
  if(TENON_TOGETHER)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
    # GCC warns of a class whose member has a type of an anonymous namespace, except in the main file.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
    tenon_compile_together("${ARGN}")
  endif()
endfunction()
# A relocation takes 24 bytes, or one bit if the loader supports packed ones (glibc 2.36). This saves a fortieth of the library.
option(TENON_PACK_RELOCATIONS "Pack relocations: smaller, and the loader must be of glibc 2.36 or newer" ON)
if(TENON_PACK_RELOCATIONS AND NOT CMAKE_CROSSCOMPILING)
  # Some linkers take the option and make a program that the loader refuses, so one is run.
  include(CheckCXXSourceRuns)
  set(CMAKE_REQUIRED_LINK_OPTIONS -Wl,-z,pack-relative-relocs)
  set(CMAKE_REQUIRED_FLAGS "-fPIE -pie")
  check_cxx_source_runs("int value; int* volatile place = &value; int main() { return *place; }" TENON_LINKER_PACKS_RELOCATIONS)
  unset(CMAKE_REQUIRED_LINK_OPTIONS)
  unset(CMAKE_REQUIRED_FLAGS)
  if(TENON_LINKER_PACKS_RELOCATIONS)
    target_link_options(tenon_options INTERFACE -Wl,-z,pack-relative-relocs)
  endif()
endif()

tenon_add_objects(tenon_hot_objects -O3 ${TENON_HOT_SOURCES})
tenon_add_objects(tenon_loop_objects -O2 ${TENON_LOOP_SOURCES})
tenon_add_objects(tenon_cold_objects -O1 ${TENON_COLD_SOURCES})
tenon_add_objects(tenon_small_objects -Os ${TENON_SMALL_SOURCES} ${TENON_EMBEDDED_SOURCE} ${TENON_NETWORKS_SOURCE})
tenon_add_objects(tenon_reader_objects -Os ${TENON_READER_SOURCES})
target_compile_options(tenon_cold_objects PRIVATE "${TENON_HARDENED_LESS}")
target_compile_options(tenon_small_objects PRIVATE ${TENON_FEWER_PASSES} ${TENON_SMALL_LOOPS} ${TENON_SHORT_FRAMES} "${TENON_HARDENED_LESS}")
target_compile_options(tenon_reader_objects PRIVATE ${TENON_FEWER_PASSES} ${TENON_SMALL_LOOPS} ${TENON_SHORT_FRAMES} ${TENON_CALLED_COPIES}
                       "${TENON_HARDENED}")
if(TENON_TOGETHER)
  set_source_files_properties(${TENON_EMBEDDED_SOURCE} ${TENON_NETWORKS_SOURCE}
                              PROPERTIES SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
endif()
set(TENON_OBJECTS $<TARGET_OBJECTS:tenon_hot_objects> $<TARGET_OBJECTS:tenon_loop_objects> $<TARGET_OBJECTS:tenon_cold_objects>
                  $<TARGET_OBJECTS:tenon_small_objects> $<TARGET_OBJECTS:tenon_reader_objects>)
if(TENON_BUILD_FUZZERS)
  tenon_add_objects(tenon_idle_objects -O0 ${TENON_IDLE_SOURCES})
  list(APPEND TENON_OBJECTS $<TARGET_OBJECTS:tenon_idle_objects>)
else()
  tenon_add_objects(tenon_vector_objects -O2 ${TENON_VECTOR_SOURCES})
  target_compile_options(tenon_vector_objects PRIVATE $<$<CONFIG:Release>:-ftree-vectorize>)
  list(APPEND TENON_OBJECTS $<TARGET_OBJECTS:tenon_vector_objects>)
endif()

include(cmake/TenonCubins.cmake)

add_library(tenon STATIC ${TENON_OBJECTS} $<TARGET_OBJECTS:tenon_built_in_objects>)
target_include_directories(tenon PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                        $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(tenon PUBLIC cxx_std_20)
target_link_libraries(tenon PUBLIC ${TENON_DEPENDENCIES})
set_target_properties(tenon PROPERTIES EXPORT_NAME tenon_static LINKER_LANGUAGE CXX)

add_library(tenon_shared SHARED ${TENON_OBJECTS} $<TARGET_OBJECTS:tenon_built_in_objects>)
target_include_directories(tenon_shared PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                               $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(tenon_shared PUBLIC cxx_std_20)
target_link_libraries(tenon_shared PRIVATE ${TENON_DEPENDENCIES} $<BUILD_INTERFACE:tenon_options>)
if(NOT TENON_SANITIZE AND NOT TENON_BUILD_FUZZERS)
  # Calls inside the library go to its own functions directly, without a table that another library could change.
  target_link_options(tenon_shared PRIVATE -Wl,--no-undefined -Wl,--gc-sections -Wl,-Bsymbolic-functions
                      -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/exports.map)
  set_property(TARGET tenon_shared APPEND PROPERTY LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/exports.map)
endif()
# Before 1.0 a minor version may change the ABI, so it is part of the soname.
set_target_properties(tenon_shared PROPERTIES OUTPUT_NAME tenon EXPORT_NAME tenon_shared LINKER_LANGUAGE CXX
                      VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})

# The target names of an installed copy, for projects that add Tenon as a subdirectory.
add_library(Tenon::tenon_static ALIAS tenon)
add_library(Tenon::tenon_shared ALIAS tenon_shared)
add_library(Tenon::tenon ALIAS tenon)

# Options of programs that are tested rather than timed. They are lightly optimised, for half the compile time: the timed code is in the
# library.
function(tenon_optimise_lightly target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # With few passes, GCC 12 takes the buffer of a std::string in a temporary for the whole object (GCC bug 105329).
    target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  if(TENON_PRECOMPILE)
    # GCC warns of a class whose member has a type of an anonymous namespace, except in the main file.
    target_compile_options(${target} PRIVATE ${TENON_FEWER_PASSES} -Wno-subobject-linkage)
  endif()
endfunction()

# Small programs share precompiled headers of Tenon, which take most of their time. They are made by a target without code.
if(TENON_PRECOMPILE)
  file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/generated/headers.cpp CONTENT "")
  add_library(tenon_headers OBJECT EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/generated/headers.cpp)
  target_include_directories(tenon_headers PRIVATE ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(tenon_headers PRIVATE tenon_options)
  tenon_optimise_lightly(tenon_headers)
  target_precompile_headers(tenon_headers PRIVATE ${TENON_COMMON_HEADERS} <tenon/tenon.h>)
endif()
function(tenon_compile_lightly target)
  tenon_optimise_lightly(${target})
  if(TENON_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM tenon_headers)
  endif()
endfunction()
