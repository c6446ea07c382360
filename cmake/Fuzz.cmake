# Fuzz targets: tests/fuzz/<name>_fuzz.cc as bin/<name>_fuzz, with libFuzzer (clang).  Only in the
# preset `fuzz`, which builds the parts of the layers that read files and nothing else.
#
# Of UBSan the preset takes what numbers from a file can cause, and conversions of floats that do
# not fit; its other checks double the code, and the preset `asan` has them.

option(RIDGE_FUZZ "Build the fuzz targets instead of the program and the tests" OFF)
if(RIDGE_FUZZ AND NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  message(FATAL_ERROR "the fuzz targets need clang (libFuzzer); this is ${CMAKE_CXX_COMPILER_ID}. "
                      "scripts/setup.sh --test-tools installs it; use the preset fuzz.")
endif()

# ridge_add_fuzz_target(NAME LAYER file...): tests/fuzz/NAME_fuzz.cc, with the layer that reads it.
function(ridge_add_fuzz_target name layer)
  add_executable(${name}_fuzz "${PROJECT_SOURCE_DIR}/tests/fuzz/${name}_fuzz.cc" ${ARGN})
  target_link_libraries(${name}_fuzz PRIVATE ridge_options ridge_${layer})
  target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
  ridge_use_pch(${name}_fuzz ridge_pch)
endfunction()

function(ridge_add_fuzz_targets)
  ridge_add_fuzz_target(safetensors core)
  ridge_add_fuzz_target(idx data)
  ridge_add_fuzz_target(npz data)
  ridge_add_fuzz_target(csv data)
  ridge_add_fuzz_target(image data)
  ridge_add_fuzz_target(sound data)
  ridge_add_fuzz_target(points data)
  ridge_add_fuzz_target(tfrecord data)
  ridge_add_fuzz_target(tar data)
  ridge_add_fuzz_target(text data)
  ridge_add_fuzz_target(jsonl data)
  ridge_add_fuzz_target(tokenizer data)
  ridge_add_fuzz_target(yolo data)
  ridge_add_fuzz_target(coco data)
  ridge_add_fuzz_target(transcripts data)
  ridge_add_fuzz_target(text_graph graph)
  ridge_add_fuzz_target(onnx onnx "${PROJECT_SOURCE_DIR}/tests/fuzz/onnx_mutator.cc")
endfunction()
