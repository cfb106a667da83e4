# The page into which `tpsim report` writes plans: the program compiled by Debian's Emscripten,
# packed into one HTML file next to the executables.
function(tpsim_find_web)
  if(NOT TPSIM_HAS_GUI)
    set(WEB_MISSING "the window is not built" PARENT_SCOPE)
    return()
  endif()
  find_program(TPSIM_EMCC emcc)
  find_program(TPSIM_PAGE_PYTHON python3)
  find_file(TPSIM_EMSCRIPTEN_TOOLCHAIN Emscripten.cmake
            PATHS /usr/share/emscripten/cmake/Modules/Platform
                  "$ENV{EMSDK}/upstream/emscripten/cmake/Modules/Platform")
  # The source package that tools/fetch_imgui.sh unpacks.
  find_path(TPSIM_IMGUI_SOURCE imgui.cpp PATHS /usr/local/src/imgui /usr/src/imgui NO_DEFAULT_PATH
            DOC "Dear ImGui's sources, for the page")
  find_path(TPSIM_HOST_INCLUDE fmt/format.h)
  mark_as_advanced(TPSIM_EMCC TPSIM_PAGE_PYTHON TPSIM_EMSCRIPTEN_TOOLCHAIN TPSIM_IMGUI_SOURCE
                   TPSIM_HOST_INCLUDE)
  if(NOT TPSIM_EMCC OR NOT TPSIM_PAGE_PYTHON OR NOT TPSIM_EMSCRIPTEN_TOOLCHAIN)
    set(WEB_MISSING "Emscripten is not here" PARENT_SCOPE)
  elseif(NOT TPSIM_IMGUI_SOURCE OR NOT TPSIM_HOST_INCLUDE)
    set(WEB_MISSING "Dear ImGui's sources are not here" PARENT_SCOPE)
  else()
    set(WEB_FOUND_AS "${TPSIM_EMCC}, ${TPSIM_IMGUI_SOURCE}" PARENT_SCOPE)
  endif()
endfunction()

# Debian's Emscripten scripts search for their modules next to Debian's node.
function(tpsim_add_page)
  include(ExternalProject)
  set(environment "${CMAKE_COMMAND}" -E env NODE_PATH=/usr/share/nodejs)
  set(folder "${PROJECT_BINARY_DIR}/web")
  ExternalProject_Add(tpsim_page
    SOURCE_DIR "${PROJECT_SOURCE_DIR}/page"
    BINARY_DIR "${folder}"
    PREFIX "${folder}/external"
    CONFIGURE_COMMAND ${environment} "${CMAKE_COMMAND}" -S <SOURCE_DIR> -B <BINARY_DIR> -G Ninja
      -DCMAKE_BUILD_TYPE=Release "-DCMAKE_TOOLCHAIN_FILE=${TPSIM_EMSCRIPTEN_TOOLCHAIN}"
      "-DTPSIM_IMGUI_SOURCE=${TPSIM_IMGUI_SOURCE}"
      "-DTPSIM_HOST_INCLUDE=${TPSIM_HOST_INCLUDE}" "-DTPSIM_INTER_DIR=${TPSIM_INTER_DIR}"
      "-DTPSIM_VERSION=${PROJECT_VERSION}"
    BUILD_COMMAND ${environment} "${CMAKE_COMMAND}" --build <BINARY_DIR> --target tpsim_page
    INSTALL_COMMAND "${TPSIM_PAGE_PYTHON}" "<SOURCE_DIR>/pack_page.py" "<SOURCE_DIR>/page.html"
      "<BINARY_DIR>/tpsim_page.js" "<BINARY_DIR>/tpsim_page.wasm" "${PROJECT_SOURCE_DIR}/data"
      "${PROJECT_BINARY_DIR}/tpsim-page.html"
    BUILD_ALWAYS ON
    USES_TERMINAL_BUILD ON)
endfunction()
