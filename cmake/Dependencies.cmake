# Required dependencies. Each is a Debian package; the error for a missing one names the package. A
# macro, so that variables set by a package are visible in the folders.
macro(tpsim_require name package)
  find_package(${name} ${ARGN} QUIET)
  if(NOT ${name}_FOUND)
    message(FATAL_ERROR "tpsim needs ${name}: apt-get install ${package} "
                        "(tools/install_packages.sh installs everything)")
  endif()
endmacro()

if(TPSIM_STATIC)
  tpsim_add_headers(fmt::fmt fmt/format.h FMT_HEADER_ONLY=1)
  tpsim_add_headers(tomlplusplus::tomlplusplus toml++/toml.h TOML_HEADER_ONLY=1)
else()
  tpsim_require(fmt libfmt-dev 9)
  tpsim_require(tomlplusplus libtomlplusplus-dev 3.3)
endif()
tpsim_require(nlohmann_json nlohmann-json3-dev 3.11)
tpsim_require(CLI11 libcli11-dev 2)
tpsim_require(ZLIB zlib1g-dev)
tpsim_require(Eigen3 libeigen3-dev 3.3 NO_MODULE)
# libyaml has no CMake package.
find_path(TPSIM_YAML_INCLUDE_DIR yaml.h)
find_library(TPSIM_YAML_LIBRARY yaml)
mark_as_advanced(TPSIM_YAML_INCLUDE_DIR TPSIM_YAML_LIBRARY)
if(NOT TPSIM_YAML_INCLUDE_DIR OR NOT TPSIM_YAML_LIBRARY)
  message(FATAL_ERROR "tpsim needs libyaml: apt-get install libyaml-dev "
                      "(tools/install_packages.sh installs everything)")
endif()
if(TPSIM_TESTS)
  tpsim_require(Catch2 catch2)  # 2 or 3
endif()
