# Fuzz targets: tests/fuzz/<name>_fuzz.cc as bin/<name>_fuzz, with libFuzzer (clang).  Only in the
# preset `fuzz`, which builds the layers that read files and nothing else.

option(RIDGE_FUZZ "Build the fuzz targets instead of the program and the tests" OFF)
if(RIDGE_FUZZ AND NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  message(FATAL_ERROR "the fuzz targets need clang (libFuzzer); this is ${CMAKE_CXX_COMPILER_ID}. "
                      "scripts/setup.sh --test-tools installs it; use the preset fuzz.")
endif()

function(ridge_add_fuzz_targets)
  get_property(layers GLOBAL PROPERTY RIDGE_LAYERS)
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/fuzz/*_fuzz.cc")
  foreach(source ${sources})
    get_filename_component(name "${source}" NAME_WE)
    add_executable(${name} "${source}")
    target_link_libraries(${name} PRIVATE ridge_options ${layers})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    ridge_use_pch(${name} ridge_pch)
  endforeach()
endfunction()
