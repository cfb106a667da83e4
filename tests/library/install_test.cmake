# Installs into a folder, moves the folder, runs the program with its data there, and builds a small
# project with the installed package. Run by ctest with BUILD_DIR, SOURCE_DIR, WORK_DIR.
cmake_minimum_required(VERSION 3.25)

function(run)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "OUT" "COMMAND")
  execute_process(COMMAND ${arg_COMMAND} OUTPUT_VARIABLE out ERROR_VARIABLE err RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${arg_COMMAND} ended with ${code}:\n${out}\n${err}")
  endif()
  if(DEFINED arg_OUT)
    set(${arg_OUT} "${out}" PARENT_SCOPE)
  endif()
endfunction()

unset(ENV{TPSIM_DATA})
file(REMOVE_RECURSE "${WORK_DIR}")
set(moved "${WORK_DIR}/moved here")
run(COMMAND "${CMAKE_COMMAND}" --install "${BUILD_DIR}" --prefix "${WORK_DIR}/installed")
file(RENAME "${WORK_DIR}/installed" "${moved}")

# The catalogue moves with the program.
run(COMMAND "${moved}/bin/tpsim" --version OUT version)
if(NOT version MATCHES "data: +part of the program")
  message(FATAL_ERROR "the moved program reads other data than its own:\n${version}")
endif()

# The Python package starts the moved program.
find_program(PYTHON python3)
set(folder "${moved}/lib/python3/dist-packages")
if(PYTHON AND EXISTS "${folder}/tpsim/_options.py")
  run(COMMAND "${CMAKE_COMMAND}" -E env --unset=TPSIM_PROGRAM "PYTHONPATH=${folder}" "${PYTHON}" -B -c
      "import tpsim; assert 'bloom-176b' in tpsim.models()")
endif()

set(consumer "${WORK_DIR}/consumer")
run(COMMAND "${CMAKE_COMMAND}" -S "${SOURCE_DIR}/tests/library/consumer" -B "${consumer}"
    -G "${GENERATOR}" "-DCMAKE_PREFIX_PATH=${moved}" -DCMAKE_BUILD_TYPE=Release
    "-DCMAKE_CXX_COMPILER=${CXX_COMPILER}")
run(COMMAND "${CMAKE_COMMAND}" --build "${consumer}")

# The library gives the program's answers.
run(COMMAND "${consumer}/consumer" OUT of_library)
run(COMMAND "${moved}/bin/tpsim" plan --model bloom-176b --cluster jean-zay-a100 --gpus 384
    --global-batch 2048 --top 1 --json OUT report)
set(of_program "")
foreach(key tp pp dp zero micro_batch)
  string(JSON value GET "${report}" plans 0 ${key})
  string(REPLACE "micro_batch" "mb" short "${key}")
  string(APPEND of_program "${short}${value} ")
endforeach()
string(FIND "${of_library}" "${of_program}" at)
if(NOT at EQUAL 0)
  message(FATAL_ERROR "library: ${of_library}program: ${of_program}")
endif()

# The library reads the folder of TPSIM_DATA.
set(ENV{TPSIM_DATA} "${WORK_DIR}/nowhere")
execute_process(COMMAND "${consumer}/consumer" RESULT_VARIABLE code ERROR_VARIABLE err)
if(NOT code EQUAL 2 OR NOT err MATCHES "nowhere")
  message(FATAL_ERROR "the library does not read TPSIM_DATA: ${code} ${err}")
endif()
