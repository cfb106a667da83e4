# Embeds files as bytes of the program.
#
# tpsim_embed(VARIABLE NAMESPACE NAME FILE...): sets VARIABLE to a source that defines
# NAMESPACE::NAME, a std::span<const unsigned char> of the concatenated files. Run as a script, this
# file writes that source.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(TPSIM_EMBED_SCRIPT "${CMAKE_CURRENT_LIST_FILE}")
  function(tpsim_embed variable namespace name)
    set(generated "${CMAKE_CURRENT_BINARY_DIR}/${name}.cc")
    add_custom_command(OUTPUT "${generated}" DEPENDS ${ARGN} "${TPSIM_EMBED_SCRIPT}"
      COMMAND ${CMAKE_COMMAND} "-Dinputs=${ARGN}" "-Doutput=${generated}"
              "-Dnamespace=${namespace}" "-Dname=${name}" -P "${TPSIM_EMBED_SCRIPT}"
      COMMENT "Embedding ${name}" VERBATIM)
    set_source_files_properties("${generated}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    set(${variable} "${generated}" PARENT_SCOPE)
  endfunction()
  return()
endif()

set(bytes "")
foreach(input IN LISTS inputs)
  file(READ "${input}" more HEX)
  string(APPEND bytes "${more}")
endforeach()
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "([^\n]?0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n"
       bytes "${bytes}")
file(WRITE "${output}" "// Made from ${inputs} by cmake/EmbedFile.cmake.
#include <span>
namespace ${namespace} {
namespace {
constexpr unsigned char kBytes[] = {
${bytes}};
}  // namespace
extern const std::span<const unsigned char> ${name};
const std::span<const unsigned char> ${name}(kBytes);
}  // namespace ${namespace}
")
