# One static library per layer, and the program.
#
# A layer links every layer of a lower rank that has sources, and none of its own rank: the linker
# then says the same as tools/check_layers.py.  A layer without sources is left out, and comes in
# by itself when its first file does.

# A precompiled header for all layers, and one for those that are compiled to be small.
set(RIDGE_PCH_HEADERS
    <algorithm> <array> <cstdint> <functional> <map> <memory> <mutex> <numeric> <optional>
    <span> <string> <string_view> <unordered_map> <utility> <variant> <vector> <fmt/format.h>)

function(ridge_add_pch_library name)
  file(WRITE "${PROJECT_BINARY_DIR}/generated/${name}.cc.new" "// Carries the precompiled header.\n")
  file(COPY_FILE "${PROJECT_BINARY_DIR}/generated/${name}.cc.new"
       "${PROJECT_BINARY_DIR}/generated/${name}.cc" ONLY_IF_DIFFERENT)
  add_library(${name} OBJECT "${PROJECT_BINARY_DIR}/generated/${name}.cc")
  target_link_libraries(${name} PRIVATE ridge_options)
endfunction()

# Of tests the library is what must be fast: their own sources take a tenth to a third less time to
# compile so, and under sanitizers half of it.
function(ridge_compile_as_test target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1> $<$<CONFIG:Debug>:-O0>)
endfunction()

# Code that no step waits for: a third less of it, in three quarters of the time to compile; under
# sanitizers in a third.
function(ridge_compile_small target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Os> $<$<CONFIG:Debug>:-O0>)
endfunction()

function(ridge_use_pch target pch)
  if(RIDGE_PCH AND TARGET fmt::fmt)
    if(NOT TARGET ${pch})
      ridge_add_pch_library(${pch})
      target_precompile_headers(${pch} PRIVATE ${RIDGE_PCH_HEADERS} ${ARGN})
      if(ARGN)
        ridge_link(${pch} GTest::gtest GTest::gmock)
        ridge_compile_as_test(${pch})
      elseif(pch STREQUAL "ridge_pch_small")
        ridge_compile_small(${pch})
      endif()
    endif()
    target_precompile_headers(${target} REUSE_FROM ${pch})
  endif()
endfunction()

# The operators' sources: one line in ops.def registers a file's operators and adds it to the build.
function(ridge_operator_sources result)
  set(ops "${PROJECT_SOURCE_DIR}/ridge/graph/ops")
  set(sources "")
  file(GLOB list CONFIGURE_DEPENDS "${ops}/ops.def")
  if(list)
    set_property(DIRECTORY "${PROJECT_SOURCE_DIR}" APPEND PROPERTY
                 CMAKE_CONFIGURE_DEPENDS "${list}")
    file(STRINGS "${list}" lines REGEX "^RIDGE_OPS?\\(")
    foreach(line ${lines})
      string(REGEX REPLACE "^RIDGE_OPS?\\( *([a-z0-9_]+) *,.*" "\\1" file "${line}")
      if(EXISTS "${ops}/${file}.cc")
        list(APPEND sources "${ops}/${file}.cc")
      else()  # no error, so that the other layers can still be built; graph will not link
        message(WARNING "ops.def names ${file}, and there is no ridge/graph/ops/${file}.cc")
      endif()
    endforeach()
  endif()
  set(${result} "${sources}" PARENT_SCOPE)
endfunction()

