# Flags for all our targets.  They are set per directory, so every target has the same ones and all
# can share one precompiled header.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug or Release" FORCE)
endif()
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_FUZZ "-O1 -gline-tables-only")  # lines for reports; half the time of -g

# The baseline of every x86-64 server since 2009.  Kernels choose wider vectors at run time
# (Highway, oneDNN), so one binary serves all machines; never -march=native.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  add_compile_options(-march=x86-64-v2)
endif()

# One setting for libraries and programs (CMake would take -fPIE for the latter), because a
# precompiled header fits only code compiled alike.
add_compile_options(-fPIC)

# So that the linker of `make dist` drops what nobody calls and joins equal functions.
if(RIDGE_PORTABLE)
  add_compile_options(-ffunction-sections -fdata-sections)
endif()

add_compile_options(-Wall -Wextra -Wconversion -Wno-sign-conversion)
if(RIDGE_WERROR)
  add_compile_options(-Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 guesses wrongly here once std::string and std::vector are inlined (GCC bugs 105329,
  # 105562): two are useless, the others are shown and don't stop the build.
  add_compile_options(-Wno-restrict -Wno-stringop-overflow -Wno-error=array-bounds
                      -Wno-error=maybe-uninitialized -Wno-error=stringop-overread
                      -Wno-error=free-nonheap-object)
else()
  # A macro's captures that not every use reads; loops whose lambda steps; names of g++'s warnings.
  add_compile_options(-Wno-unused-lambda-capture -Wno-for-loop-analysis
                      -Wno-unknown-warning-option)
endif()

if(RIDGE_SANITIZE)
  # Reports need lines only: with full debug information the two sanitizers' builds took 12 GB of
  # disk, more than a small machine has left, and a full disk fails a compiler without a word.
  add_compile_options(-fsanitize=${RIDGE_SANITIZE} -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${RIDGE_SANITIZE})
  foreach(sanitizer address thread)
    if(RIDGE_SANITIZE MATCHES "${sanitizer}")
      string(TOUPPER "RIDGE_${sanitizer}_SANITIZER" defined)
      add_compile_definitions(${defined} RIDGE_SANITIZED_MEMORY)
    endif()
  endforeach()
  if(RIDGE_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
    # The first four take 12 of the 32 s of a source file, vptr an eighth to a fifth of the rest:
    # AddressSanitizer ends at a null pointer and at an access outside of an object anyway.  .ci/full
    # has all.
    if(NOT RIDGE_SANITIZE_POINTERS)
      add_compile_options(-fno-sanitize=null,alignment,pointer-overflow,object-size,vptr)
    endif()
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-maybe-uninitialized)  # false alarms in instrumented code
  else()
    add_compile_options(-fno-sanitize-recover=all)
  endif()
endif()

# ccache: the sloppiness settings are those its manual asks for with precompiled headers.  Paths
# below the source folder are taken as relative ones, so that another build folder or another clone
# finds what this one compiled.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_compile_options("SHELL:-Xclang -fno-pch-timestamp")  # the same header, the same bytes
endif()
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      "${CMAKE_COMMAND}" -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1
      "${CCACHE_PROGRAM}")
endif()
