# cmake --install: the program, the library as a CMake package, the Python package.
#
# The catalogue is part of program and library, so that the installed folder can be moved.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/tpsim")
set(library_parts core kernels ranks reference_model costs lowering sim plans campaigns formats frameworks evidence
  app answers)

install(TARGETS tpsim RUNTIME)
if(TARGET tpsim-mpi)
  install(TARGETS tpsim-mpi RUNTIME)
endif()
if(TARGET tpsim_gui_program)
  install(TARGETS tpsim_gui_program RUNTIME)
endif()
if(TPSIM_HAS_WEB)
  install(FILES "${PROJECT_BINARY_DIR}/tpsim-page.html" DESTINATION "${CMAKE_INSTALL_DATADIR}/tpsim"
          OPTIONAL)
endif()
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/tpsim")

foreach(part IN LISTS library_parts)
  set_target_properties(tpsim_${part} PROPERTIES EXPORT_NAME ${part})
  install(TARGETS tpsim_${part} EXPORT tpsimTargets)
endforeach()
set_target_properties(tpsim_library PROPERTIES EXPORT_NAME tpsim)
install(TARGETS tpsim_library EXPORT tpsimTargets)
install(EXPORT tpsimTargets NAMESPACE tpsim:: DESTINATION "${package_folder}")

# Sources include by the path from the root of the tree; installed headers are below tpsim/.
install(CODE "
  set(source_dir \"${PROJECT_SOURCE_DIR}\")
  set(staging_dir \"${PROJECT_BINARY_DIR}/installed_headers\")
  set(include_dir \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}\")
  include(\"${PROJECT_SOURCE_DIR}/cmake/InstallHeaders.cmake\")")

configure_package_config_file(cmake/tpsimConfig.cmake.in "${PROJECT_BINARY_DIR}/tpsimConfig.cmake"
  INSTALL_DESTINATION "${package_folder}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/tpsimConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/tpsimConfig.cmake"
              "${PROJECT_BINARY_DIR}/tpsimConfigVersion.cmake"
  DESTINATION "${package_folder}")
