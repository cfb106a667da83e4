# GPU architectures of a build, with fake nvccs of CUDA 12.4, 12.8 and 13 that list theirs.
include("${SOURCE_DIR}/cmake/CudaArchitectures.cmake")

function(expect nvcc listed wanted)
  file(WRITE "${WORK_DIR}/${nvcc}" "#!/bin/sh\nprintf '${listed}'\n")
  file(CHMOD "${WORK_DIR}/${nvcc}" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
  tpsim_architectures_of_nvcc("${WORK_DIR}/${nvcc}" chosen)
  if(NOT "${chosen}" STREQUAL "${wanted}")
    message(FATAL_ERROR "${nvcc}: ${chosen} in place of ${wanted}")
  endif()
endfunction()

expect(nvcc-12.4 "compute_50\\ncompute_80\\ncompute_89\\ncompute_90\\n" "80;90")
expect(nvcc-12.8 "compute_80\\ncompute_90\\ncompute_100\\ncompute_101\\ncompute_120\\n" "80;90;100")
expect(nvcc-13 "compute_75\\ncompute_80\\ncompute_90\\ncompute_100\\ncompute_103" "80;90;100")
expect(nvcc-silent "" "80;90")

# A build for Hopper, in any spelling, has kernels of sm_90a.
function(expect_hopper architectures wanted)
  tpsim_hopper_architecture("${architectures}" chosen)
  if(NOT "${chosen}" STREQUAL "${wanted}")
    message(FATAL_ERROR "${architectures}: ${chosen} in place of ${wanted}")
  endif()
endfunction()

expect_hopper("80;90;100" "90a-real")
expect_hopper("90a" "90a-real")
expect_hopper("80-real;90-virtual" "90a-real")
expect_hopper("80;100" "")
expect_hopper("890;190" "")
