# Default architectures: data-center GPUs since Ampere that this nvcc supports. Each includes its
# PTX, which drivers compile for newer GPUs.

# Chooses from `listed`, the lines of `nvcc --list-gpu-arch` (compute_80 and so on).
function(tpsim_choose_architectures listed result)
  set(chosen "")
  foreach(architecture IN ITEMS 80 90 100)  # A100; H100, H200; B200
    if("${listed}" MATCHES "compute_${architecture}(\n|$)")
      list(APPEND chosen ${architecture})
    endif()
  endforeach()
  set(${result} "${chosen}" PARENT_SCOPE)
endfunction()

function(tpsim_architectures_of_nvcc nvcc result)
  execute_process(COMMAND "${nvcc}" --list-gpu-arch OUTPUT_VARIABLE listed ERROR_QUIET)
  tpsim_choose_architectures("${listed}" chosen)
  if(NOT chosen)
    set(chosen 80 90)  # an nvcc that does not list them
  endif()
  set(${result} "${chosen}" PARENT_SCOPE)
endfunction()

# Returns the architecture for kernels with Hopper-only instructions (sm_90a, in every nvcc since
# 12.0). Empty if the build has no GPU of that generation.
function(tpsim_hopper_architecture architectures result)
  set(${result} "" PARENT_SCOPE)
  foreach(architecture IN LISTS architectures)
    if(architecture MATCHES "^90a?(-real|-virtual)?$")
      set(${result} "90a-real" PARENT_SCOPE)
    endif()
  endforeach()
endfunction()
