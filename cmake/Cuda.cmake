# Finds nvcc and teaches CMake 3.25 what it does not know about it.
#
# Everything compiles without a GPU at hand: the architectures are given, never "native". The
# runtime is the shared one, as cuBLAS and NCCL use it; two copies of it in one process do not see
# each other's streams.

set(TPSIM_CUDA_OLDEST 12.0)  # the first nvcc that knows C++20

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
  if(NOT DEFINED ENV{CUDACXX})
    set(ENV{CUDACXX} "${CUDAToolkit_NVCC_EXECUTABLE}")  # often not on the PATH
  endif()
  include(CheckLanguage)
  set(CMAKE_MESSAGE_LOG_LEVEL WARNING)  # Summary.cmake says it
  check_language(CUDA)
  if(NOT CMAKE_CUDA_COMPILER)
    set(CUDA_MISSING "nvcc does not compile with ${CMAKE_CXX_COMPILER}" PARENT_SCOPE)
    return()
  endif()
  set(CUDA_FOUND_AS "CUDA ${CUDAToolkit_VERSION}")
  tpsim_not_in_this_version(CUDA "CUDA device")
  set(CUDA_FOUND_AS "${CUDA_FOUND_AS}" PARENT_SCOPE)
endfunction()

# A macro: enable_language() works at file scope only.
macro(tpsim_enable_cuda_language)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80 90)  # A100; H100 and H200
  endif()
  set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
  enable_language(CUDA)
  # Debian 12's CMake lists no C++20 level for nvcc 12 and newer and refuses CUDA_STANDARD 20.
  if(NOT "cuda_std_20" IN_LIST CMAKE_CUDA_COMPILE_FEATURES)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_COMPILE_FEATURES cuda_std_20)
    list(APPEND CMAKE_CUDA_COMPILE_FEATURES cuda_std_20)
  endif()
  set(CMAKE_CUDA_STANDARD 20)
endmacro()
