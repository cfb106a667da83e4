# Packs the catalogue into the program. Every file that a command reads is compressed separately, so
# that a command decompresses only the files it reads.
#
# tpsim_pack_data(VARIABLE FOLDER SUBFOLDER...): sets VARIABLE to a source that defines
# packed_files() and packed_bytes() of core/base/packed_files.h. Run as a script, this file writes
# that source. TPSIM_PAGE is a page for browsers (tpsim-page.html of another build) to pack too.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(TPSIM_PACK_SCRIPT "${CMAKE_CURRENT_LIST_FILE}")
  function(tpsim_pack_data variable folder)
    set(generated "${CMAKE_CURRENT_BINARY_DIR}/packed_data.cc")
    list(TRANSFORM ARGN PREPEND "${folder}/" OUTPUT_VARIABLE patterns)
    list(TRANSFORM patterns APPEND "/*")
    file(GLOB files CONFIGURE_DEPENDS ${patterns})
    list(FILTER files EXCLUDE REGEX "\\.md$")
    set(TPSIM_PAGE "" CACHE FILEPATH "a tpsim-page.html to put into the program, for tpsim report")
    # The script lists the same files, since a command line would be too long.
    add_custom_command(OUTPUT "${generated}" DEPENDS ${files} ${TPSIM_PAGE} "${TPSIM_PACK_SCRIPT}"
      COMMAND ${CMAKE_COMMAND} "-Dfolder=${folder}" "-Dsubfolders=${ARGN}" "-Dpage=${TPSIM_PAGE}"
              "-Doutput=${generated}" "-Dpacked=${CMAKE_CURRENT_BINARY_DIR}/packed" -P "${TPSIM_PACK_SCRIPT}"
      COMMENT "Packing ${folder}" VERBATIM)
    set_source_files_properties("${generated}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON
      INCLUDE_DIRECTORIES "${PROJECT_SOURCE_DIR}")
    set(${variable} "${generated}" PARENT_SCOPE)
  endfunction()
  return()
endif()

# Omits gzip's header of 10 bytes, which has the time of packing, and its trailer of 8, which has
# the size.
set(header_bytes 10)
set(frame_bytes 18)
set(names "")
foreach(subfolder IN LISTS subfolders)
  file(GLOB found RELATIVE "${folder}" "${folder}/${subfolder}/*")
  list(FILTER found EXCLUDE REGEX "\\.md$")
  list(APPEND names ${found})
endforeach()
list(SORT names)
set(rows "")
set(bytes "")
set(offset 0)
file(REMOVE_RECURSE "${packed}")
# Appends a file to `rows` and `bytes`.
macro(pack name source)
  set(target "${packed}/${name}.gz")
  get_filename_component(place "${target}" DIRECTORY)
  file(MAKE_DIRECTORY "${place}")
  file(ARCHIVE_CREATE OUTPUT "${target}" PATHS "${source}" FORMAT raw COMPRESSION GZip
       COMPRESSION_LEVEL 9)
  file(READ "${target}" start LIMIT 4 HEX)
  if(NOT start STREQUAL "1f8b0800")
    message(FATAL_ERROR "${target} is not framed as expected")
  endif()
  file(SIZE "${source}" size)
  file(SIZE "${target}" packed_size)
  math(EXPR packed_size "${packed_size} - ${frame_bytes}")
  string(APPEND rows "    {\"${name}\", ${offset}, ${packed_size}, ${size}},\n")
  string(APPEND bytes "    \".incbin \\\"${target}\\\", ${header_bytes}, ${packed_size}\\n\"\n")
  math(EXPR offset "${offset} + ${packed_size}")
endmacro()

foreach(name IN LISTS names)
  pack("${name}" "${folder}/${name}")
endforeach()
if(page)
  pack(tpsim-page.html "${page}")  # last in alphabetical order
endif()
file(WRITE "${output}.new" "// Written by cmake/PackData.cmake.
#include \"core/base/packed_files.h\"

asm(\".section .rodata\\n\"
    \".globl tpsim_packed_bytes\\n\"
    \".hidden tpsim_packed_bytes\\n\"
    \"tpsim_packed_bytes:\\n\"
${bytes}    \".text\\n\");

extern \"C\" __attribute__((visibility(\"hidden\"))) const unsigned char tpsim_packed_bytes[];

namespace tpsim {
namespace {
constexpr PackedFile kFiles[] = {
${rows}};
}  // namespace
std::span<const PackedFile> packed_files() { return kFiles; }
std::span<const unsigned char> packed_bytes() { return {tpsim_packed_bytes, ${offset}}; }
}  // namespace tpsim
")
file(RENAME "${output}.new" "${output}")
