# tenon_add_plugin(NAME FILES...): a shared object for `tenon --plugin`. It uses Tenon's headers and does not link Tenon's library: its
# symbols are those of the program that loads it.
function(tenon_add_plugin name)
  add_library(${name} MODULE ${ARGN})
  target_include_directories(${name} PRIVATE $<TARGET_PROPERTY:Tenon::tenon,INTERFACE_INCLUDE_DIRECTORIES>)
  target_compile_features(${name} PRIVATE cxx_std_20)
  set_target_properties(${name} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endfunction()
