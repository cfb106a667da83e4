# Flags shared by every target of the project: link to tpsim_options.
add_library(tpsim_options INTERFACE)
target_include_directories(tpsim_options INTERFACE "${PROJECT_SOURCE_DIR}")
target_compile_options(tpsim_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion>
  # GCC 12 warns about std::string's own operator+ (GCC bug 105651).
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>
  # Objects, and messages of failed checks, do not depend on the place of the checkout.
  $<$<COMPILE_LANGUAGE:CXX>:-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=>)
if(TPSIM_WERROR)
  target_compile_options(tpsim_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()

# ccache, if installed, serves objects that another checkout or branch has compiled: paths below the
# checkout are hashed relative to its root.
find_program(TPSIM_CCACHE ccache)
mark_as_advanced(TPSIM_CCACHE)
if(TPSIM_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  foreach(language C CXX CUDA)
    set(CMAKE_${language}_COMPILER_LAUNCHER
      "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1 "${TPSIM_CCACHE}")
  endforeach()
endif()

# Predictions must be equal on every machine (tests/sample). On processors with fused multiply-add,
# such as aarch64, GCC would otherwise contract a product and a sum.
if(NOT CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  target_compile_options(tpsim_options INTERFACE -ffp-contract=off)
endif()

# For position-independent executables and shared libraries.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

# Programs have absolute paths of library folders, equal before and after installation. CMake would
# otherwise pad the path for a later change, which adds an empty entry: the current folder.
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)

# Position-independent executables.
include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)
if(TPSIM_STATIC)
  # glibc warns about functions that do not work statically: dlopen(), getaddrinfo() and others.
  set(CMAKE_CXX_LINK_OPTIONS_PIE -static-pie -Wl,--fatal-warnings)
endif()

set(TPSIM_SANITIZE "" CACHE STRING "sanitizers to build with, as for -fsanitize=: address,undefined or thread")
if(TPSIM_SANITIZE)
  # Sanitizers of one target's sources; tests use fewer (tests/CMakeLists.txt).
  define_property(TARGET PROPERTY TPSIM_SANITIZERS INITIALIZE_FROM_VARIABLE TPSIM_SANITIZERS)
  set(TPSIM_SANITIZERS "${TPSIM_SANITIZE}")
  target_compile_options(tpsim_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=$<TARGET_PROPERTY:TPSIM_SANITIZERS>
    -fno-sanitize-recover=all -fno-omit-frame-pointer
    # AddressSanitizer finds most faults of these checks, which take a quarter of the compile time.
    -fno-sanitize=null,object-size,vptr>
    # GCC has false warnings for instrumented code.
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>)
  target_link_options(tpsim_options INTERFACE -fsanitize=${TPSIM_SANITIZE})
endif()

# Hardening against memory errors: stack canaries, checked copies, and read-only address tables
# before main() starts. Sanitizers check all of this themselves. tests/tools/hardening_test.sh
# checks the result.
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

# For libraries whose speed does not matter (commands, launch files, logs): -O1 compiles in 60 % of
# the time of -O3.
set(TPSIM_COLD_OPTIONS "$<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>")

# Loops of the CPU device and of its ranks' reductions; comparisons with infinities stay exact. On
# x86-64 they use AVX2, which is checked at run time.
set(TPSIM_CPU_KERNEL_OPTIONS -O3 -fopenmp-simd -ffp-contract=fast -fno-math-errno
    -fno-trapping-math -fno-signed-zeros)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND TPSIM_CPU_KERNEL_OPTIONS -march=x86-64-v3)
endif()
