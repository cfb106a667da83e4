# Optional parts. Each is a cache option TPSIM_<NAME> = AUTO | ON | OFF:
#   AUTO  build it when its packages are here, say so when they are not
#   ON    fail without them, naming the packages
#   OFF   do not look
# A part that was found sets TPSIM_HAS_<NAME>, by which folders select source files, and an imported
# target tpsim_<name> to link. TPSIM_STATE_<NAME> says what was found: Summary.cmake prints it.

set(TPSIM_FEATURES BLAS MPI CUDA GUI)

# tpsim_feature(<NAME> <what it gives> <packages> <find function>)
# The find function sets <NAME>_FOUND_AS to a text with the version, or <NAME>_MISSING to a reason.
function(tpsim_feature name gives packages find)
  set(TPSIM_${name} AUTO CACHE STRING "${gives}: AUTO, ON or OFF")
  set_property(CACHE TPSIM_${name} PROPERTY STRINGS AUTO ON OFF)
  set(wanted "${TPSIM_${name}}")
  if(NOT wanted MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "TPSIM_${name} is '${wanted}': it must be AUTO, ON or OFF")
  endif()

  set(has OFF)
  if(wanted STREQUAL "OFF")
    set(state "off (TPSIM_${name}=OFF)")
  else()
    cmake_language(CALL ${find})
    if(DEFINED ${name}_FOUND_AS)
      set(has ON)
      set(state "${${name}_FOUND_AS}")
    elseif(wanted STREQUAL "ON")
      message(FATAL_ERROR "TPSIM_${name}=ON, but ${${name}_MISSING}. Install ${packages}, "
                          "or configure with -DTPSIM_${name}=AUTO.")
    else()
      set(state "no: ${${name}_MISSING} (${packages})")
    endif()
  endif()
  set(TPSIM_HAS_${name} ${has} PARENT_SCOPE)
  set(TPSIM_STATE_${name} "${state}" PARENT_SCOPE)
endfunction()

# The parts whose sources are not in this version are looked for all the same, so that the table
# says what a machine has; asking for one by name is worth a warning.
function(tpsim_not_in_this_version name what)
  set(${name}_FOUND_AS "${${name}_FOUND_AS} found, but this version has no ${what}" PARENT_SCOPE)
  if(TPSIM_${name} STREQUAL "ON")
    message(WARNING "TPSIM_${name}=ON: this version of tpsim has no ${what}")
  endif()
endfunction()

function(tpsim_find_blas)
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    set(BLAS_MISSING "the CPU device is written for x86-64" PARENT_SCOPE)
    return()
  endif()
  find_path(TPSIM_CBLAS_INCLUDE_DIR cblas.h
            PATH_SUFFIXES openblas-pthread ${CMAKE_LIBRARY_ARCHITECTURE}/openblas-pthread openblas)
  find_library(TPSIM_OPENBLAS_LIBRARY openblas)
  mark_as_advanced(TPSIM_CBLAS_INCLUDE_DIR TPSIM_OPENBLAS_LIBRARY)
  if(NOT TPSIM_CBLAS_INCLUDE_DIR OR NOT TPSIM_OPENBLAS_LIBRARY)
    set(BLAS_MISSING "OpenBLAS is not here" PARENT_SCOPE)
    return()
  endif()
  add_library(tpsim_blas INTERFACE IMPORTED GLOBAL)
  target_include_directories(tpsim_blas INTERFACE "${TPSIM_CBLAS_INCLUDE_DIR}")
  target_link_libraries(tpsim_blas INTERFACE "${TPSIM_OPENBLAS_LIBRARY}")
  set(BLAS_FOUND_AS "OpenBLAS" PARENT_SCOPE)
endfunction()

# The C interface alone: Open MPI's C++ bindings are obsolete and drag in a library.
function(tpsim_find_mpi)
  find_package(MPI QUIET COMPONENTS C)
  if(NOT MPI_C_FOUND)
    set(MPI_MISSING "MPI is not here" PARENT_SCOPE)
    return()
  endif()
  add_library(tpsim_mpi INTERFACE IMPORTED GLOBAL)
  target_link_libraries(tpsim_mpi INTERFACE MPI::MPI_C)
  target_compile_definitions(tpsim_mpi INTERFACE OMPI_SKIP_MPICXX)
  set(MPI_FOUND_AS "MPI ${MPI_C_VERSION} of ${MPI_C_COMPILER}" PARENT_SCOPE)
endfunction()

# Dear ImGui's library of Debian holds its backends too; it has no CMake package of its own.
function(tpsim_find_gui)
  find_package(PkgConfig QUIET)
  if(PkgConfig_FOUND)
    pkg_check_modules(TPSIM_IMGUI QUIET IMPORTED_TARGET GLOBAL imgui>=1.86)
    pkg_check_modules(TPSIM_PNG QUIET IMPORTED_TARGET GLOBAL libpng)
  endif()
  find_package(glfw3 3.3 QUIET)
  find_path(TPSIM_INTER_DIR Inter-Regular.otf
            PATHS /usr/share/fonts PATH_SUFFIXES opentype/inter opentype/Inter inter
            DOC "folder of the typeface Inter")
  mark_as_advanced(TPSIM_INTER_DIR)
  if(NOT TPSIM_IMGUI_FOUND OR NOT TPSIM_PNG_FOUND OR NOT glfw3_FOUND OR NOT TPSIM_INTER_DIR)
    set(GUI_MISSING "Dear ImGui, GLFW, libpng or the typeface Inter is not here" PARENT_SCOPE)
    return()
  endif()
  add_library(tpsim_imgui INTERFACE IMPORTED GLOBAL)
  target_link_libraries(tpsim_imgui INTERFACE PkgConfig::TPSIM_IMGUI ${CMAKE_DL_LIBS})
  add_library(tpsim_png INTERFACE IMPORTED GLOBAL)
  target_link_libraries(tpsim_png INTERFACE PkgConfig::TPSIM_PNG)
  add_library(tpsim_glfw INTERFACE IMPORTED GLOBAL)
  target_link_libraries(tpsim_glfw INTERFACE glfw)
  set(GUI_FOUND_AS "Dear ImGui ${TPSIM_IMGUI_VERSION}" PARENT_SCOPE)
endfunction()

include(Cuda)
tpsim_feature(BLAS "fast matrix products on the CPU" "libopenblas-dev" tpsim_find_blas)
tpsim_feature(MPI "ranks as processes" "libopenmpi-dev and openmpi-bin" tpsim_find_mpi)
tpsim_feature(CUDA "the CUDA device" "CUDA Toolkit 12.0 or newer from NVIDIA" tpsim_find_cuda)
tpsim_feature(GUI "the window" "pkg-config, libimgui-dev, libglfw3-dev, libpng-dev and fonts-inter" tpsim_find_gui)
if(TPSIM_HAS_CUDA)
  tpsim_enable_cuda_language()
endif()
