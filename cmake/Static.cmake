# TPSIM_STATIC: a single file that runs on any Linux of its architecture, without shared libraries.
# Debian has static libraries of libyaml and zlib; fmt and toml++ are compiled in as headers.
option(TPSIM_STATIC "link the program statically" OFF)
if(NOT TPSIM_STATIC)
  return()
endif()

# Excludes parts that load shared libraries or look up hosts, which glibc cannot do statically.
foreach(part IN ITEMS BLAS MPI CUDA GUI WEB)
  set(TPSIM_${part} OFF CACHE STRING "needs shared libraries" FORCE)
endforeach()
set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
# Makes the program independent of the tree's location.
add_compile_options("-ffile-prefix-map=${PROJECT_SOURCE_DIR}=." "-ffile-prefix-map=${PROJECT_BINARY_DIR}=.")

# Header-only fmt and toml++ replace Debian's targets, which are shared libraries.
function(tpsim_add_headers target header definition)
  string(MAKE_C_IDENTIFIER "TPSIM_FOLDER_OF_${header}" folder)
  find_path(${folder} "${header}" REQUIRED)
  mark_as_advanced(${folder})
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  target_include_directories(${target} INTERFACE "${${folder}}")
  target_compile_definitions(${target} INTERFACE ${definition})
endfunction()
