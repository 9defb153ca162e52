# Installation: headers, both libraries, the command, a CMake package and a pkg-config file.
include(CMakePackageConfigHelpers)
set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/Tenon)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/tenon DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(TARGETS tenon EXPORT TenonStaticTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS tenon_shared EXPORT TenonSharedTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET tenon_cli)
  install(TARGETS tenon_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(EXPORT TenonStaticTargets NAMESPACE Tenon:: DESTINATION ${config_folder})
install(EXPORT TenonSharedTargets NAMESPACE Tenon:: DESTINATION ${config_folder})

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/TenonConfig.cmake.in ${CMAKE_BINARY_DIR}/TenonConfig.cmake
                              INSTALL_DESTINATION ${config_folder})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/TenonConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/TenonConfig.cmake ${CMAKE_BINARY_DIR}/TenonConfigVersion.cmake
        ${PROJECT_SOURCE_DIR}/cmake/TenonPlugin.cmake DESTINATION ${config_folder})

if(TENON_WITH_TIFF)
  string(APPEND TENON_PKG_OPTIONAL " libtiff-4")
endif()
if(TENON_WITH_WEBP)
  string(APPEND TENON_PKG_OPTIONAL " libwebp")
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/tenon.pc.in ${CMAKE_BINARY_DIR}/tenon.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/tenon.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
