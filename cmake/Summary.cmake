# Summary of the configuration, and the header with which `tpsim --version` prints it.
message(STATUS "tpsim ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}, "
               "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
set(TPSIM_FEATURE_ROWS "")
foreach(name IN LISTS TPSIM_FEATURES)
  string(SUBSTRING "${name}:       " 0 8 column)
  message(STATUS "  ${column}${TPSIM_STATE_${name}}")
  string(APPEND TPSIM_FEATURE_ROWS "    BuiltFeature{\"${name}\", \"${TPSIM_STATE_${name}}\"},\n")
endforeach()

configure_file(cmake/tpsim_config.h.in generated/tpsim_config.h @ONLY)
add_library(tpsim_config INTERFACE)
target_include_directories(tpsim_config INTERFACE "${PROJECT_BINARY_DIR}")
