# SPDX-License-Identifier: MIT
# Task-aware MPI (docs/mpi.md): a library for each MPI that is here, libums_mpi_openmpi and
# libums_mpi_mpich. Users link with ums::mpi_openmpi or ums::mpi_mpich, before their MPI. Nothing
# else of the project needs them or MPI. `tools/setup mpi` installs both MPIs.

option(UMS_BUILD_MPI "Build the library for each MPI that pkg-config finds" ${PROJECT_IS_TOP_LEVEL})
set(ums_mpis "")
find_package(PkgConfig)
# Not under a sanitizer, which no MPI is built for.
if(NOT UMS_BUILD_MPI OR UMS_SANITIZE OR NOT PkgConfig_FOUND)
    return()
endif()

file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/mpi/*.cpp)
function(ums_mpi_library name package)
    pkg_check_modules(ums_mpi_of_${name} QUIET IMPORTED_TARGET ${package})
    if(NOT ums_mpi_of_${name}_FOUND)
        return()
    endif()
    set(library ums_mpi_${name})
    add_library(${library} SHARED ${sources})
    # The C++ names of MPI 2 are in no library of ours.
    target_compile_definitions(${library} PUBLIC OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
    target_include_directories(${library} INTERFACE
        $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/mpi/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    target_include_directories(${library} PRIVATE ${PROJECT_SOURCE_DIR}/mpi/include)
    # Which MPI a program is compiled with is the program's choice, by mpicc or find_package(MPI).
    target_link_libraries(${library} PUBLIC ums_shared PRIVATE PkgConfig::ums_mpi_of_${name})
    target_link_options(${library} PRIVATE LINKER:--version-script=${PROJECT_SOURCE_DIR}/mpi/mpi.map)
    set_target_properties(${library} PROPERTIES LINK_DEPENDS ${PROJECT_SOURCE_DIR}/mpi/mpi.map
        EXPORT_NAME mpi_${name}
        VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
        INSTALL_RPATH "$ORIGIN")  # It finds libums beside itself.
    add_library(ums::mpi_${name} ALIAS ${library})
    install(TARGETS ${library} EXPORT ums-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
    set(ums_mpis ${ums_mpis} ${name} PARENT_SCOPE)
endfunction()
ums_mpi_library(openmpi ompi-c)
ums_mpi_library(mpich mpich)
if(ums_mpis)
    install(FILES ${PROJECT_SOURCE_DIR}/mpi/include/ums/mpi.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ums)
else()
    message(STATUS "No MPI here: libums_mpi is left out (tools/setup mpi installs two)")
endif()

# Every examples/mpi/NAME.cpp becomes the program examples/mpi-NAME-MPI in the build folder.
function(ums_mpi_examples)
    file(GLOB examples CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/mpi/*.cpp)
    foreach(source IN LISTS examples)
        get_filename_component(name ${source} NAME_WE)
        foreach(mpi IN LISTS ums_mpis)
            set(target example-mpi-${name}-${mpi})
            add_executable(${target} ${source})
            target_link_libraries(${target} PRIVATE ums_mpi_${mpi} PkgConfig::ums_mpi_of_${mpi})
            ums_lines_only(${target})
            if(name STREQUAL store)  # With the store of the other example, and the shared libums.
                file(GLOB parts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/memcached/*.cpp)
                list(FILTER parts INCLUDE REGEX "/(session|store|replies|words|text_commands|meta_commands)\\.cpp$")
                target_sources(${target} PRIVATE ${parts})
                target_include_directories(${target} PRIVATE
                    ${PROJECT_SOURCE_DIR}/examples/memcached ${PROJECT_SOURCE_DIR}/examples/support)
            endif()
            set_target_properties(${target} PROPERTIES OUTPUT_NAME mpi-${name}-${mpi}
                RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
        endforeach()
    endforeach()
endfunction()
if(UMS_BUILD_EXAMPLES)
    ums_mpi_examples()
endif()
