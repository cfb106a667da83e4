# Finds nvcc and adds settings that CMake 3.25 lacks for it.
#
# Compiling needs no GPU: the architectures are explicit, never "native". The runtime is linked
# statically; cuBLASLt and NCCL are loaded at run time. A program built here therefore also starts
# on machines without them, and reports which one is missing.

include("${CMAKE_CURRENT_LIST_DIR}/CudaArchitectures.cmake")

set(TPSIM_CUDA_OLDEST 12.0)  # first nvcc with C++20
option(TPSIM_EMULATE_GPU "run the CUDA device on the CPU, for tests (needs the toolkit's headers)" OFF)

function(tpsim_find_cuda)
  find_package(CUDAToolkit QUIET)
  if(NOT CUDAToolkit_FOUND)
    set(CUDA_MISSING "the CUDA Toolkit is not here" PARENT_SCOPE)
    return()
  endif()
  if(CUDAToolkit_VERSION VERSION_LESS TPSIM_CUDA_OLDEST)
    set(CUDA_MISSING "CUDA ${CUDAToolkit_VERSION} is too old for C++20" PARENT_SCOPE)
    return()
  endif()
  find_path(TPSIM_NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ENV NCCL_HOME
            PATH_SUFFIXES include)
  find_path(TPSIM_CUBLASLT_INCLUDE_DIR cublasLt.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  # Without CUPTI, profiles only lack the gaps between kernels.
  find_path(TPSIM_CUPTI_INCLUDE_DIR cupti.h
            HINTS ${CUDAToolkit_INCLUDE_DIRS} ${CUDAToolkit_LIBRARY_ROOT}/extras/CUPTI/include)
  mark_as_advanced(TPSIM_NCCL_INCLUDE_DIR TPSIM_CUBLASLT_INCLUDE_DIR TPSIM_CUPTI_INCLUDE_DIR)
  if(NOT TPSIM_NCCL_INCLUDE_DIR OR NOT TPSIM_CUBLASLT_INCLUDE_DIR)
    set(CUDA_MISSING "the headers of cuBLAS or NCCL are not here" PARENT_SCOPE)
    return()
  endif()
  if(TPSIM_EMULATE_GPU)
    set(CUDA_FOUND_AS "CUDA ${CUDAToolkit_VERSION}'s headers; a GPU emulated on the CPU" PARENT_SCOPE)
    return()
  endif()
  if(NOT DEFINED ENV{CUDACXX})
    set(ENV{CUDACXX} "${CUDAToolkit_NVCC_EXECUTABLE}")  # often not on the PATH
  endif()
  include(CheckLanguage)
  set(CMAKE_MESSAGE_LOG_LEVEL WARNING)  # Summary.cmake reports it
  check_language(CUDA)
  if(NOT CMAKE_CUDA_COMPILER)
    set(CUDA_MISSING "nvcc does not compile with ${CMAKE_CXX_COMPILER}" PARENT_SCOPE)
    return()
  endif()
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    tpsim_architectures_of_nvcc("${CUDAToolkit_NVCC_EXECUTABLE}" CMAKE_CUDA_ARCHITECTURES)
  endif()
  list(TRANSFORM CMAKE_CUDA_ARCHITECTURES PREPEND "sm_" OUTPUT_VARIABLE targets)
  list(JOIN targets " " targets)
  set(CUDA_FOUND_AS "CUDA ${CUDAToolkit_VERSION} for ${targets}" PARENT_SCOPE)
endfunction()

function(tpsim_add_toolkit_headers)
  add_library(tpsim_cuda_toolkit INTERFACE)
  target_include_directories(tpsim_cuda_toolkit SYSTEM INTERFACE
    ${CUDAToolkit_INCLUDE_DIRS} "${TPSIM_NCCL_INCLUDE_DIR}" "${TPSIM_CUBLASLT_INCLUDE_DIR}")
  target_link_libraries(tpsim_cuda_toolkit INTERFACE ${CMAKE_DL_LIBS})
endfunction()

# A macro, since enable_language() works at file scope only.
macro(tpsim_enable_cuda_language)
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    tpsim_architectures_of_nvcc("${CUDAToolkit_NVCC_EXECUTABLE}" CMAKE_CUDA_ARCHITECTURES)
  endif()
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
  enable_language(CUDA)
  # Debian 12's CMake lists no C++20 level for nvcc 12 and newer and refuses CUDA_STANDARD 20.
  if(NOT "cuda_std_20" IN_LIST CMAKE_CUDA_COMPILE_FEATURES)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_COMPILE_FEATURES cuda_std_20)
    list(APPEND CMAKE_CUDA_COMPILE_FEATURES cuda_std_20)
  endif()
  set(CMAKE_CUDA_STANDARD 20)

  # Headers of the device's sources, and warnings of both of nvcc's compilers.
  tpsim_add_toolkit_headers()
  target_link_libraries(tpsim_cuda_toolkit INTERFACE CUDA::cudart_static)
  target_compile_options(tpsim_cuda_toolkit INTERFACE
    $<$<COMPILE_LANGUAGE:CUDA>:-lineinfo --expt-relaxed-constexpr --extended-lambda
    -Xcompiler=-Wall,-Wextra,-Wshadow>)
  if(TPSIM_WERROR)
    target_compile_options(tpsim_cuda_toolkit INTERFACE
      $<$<COMPILE_LANGUAGE:CUDA>:-Werror all-warnings -Xcompiler=-Werror>)
  endif()
endmacro()
