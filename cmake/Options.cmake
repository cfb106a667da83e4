# Flags shared by every target of the project: link to tpsim_options.
add_library(tpsim_options INTERFACE)
target_include_directories(tpsim_options INTERFACE "${PROJECT_SOURCE_DIR}")
target_compile_options(tpsim_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion>
  # GCC 12 reports std::string's own operator+ (its bug 105651).
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>)
if(TPSIM_WERROR)
  target_compile_options(tpsim_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()

# Predictions are the same on every machine (tests/sample): where the processor has it, as on aarch64, GCC
# would round a product and a sum together.
if(NOT CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  target_compile_options(tpsim_options INTERFACE -ffp-contract=off)
endif()

# For programs at addresses that differ from run to run, and for shared libraries of others.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

# Programs know folders of libraries only as absolute paths, the same before and after installing. A
# path that CMake pads for a later change of it has an empty folder in it: the current one.
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)

# Programs whose address nobody knows beforehand.
include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)
if(TPSIM_STATIC)
  # glibc warns of what cannot work statically: dlopen(), getaddrinfo() and their like.
  set(CMAKE_CXX_LINK_OPTIONS_PIE -static-pie -Wl,--fatal-warnings)
endif()

set(TPSIM_SANITIZE "" CACHE STRING "sanitizers to build with, as for -fsanitize=: address,undefined or thread")
if(TPSIM_SANITIZE)
  # Of one target's sources; tests have fewer (tests/CMakeLists.txt).
  define_property(TARGET PROPERTY TPSIM_SANITIZERS INITIALIZE_FROM_VARIABLE TPSIM_SANITIZERS)
  set(TPSIM_SANITIZERS "${TPSIM_SANITIZE}")
  target_compile_options(tpsim_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=$<TARGET_PROPERTY:TPSIM_SANITIZERS>
    -fno-sanitize-recover=all -fno-omit-frame-pointer
    # AddressSanitizer finds most of what these would; they take a quarter of the time to compile.
    -fno-sanitize=null,object-size,vptr>
    # GCC warns falsely of instrumented code.
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>)
  target_link_options(tpsim_options INTERFACE -fsanitize=${TPSIM_SANITIZE})
endif()

# What makes a mistake with memory end the program instead of serving somebody: canaries on the
# stack, checked copies, tables of addresses that are read-only before main() starts. Sanitizers
# check all that themselves. tests/tools/hardening_test.sh reads it back.
if(NOT TPSIM_SANITIZE AND CMAKE_BUILD_TYPE STREQUAL "Release")
  target_compile_options(tpsim_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fstack-protector-strong>)
  target_compile_definitions(tpsim_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:_FORTIFY_SOURCE=2>)
  target_link_options(tpsim_options INTERFACE
    LINKER:-z,relro LINKER:-z,now LINKER:-z,noexecstack)
endif()

if(TPSIM_FUZZ)
  target_compile_options(tpsim_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=fuzzer-no-link>)
endif()

# For libraries whose speed nobody notices (commands, launch files, logs): -O1 compiles in 60 % of the
# time of -O3.
set(TPSIM_COLD_OPTIONS "$<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>")

# Loops of the CPU device and of its ranks' sums; comparisons with infinities stay exact. On x86-64
# they are AVX2 code, checked for at run time.
set(TPSIM_CPU_KERNEL_OPTIONS -O3 -fopenmp-simd -ffp-contract=fast -fno-math-errno
    -fno-trapping-math -fno-signed-zeros)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND TPSIM_CPU_KERNEL_OPTIONS -march=x86-64-v3)
endif()
