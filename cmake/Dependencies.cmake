# Finds what ridge is built from.  All of it is looked for before anything is refused, so that the
# table at the end names everything that is missing at once.  The program alone needs none of what
# is OPTIONAL.

# ridge_find(NAME TARGET <target> PACKAGE <text> [VERSION <text>] [OPTIONAL])
# Notes for the table whether the target exists, and which Debian package brings it.
function(ridge_find name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "OPTIONAL" "TARGET;PACKAGE;VERSION" "")
  if(TARGET ${arg_TARGET})
    set(row "  found    ${name} ${arg_VERSION}")
  else()
    set(row "  MISSING  ${name}: ${arg_PACKAGE}")
    if(arg_OPTIONAL)
      string(REPLACE "MISSING" "absent " row "${row}")
    else()
      set_property(GLOBAL APPEND PROPERTY RIDGE_MISSING ${name})
    endif()
  endif()
  set_property(GLOBAL APPEND PROPERTY RIDGE_DEPENDENCY_ROWS "${row}")
endfunction()

function(ridge_print_dependencies)
  get_property(rows GLOBAL PROPERTY RIDGE_DEPENDENCY_ROWS)
  list(JOIN rows "\n" rows)
  set(sanitizers "none")
  if(RIDGE_SANITIZE)
    set(sanitizers "${RIDGE_SANITIZE}")
  endif()
  message(STATUS "ridge ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}"
                 ", sanitizers: ${sanitizers}\n${rows}")
  get_property(missing GLOBAL PROPERTY RIDGE_MISSING)
  if(missing)
    list(JOIN missing ", " missing)
    message(FATAL_ERROR "missing: ${missing}. scripts/setup.sh installs everything; "
                        "the table above names the Debian package of each.")
  endif()
endfunction()

find_program(PYTHON3_PROGRAM python3)
mark_as_advanced(PYTHON3_PROGRAM)

# scripts/setup.sh puts oneDNN here; another one (-Ddnnl_DIR, CMAKE_PREFIX_PATH) comes first.
set(RIDGE_ONEDNN_PREFIX "${PROJECT_SOURCE_DIR}/build/deps/onednn")
find_package(dnnl 3.2 CONFIG QUIET)
if(NOT dnnl_FOUND)
  find_package(dnnl CONFIG QUIET PATHS "${RIDGE_ONEDNN_PREFIX}" NO_DEFAULT_PATH)
endif()

find_package(Threads QUIET)
find_package(OpenMP QUIET COMPONENTS CXX)
find_package(fmt 9 CONFIG QUIET)
find_package(nlohmann_json CONFIG QUIET)
find_package(CLI11 CONFIG QUIET)
find_package(hwy CONFIG QUIET)
set(ZLIB_USE_STATIC_LIBS ${RIDGE_PORTABLE})
find_package(ZLIB QUIET)
find_package(GTest QUIET)
find_package(benchmark CONFIG QUIET)

# The lite runtime as an archive: its symbols stay inside the program (see ridge_add_program).
find_program(PROTOC_PROGRAM protoc)
find_path(PROTOBUF_INCLUDE_DIR google/protobuf/message_lite.h)
find_library(PROTOBUF_LITE_ARCHIVE libprotobuf-lite.a)
mark_as_advanced(PROTOC_PROGRAM PROTOBUF_INCLUDE_DIR PROTOBUF_LITE_ARCHIVE)
if(PROTOC_PROGRAM AND PROTOBUF_INCLUDE_DIR AND PROTOBUF_LITE_ARCHIVE)
  add_library(ridge::protobuf_lite STATIC IMPORTED)
  set_target_properties(ridge::protobuf_lite PROPERTIES
    IMPORTED_LOCATION "${PROTOBUF_LITE_ARCHIVE}"
    INTERFACE_INCLUDE_DIRECTORIES "${PROTOBUF_INCLUDE_DIR}"
    INTERFACE_LINK_LIBRARIES Threads::Threads)
endif()

# Decoders of pictures and sounds, as archives too: no other machine needs them.
# ridge_find_archive(TARGET HEADER ARCHIVE [dependency...])
function(ridge_find_archive target header archive)
  string(MAKE_C_IDENTIFIER "RIDGE_${archive}" name)
  find_path(${name}_INCLUDE_DIR ${header})
  find_library(${name} ${archive})
  mark_as_advanced(${name}_INCLUDE_DIR ${name})
  if(${name}_INCLUDE_DIR AND ${name})
    add_library(${target} STATIC IMPORTED GLOBAL)
    set_target_properties(${target} PROPERTIES
      IMPORTED_LOCATION "${${name}}"
      INTERFACE_INCLUDE_DIRECTORIES "${${name}_INCLUDE_DIR}"
      INTERFACE_LINK_LIBRARIES "${ARGN}")
  endif()
