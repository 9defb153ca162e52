# Embeds the device headers in the library, so that an installed library can compile kernels at run time. Also embeds the tables of
# measured engine choices.
file(GLOB TENON_DEVICE_HEADERS CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/src
     ${PROJECT_SOURCE_DIR}/src/scalar/*.h ${PROJECT_SOURCE_DIR}/src/cuda/kernels/*.cuh ${PROJECT_SOURCE_DIR}/src/cuda/kernels/*/*.cuh
     ${PROJECT_SOURCE_DIR}/src/cuda/tuned/*.tune)
list(TRANSFORM TENON_DEVICE_HEADERS PREPEND ${PROJECT_SOURCE_DIR}/src/ OUTPUT_VARIABLE TENON_DEVICE_HEADER_PATHS)
string(REPLACE ";" "|" TENON_DEVICE_HEADER_LIST "${TENON_DEVICE_HEADERS}")
set(TENON_EMBEDDED_SOURCE ${PROJECT_BINARY_DIR}/generated/cuda_headers.cpp)
add_custom_command(
  OUTPUT ${TENON_EMBEDDED_SOURCE}
  COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR}/src -DFILES=${TENON_DEVICE_HEADER_LIST}
          -DOUTPUT=${TENON_EMBEDDED_SOURCE} -P ${PROJECT_SOURCE_DIR}/cmake/EmbedFiles.cmake
  DEPENDS ${TENON_DEVICE_HEADER_PATHS} ${PROJECT_SOURCE_DIR}/cmake/EmbedFiles.cmake
  COMMENT "Embedding device headers"
  VERBATIM)
