# Embeds the device headers in the library, so that an installed library can compile kernels at run time. Also embeds the tables of
# measured engine choices, and the built-in networks that are TOML files.
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

file(GLOB TENON_NETWORK_FILES CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/src/models/networks
     ${PROJECT_SOURCE_DIR}/src/models/networks/*.toml)
list(TRANSFORM TENON_NETWORK_FILES PREPEND ${PROJECT_SOURCE_DIR}/src/models/networks/ OUTPUT_VARIABLE TENON_NETWORK_PATHS)
string(REPLACE ";" "|" TENON_NETWORK_LIST "${TENON_NETWORK_FILES}")
set(TENON_NETWORKS_SOURCE ${PROJECT_BINARY_DIR}/generated/networks.cpp)
add_custom_command(
  OUTPUT ${TENON_NETWORKS_SOURCE}
  COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR}/src/models/networks -DFILES=${TENON_NETWORK_LIST}
          -DOUTPUT=${TENON_NETWORKS_SOURCE} -P ${PROJECT_SOURCE_DIR}/cmake/EmbedTexts.cmake
  DEPENDS ${TENON_NETWORK_PATHS} ${PROJECT_SOURCE_DIR}/cmake/EmbedTexts.cmake
  COMMENT "Embedding networks"
  VERBATIM)
