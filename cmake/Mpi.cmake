# The plug-ins between the program and an MPI: one C file, compiled once for each MPI whose compiler
# is found.  The program links none of them and opens the one of its launcher.

# The implementation of a compiler's mpi.h: openmpi, mpich, or nothing.
function(ridge_mpi_of compiler result)
  execute_process(COMMAND "${compiler}" -E -dM -include mpi.h -x c /dev/null
                  OUTPUT_VARIABLE macros ERROR_QUIET)
  set(${result} "" PARENT_SCOPE)
  if(macros MATCHES "#define OPEN_MPI ")
    set(${result} openmpi PARENT_SCOPE)
  elseif(macros MATCHES "#define MPICH_VERSION ")
    set(${result} mpich PARENT_SCOPE)
  endif()
endfunction()

# The compiler of an implementation; Debian names both, others have one `mpicc`.
function(ridge_find_mpicc implementation variable)
  foreach(name mpicc.${implementation} mpicc)
    find_program(${variable} ${name})
    if(${variable})
      ridge_mpi_of("${${variable}}" found)
      if(found STREQUAL implementation)
        return()
      endif()
      unset(${variable} CACHE)
    endif()
  endforeach()
endfunction()

# ridge_add_mpi_plugin(IMPLEMENTATION NAME PACKAGE)
function(ridge_add_mpi_plugin implementation name package)
  string(TOUPPER "RIDGE_MPICC_${implementation}" variable)
  ridge_find_mpicc(${implementation} ${variable})
  mark_as_advanced(${variable})
  if(NOT ${variable})
    set_property(GLOBAL APPEND PROPERTY RIDGE_DEPENDENCY_ROWS "  absent   ${name}: ${package}")
    return()
  endif()
  set_property(GLOBAL APPEND PROPERTY RIDGE_DEPENDENCY_ROWS "  found    ${name}")
  set(source "${PROJECT_SOURCE_DIR}/plugins/mpi/mpi_plugin.c")
  set(plugin "${PROJECT_BINARY_DIR}/lib/ridge/libridge_mpi_${implementation}.so")
  add_custom_command(
    OUTPUT "${plugin}"
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${PROJECT_BINARY_DIR}/lib/ridge"
    COMMAND "${${variable}}" -std=c11 -O2 -fPIC -shared -fvisibility=hidden -Wall -Wextra
            "-I${PROJECT_SOURCE_DIR}" "${source}" -o "${plugin}"
    DEPENDS "${source}" "${PROJECT_SOURCE_DIR}/ridge/dist/mpi_abi.h"
    COMMENT "Plug-in for ${name}"
    VERBATIM)
  add_custom_target(ridge_mpi_${implementation} ALL DEPENDS "${plugin}")
  add_dependencies(ridge ridge_mpi_${implementation})
  install(FILES "${plugin}" DESTINATION lib/ridge)
endfunction()

ridge_add_mpi_plugin(openmpi Open-MPI libopenmpi-dev)
ridge_add_mpi_plugin(mpich MPICH libmpich-dev)