endfunction()
ridge_find_archive(ridge::turbojpeg jpeglib.h libturbojpeg.a)
ridge_find_archive(ridge::png png.h libpng16.a ZLIB::ZLIB m)
ridge_find_archive(ridge::webp webp/decode.h libwebp.a Threads::Threads)
ridge_find_archive(ridge::ogg ogg/ogg.h libogg.a)
ridge_find_archive(ridge::flac FLAC/stream_decoder.h libFLAC.a ridge::ogg m)

# Headers alone: the library beside them is not linked.
find_path(TOMLPLUSPLUS_INCLUDE_DIR toml++/toml.h)
mark_as_advanced(TOMLPLUSPLUS_INCLUDE_DIR)
if(TOMLPLUSPLUS_INCLUDE_DIR)
  add_library(ridge::tomlplusplus INTERFACE IMPORTED)
  target_include_directories(ridge::tomlplusplus INTERFACE "${TOMLPLUSPLUS_INCLUDE_DIR}")
  target_compile_definitions(ridge::tomlplusplus INTERFACE TOML_EXCEPTIONS=0
                             TOML_ENABLE_FORMATTERS=0)
endif()

set(RIDGE_ONNX_FOLDER "${PROJECT_SOURCE_DIR}/build/deps/onnx-messages")
find_file(RIDGE_ONNX_PROTO onnx/onnx-ml.proto PATHS "${RIDGE_ONNX_FOLDER}" NO_DEFAULT_PATH)
mark_as_advanced(RIDGE_ONNX_PROTO)
if(RIDGE_ONNX_PROTO)
  add_library(ridge::onnx_messages INTERFACE IMPORTED)
endif()

ridge_find(Threads       TARGET Threads::Threads      PACKAGE libc6-dev)
ridge_find(OpenMP        TARGET OpenMP::OpenMP_CXX    PACKAGE g++ VERSION "${OpenMP_CXX_VERSION}")
ridge_find(oneDNN        TARGET DNNL::dnnl
           PACKAGE "wheel onednn-devel-cpu-gomp, by scripts/setup.sh" VERSION "${dnnl_VERSION}")
ridge_find(Highway       TARGET hwy::hwy              PACKAGE libhwy-dev VERSION "${hwy_VERSION}")
ridge_find(fmt           TARGET fmt::fmt              PACKAGE libfmt-dev VERSION "${fmt_VERSION}")
ridge_find(nlohmann_json TARGET nlohmann_json::nlohmann_json PACKAGE nlohmann-json3-dev
           VERSION "${nlohmann_json_VERSION}")
ridge_find(CLI11         TARGET CLI11::CLI11          PACKAGE libcli11-dev
           VERSION "${CLI11_VERSION}")
ridge_find(zlib          TARGET ZLIB::ZLIB            PACKAGE zlib1g-dev
           VERSION "${ZLIB_VERSION_STRING}")
ridge_find(TurboJPEG     TARGET ridge::turbojpeg
           PACKAGE "libturbojpeg0-dev and libjpeg62-turbo-dev")
ridge_find(libpng        TARGET ridge::png            PACKAGE libpng-dev)
ridge_find(libwebp       TARGET ridge::webp           PACKAGE libwebp-dev)
ridge_find(libogg        TARGET ridge::ogg            PACKAGE libogg-dev)
ridge_find(libFLAC       TARGET ridge::flac           PACKAGE libflac-dev)
ridge_find(toml++        TARGET ridge::tomlplusplus    PACKAGE libtomlplusplus-dev)
ridge_find(protobuf-lite TARGET ridge::protobuf_lite
           PACKAGE "libprotobuf-dev and protobuf-compiler")
ridge_find(ONNX-messages TARGET ridge::onnx_messages
           PACKAGE "wheel onnx, by scripts/setup.sh" VERSION 1.23.2)
ridge_find(GoogleTest    TARGET GTest::gtest_main     PACKAGE "libgtest-dev and libgmock-dev" OPTIONAL
           VERSION "${GTest_VERSION}")
ridge_find(benchmark     TARGET benchmark::benchmark  PACKAGE libbenchmark-dev OPTIONAL
           VERSION "${benchmark_VERSION}")

# What every source file is compiled with, so that one precompiled header fits all of them.
add_library(ridge_options INTERFACE)
target_include_directories(ridge_options INTERFACE "${PROJECT_SOURCE_DIR}")
target_include_directories(ridge_options SYSTEM INTERFACE "${PROJECT_BINARY_DIR}/generated")
foreach(dependency Threads::Threads OpenMP::OpenMP_CXX fmt::fmt nlohmann_json::nlohmann_json)
  if(TARGET ${dependency})
    target_link_libraries(ridge_options INTERFACE ${dependency})
  endif()
endforeach()

# ridge_link(TARGET dependency...): links those that were found; the table names the others.
function(ridge_link target)
  foreach(dependency ${ARGN})
    if(TARGET ${dependency})
      target_link_libraries(${target} PUBLIC ${dependency})
    endif()
  endforeach()
endfunction()
