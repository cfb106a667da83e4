# What tpsim cannot be built without. Each is a Debian package; a missing one is an error naming it.
# A macro, so that what a package sets is seen by the folders.
macro(tpsim_require name package)
  find_package(${name} ${ARGN} QUIET)
  if(NOT ${name}_FOUND)
    message(FATAL_ERROR "tpsim needs ${name}: apt-get install ${package} "
                        "(tools/install_packages.sh installs everything)")
  endif()
endmacro()

tpsim_require(fmt libfmt-dev 9)
tpsim_require(nlohmann_json nlohmann-json3-dev 3.11)
tpsim_require(CLI11 libcli11-dev 2)
if(TPSIM_TESTS)
  tpsim_require(Catch2 catch2 2)
endif()

# Turns an option into what the build does: `found` is set when the feature is wanted and there.
# AUTO without it says what to install and goes on; ON without it is an error.
function(tpsim_optional option available what package)
  set(${option}_FOUND FALSE PARENT_SCOPE)
  if(${option} STREQUAL "OFF")
    message(STATUS "tpsim: ${what}: off")
  elseif(available)
    set(${option}_FOUND TRUE PARENT_SCOPE)
    message(STATUS "tpsim: ${what}: on")
  elseif(${option} STREQUAL "ON")
    message(FATAL_ERROR "${option}=ON, but it was not found: apt-get install ${package}")
  else()
    message(STATUS "tpsim: ${what}: not built; apt-get install ${package} to have it")
  endif()
endfunction()

set(TPSIM_BLAS AUTO CACHE STRING "build the CPU device on OpenBLAS: AUTO, ON or OFF")
set(blas_available FALSE)
if(NOT TPSIM_BLAS STREQUAL "OFF" AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  find_path(OPENBLAS_INCLUDE_DIR openblas_config.h
    PATH_SUFFIXES openblas-pthread x86_64-linux-gnu/openblas-pthread openblas)
  find_library(OPENBLAS_LIBRARY openblas PATH_SUFFIXES openblas-pthread)
  mark_as_advanced(OPENBLAS_INCLUDE_DIR OPENBLAS_LIBRARY)
  if(OPENBLAS_INCLUDE_DIR AND OPENBLAS_LIBRARY)
    set(blas_available TRUE)
    add_library(OpenBLAS::OpenBLAS UNKNOWN IMPORTED)
    set_target_properties(OpenBLAS::OpenBLAS PROPERTIES
      IMPORTED_LOCATION "${OPENBLAS_LIBRARY}"
      INTERFACE_INCLUDE_DIRECTORIES "${OPENBLAS_INCLUDE_DIR}")
  endif()
endif()
tpsim_optional(TPSIM_BLAS ${blas_available} "CPU device (x86-64, OpenBLAS)" libopenblas-pthread-dev)
