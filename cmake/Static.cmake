# TPSIM_STATIC: one file that runs on any Linux of its architecture, whatever its libraries are. Debian
# has archives of libyaml, zlib and SQLite; fmt and toml++ are compiled in as headers.
option(TPSIM_STATIC "link the program statically" OFF)
if(NOT TPSIM_STATIC)
  return()
endif()

# What opens shared libraries or looks up hosts stays out: glibc cannot do either statically.
foreach(part IN ITEMS BLAS MPI CUDA GUI WEB)
  set(TPSIM_${part} OFF CACHE STRING "needs shared libraries" FORCE)
endforeach()
set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
# The same bytes wherever the tree lies.
add_compile_options("-ffile-prefix-map=${PROJECT_SOURCE_DIR}=." "-ffile-prefix-map=${PROJECT_BINARY_DIR}=.")

# fmt and toml++ in place of Debian's targets, which are shared libraries.
function(tpsim_add_headers target header definition)
  string(MAKE_C_IDENTIFIER "TPSIM_FOLDER_OF_${header}" folder)
  find_path(${folder} "${header}" REQUIRED)
  mark_as_advanced(${folder})
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  target_include_directories(${target} INTERFACE "${${folder}}")
  target_compile_definitions(${target} INTERFACE ${definition})
endfunction()

# Debian's SQLite can load extensions, which nobody here asks for, by dlopen(): in a copy of the
# archive those calls lead to evidence/logs/sqlite_without_extensions.cc.
function(tpsim_sqlite_without_extensions archive result)
  set(copy "${PROJECT_BINARY_DIR}/libsqlite3_without_extensions.a")
  set(renamed "")
  foreach(symbol IN ITEMS dlopen dlsym dlclose dlerror)
    list(APPEND renamed "--redefine-sym" "${symbol}=tpsim_no_${symbol}")
  endforeach()
  execute_process(COMMAND "${CMAKE_OBJCOPY}" ${renamed} "${archive}" "${copy}"
                  COMMAND_ERROR_IS_FATAL ANY)
  set(${result} "${copy}" PARENT_SCOPE)
endfunction()