# The library sources of a layer; EXCLUDE names files relative to its folder.
function(ridge_layer_sources layer result)
  set(folder "${PROJECT_SOURCE_DIR}/ridge/${layer}")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${folder}/*.cc")
  list(FILTER sources EXCLUDE REGEX "_(test|bench)\\.cc$")
  foreach(name ${ARGN})
    list(REMOVE_ITEM sources "${folder}/${name}")
  endforeach()
  if(layer STREQUAL "graph")
    list(FILTER sources EXCLUDE REGEX "/ridge/graph/ops/[^/]+\\.cc$")
    ridge_operator_sources(operators)
    list(APPEND sources ${operators})
  endif()
  if(layer STREQUAL "onnx" AND RIDGE_FUZZ)  # no target exports
    list(FILTER sources EXCLUDE REGEX "/ridge/onnx/(export/|training/training_info_write)")
  endif()
  set(${result} "${sources}" PARENT_SCOPE)
endfunction()

# Adds the C++ of a layer's .proto files (in its top folder) to its library.
function(ridge_add_protos target layer)
  file(GLOB protos CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/ridge/${layer}/*.proto")
  if(NOT protos OR NOT TARGET ridge::protobuf_lite)
    return()
  endif()
  set(out "${PROJECT_BINARY_DIR}/generated")
  foreach(proto ${protos})
    get_filename_component(name "${proto}" NAME_WE)
    set(stem "${out}/ridge/${layer}/${name}.pb")
    add_custom_command(
      OUTPUT "${stem}.cc" "${stem}.h"
      COMMAND ${PROTOC_PROGRAM} "--proto_path=${PROJECT_SOURCE_DIR}" "--cpp_out=${out}" "${proto}"
      DEPENDS "${proto}"
      COMMENT "protoc ridge/${layer}/${name}.proto"
      VERBATIM)
    set_source_files_properties("${stem}.cc" PROPERTIES
      SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS "-w")
    target_sources(${target} PRIVATE "${stem}.cc" "${stem}.h")
  endforeach()
  target_link_libraries(${target} PUBLIC ridge::protobuf_lite)
endfunction()

# ONNX's messages, from build/deps: "onnx/onnx-ml.pb.h".
function(ridge_add_onnx_messages target)
  if(NOT RIDGE_ONNX_PROTO OR NOT TARGET ridge::protobuf_lite)
    return()
  endif()
  set(out "${PROJECT_BINARY_DIR}/generated")
  set(stem "${out}/onnx/onnx-ml.pb")
  add_custom_command(
    OUTPUT "${stem}.cc" "${stem}.h"
    COMMAND ${PROTOC_PROGRAM} "--proto_path=${RIDGE_ONNX_FOLDER}" "--cpp_out=${out}"
            "${RIDGE_ONNX_PROTO}"
    DEPENDS "${RIDGE_ONNX_PROTO}"
    COMMENT "protoc onnx/onnx-ml.proto"
    VERBATIM)
  set_source_files_properties("${stem}.cc" PROPERTIES
    SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS "-w")
  target_sources(${target} PRIVATE "${stem}.cc" "${stem}.h")
  target_link_libraries(${target} PUBLIC ridge::protobuf_lite)
endfunction()

# ridge_add_layer(LAYER RANK [SMALL | SMALL_DEBUG] [LINK target...] [USE target...] [EXCLUDE file...])
# LINK: what its headers need too; USE: what only its sources need; SMALL: no step waits for it;
# SMALL_DEBUG: steps do, the tests under sanitizers hardly.
# Call in rank order.
# Adds ridge_<layer>, its tests and its benches.
function(ridge_add_layer layer rank)
  cmake_parse_arguments(PARSE_ARGV 2 arg "SMALL;SMALL_DEBUG" "" "LINK;USE;EXCLUDE")
  ridge_layer_sources(${layer} sources ${arg_EXCLUDE})
  if(NOT sources)
    return()
  endif()
  set(target ridge_${layer})
  ridge_unite(units "" ${sources})
  add_library(${target} STATIC ${units})
  set_property(TARGET ${target} PROPERTY RIDGE_RANK ${rank})
  target_link_libraries(${target} PUBLIC ridge_options)
  get_property(layers GLOBAL PROPERTY RIDGE_LAYERS)
  foreach(other ${layers})
    get_property(other_rank TARGET ${other} PROPERTY RIDGE_RANK)
    if(other_rank LESS rank)
      target_link_libraries(${target} PUBLIC ${other})
    endif()
  endforeach()
  ridge_link(${target} ${arg_LINK})
  foreach(dependency ${arg_USE})
    target_link_libraries(${target} PRIVATE ${dependency})
  endforeach()
  ridge_add_protos(${target} ${layer})
  if(layer STREQUAL "onnx")
    ridge_add_onnx_messages(${target})
  endif()
  if(arg_SMALL OR (arg_SMALL_DEBUG AND CMAKE_BUILD_TYPE STREQUAL "Debug"))
    ridge_compile_small(${target})
    ridge_use_pch(${target} ridge_pch_small)
  else()
    ridge_use_pch(${target} ridge_pch)
  endif()
  set_property(GLOBAL APPEND PROPERTY RIDGE_LAYERS ${target})
  if(NOT RIDGE_FUZZ)
    ridge_add_layer_test(${layer})
  endif()
endfunction()

# ridge_embed_text(FILE HEADER NAME): HEADER has the file's text as the constant NAME.
function(ridge_embed_text file header name)
  set_property(DIRECTORY "${PROJECT_SOURCE_DIR}" APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
  file(READ "${PROJECT_SOURCE_DIR}/${file}" text)
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/generated/${header}" @ONLY CONTENT
"// The text of @file@.
#pragma once

namespace ridge {
inline constexpr char @name@[] = R\"text(@text@)text\";
}  // namespace ridge
")
endfunction()

# The program: ridge/cli/main.cc with the cli layer, as bin/ridge.
function(ridge_add_program)
  set(main "${PROJECT_SOURCE_DIR}/ridge/cli/main.cc")
  file(GLOB found CONFIGURE_DEPENDS "${main}")
  if(NOT found)
    return()
  endif()
  add_executable(ridge "${main}")
  if(NOT RIDGE_SANITIZE)  # sanitizers are not ready before libraries are
    target_sources(ridge PRIVATE "${PROJECT_SOURCE_DIR}/ridge/cli/core_sharing.cc")
  endif()
  get_property(layers GLOBAL PROPERTY RIDGE_LAYERS)
  target_link_libraries(ridge PRIVATE ridge_options ${layers})
  ridge_link_program(ridge)
  ridge_use_pch(ridge ridge_pch)
  if(RIDGE_PORTABLE)
    set(carried "${PROJECT_SOURCE_DIR}/cmake/fmt.cc" "${PROJECT_SOURCE_DIR}/cmake/arc4random.cc")
    target_sources(ridge PRIVATE ${carried})
    set_source_files_properties(${carried} PROPERTIES
      SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS "-w")
  endif()
endfunction()

# A second protobuf in the same process must not see ours; nor anything of ours, when the program
# carries the C++ library (oneDNN then uses the system's own).
function(ridge_link_program target)
  target_link_options(${target} PRIVATE "LINKER:--exclude-libs,libprotobuf-lite.a"
                      "LINKER:--as-needed")
  if(RIDGE_PORTABLE)
    target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc
                        "LINKER:--exclude-libs,ALL" "LINKER:--gc-sections"
                        -fuse-ld=gold "LINKER:--icf=safe")  # of binutils, as the usual linker
  endif()
endfunction()
