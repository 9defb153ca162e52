# Embeds the device headers in the library, so that an installed library can compile kernels at run time. Also embeds the tables of
# measured engine choices, and the built-in networks that are TOML files.

# tenon_embed(NAME ROOT OUTPUT FILES…): OUTPUT will be a source file that defines the PackedFiles NAME.
function(tenon_embed name root output)
  list(TRANSFORM ARGN PREPEND ${root}/ OUTPUT_VARIABLE paths)
  string(REPLACE ";" "|" files "${ARGN}")
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DNAME=${name} -DROOT=${root} -DFILES=${files} -DOUTPUT=${output}
            -P ${PROJECT_SOURCE_DIR}/cmake/EmbedFiles.cmake
    DEPENDS ${paths} ${PROJECT_SOURCE_DIR}/cmake/EmbedFiles.cmake
    COMMENT "Embedding ${name}"
    VERBATIM)
endfunction()

file(GLOB headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/src
     ${PROJECT_SOURCE_DIR}/src/scalar/*.h ${PROJECT_SOURCE_DIR}/src/cuda/kernels/*.cuh ${PROJECT_SOURCE_DIR}/src/cuda/kernels/*/*.cuh
     ${PROJECT_SOURCE_DIR}/src/cuda/tuned/*.tune)
set(TENON_EMBEDDED_SOURCE ${PROJECT_BINARY_DIR}/generated/cuda_headers.cpp)
tenon_embed(packed_headers ${PROJECT_SOURCE_DIR}/src ${TENON_EMBEDDED_SOURCE} ${headers})

file(GLOB networks CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/src/models/networks ${PROJECT_SOURCE_DIR}/src/models/networks/*.toml)
set(TENON_NETWORKS_SOURCE ${PROJECT_BINARY_DIR}/generated/networks.cpp)
tenon_embed(packed_networks ${PROJECT_SOURCE_DIR}/src/models/networks ${TENON_NETWORKS_SOURCE} ${networks})
