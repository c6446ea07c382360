# Tests: ridge_<layer>_test from ridge/<layer>/**/*_test.cc, ridge_tests from tests/**/*.cc, and
# each tests/**/*_test.py, tests/e2e/*.py and tests/generate/*.py as a test of its own.
#
# Labels: `fast` for all but tests/e2e/, which has `e2e`, tests/generate/, which has `generate`, and
# ONNX's conformance cases, which have `onnx`.  Each runs in the source folder, with
#   RIDGE_SOURCE_DIR  the source folder
#   RIDGE             the program, build/<preset>/bin/ridge
# Python tests run with the python3 of scripts/setup.sh --test-tools (tensorboard, numpy) if it was
# there when the build was configured, as `make test` sees to, and with the system's if not.

set(RIDGE_TEST_PYTHON "${PROJECT_SOURCE_DIR}/build/deps/test-venv/bin/python")
if(NOT EXISTS "${RIDGE_TEST_PYTHON}")
  set(RIDGE_TEST_PYTHON "${PYTHON3_PROGRAM}")
endif()

# They compare times or measured memory, or ranks of them must not be late.
set(RIDGE_SERIAL_TESTS cli_inputs cli_launch cli_memory cli_mesh cli_pipeline cli_plan cli_profile
    cli_rank_plans cli_ranks cli_stop cli_tune cli_usage onnx_hostile)

function(ridge_set_test_properties name label seconds)
  set_tests_properties(${name} PROPERTIES
    LABELS ${label}
    TIMEOUT ${seconds}
    WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
    ENVIRONMENT "RIDGE_SOURCE_DIR=${PROJECT_SOURCE_DIR};RIDGE=${PROJECT_BINARY_DIR}/bin/ridge;PYTHONDONTWRITEBYTECODE=1")
endfunction()

# ridge_add_test_program(NAME SOURCES file... LINK target...)
function(ridge_add_test_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK")
  if(NOT arg_SOURCES OR NOT TARGET GTest::gtest_main)
    return()
  endif()
  set(tests ${arg_SOURCES})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  set(helpers ${arg_SOURCES})
  list(FILTER helpers EXCLUDE REGEX "_test\\.cc$")
  ridge_unite(units "${name}_" ${tests})
  add_executable(${name} ${units} ${helpers})
  target_link_libraries(${name} PRIVATE ridge_options ${arg_LINK})
  ridge_link_gtest(${name})
  ridge_link_program(${name})
  ridge_compile_as_test(${name})
  ridge_use_pch(${name} ridge_test_pch <gtest/gtest.h> <gmock/gmock.h>)
  add_test(NAME ${name} COMMAND ${name} --gtest_brief=1)
  ridge_set_test_properties(${name} fast 1200)  # two at a time, under sanitizers
endfunction()

function(ridge_link_gtest target)
  if(NOT TARGET ridge_test_main)
    add_library(ridge_test_main STATIC "${PROJECT_SOURCE_DIR}/tests/main/main.cc")
    target_link_libraries(ridge_test_main PRIVATE ridge_options GTest::gtest)
  endif()
  target_link_libraries(${target} PRIVATE ridge_test_main GTest::gtest GTest::gmock)
endfunction()

function(ridge_add_layer_test layer)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/ridge/${layer}/*_test.cc")
  ridge_add_test_program(ridge_${layer}_test SOURCES ${sources} LINK ridge_${layer})
endfunction()

function(ridge_add_python_tests pattern label seconds)
  file(GLOB scripts CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${pattern}")
  foreach(script ${scripts})
    file(RELATIVE_PATH name "${PROJECT_SOURCE_DIR}" "${script}")
    get_filename_component(stem "${script}" NAME_WE)
    if(stem MATCHES "^_" OR stem STREQUAL "conftest")
      continue()  # shared helpers, not tests
    endif()
    add_test(NAME ${name} COMMAND "${RIDGE_TEST_PYTHON}" "${script}")
    ridge_set_test_properties(${name} ${label} ${seconds})
    if(stem IN_LIST RIDGE_SERIAL_TESTS)
      set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
    endif()
  endforeach()
endfunction()

# ONNX's conformance cases.  A program of its own, because each case runs in a process of its own;
# it uses all cores.  Exit code 77: scripts/setup.sh --test-tools has not brought the cases.
function(ridge_add_onnx_nodes)
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/onnx/*.cc")
  if(NOT sources OR NOT TARGET ridge_onnx OR NOT TARGET nlohmann_json::nlohmann_json)
    return()
  endif()
  add_executable(ridge_onnx_nodes ${sources})
  target_link_libraries(ridge_onnx_nodes PRIVATE ridge_options ridge_onnx
                        nlohmann_json::nlohmann_json)
  ridge_link_program(ridge_onnx_nodes)
  ridge_use_pch(ridge_onnx_nodes ridge_pch)
  add_test(NAME onnx_nodes
           COMMAND ridge_onnx_nodes --check "${PROJECT_SOURCE_DIR}/tests/onnx/conformance.md")
  add_test(NAME onnx_gradients COMMAND ridge_onnx_nodes --gradients)
  foreach(name onnx_nodes onnx_gradients)
    ridge_set_test_properties(${name} onnx 900)
    set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 RUN_SERIAL ON)
  endforeach()
endfunction()

# Seeds 0 to COUNT, of which a sanitizer, that looks at the code and not at the numbers, has a
# quarter.
function(ridge_seeds result count)
  if(RIDGE_SANITIZE)
    math(EXPR count "${count} / 4")
  endif()
  set(${result} "0:${count}" PARENT_SCOPE)
endfunction()

# A program that draws from ranges of seeds; the test has a small one, larger ones go by hand.
# ridge_add_seeded_test(NAME COUNT OPTION...): ridge_<NAME> from tests/<NAME>/*.cc and the reader of
# case files
function(ridge_add_seeded_test name count)
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/${name}/*.cc")
  if(NOT sources OR NOT TARGET ridge_use)
    return()
  endif()
  add_executable(ridge_${name} ${sources} "${PROJECT_SOURCE_DIR}/tests/ops/case_file.cc")
  target_link_libraries(ridge_${name} PRIVATE ridge_options ridge_use ridge_backend)
  ridge_link_program(ridge_${name})
  ridge_use_pch(ridge_${name} ridge_pch)
  ridge_seeds(seeds ${count})
  add_test(NAME ${name} COMMAND ridge_${name} --seeds ${seeds} ${ARGN})
  ridge_set_test_properties(${name} fast 1800)
endfunction()

# Operators and trainings on a device that the host cannot reach, with the cases of tests/ops and
# the trainings of tests/crossing.
function(ridge_add_fake_device layers)
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/fake_device/*.cc")
  foreach(shared crossing/hostile_backend crossing/net crossing/settings crossing/training
                 ops/case_file ops/check_backend)
    list(APPEND sources "${PROJECT_SOURCE_DIR}/tests/${shared}.cc")
  endforeach()
  ridge_add_test_program(ridge_fake_device_test SOURCES ${sources} LINK ${layers})
endfunction()

# NVIDIA's cuda.h, for comparing our declarations of the driver with it.
function(ridge_compare_cuda_header target)
  find_path(RIDGE_CUDA_HEADER cuda.h
            PATHS /usr/local/cuda/include /usr/include
                  "${PROJECT_SOURCE_DIR}/build/deps/cuda-headers/nvidia/cu13/include")
  mark_as_advanced(RIDGE_CUDA_HEADER)
  if(NOT RIDGE_CUDA_HEADER)
    set_property(GLOBAL APPEND PROPERTY RIDGE_DEPENDENCY_ROWS
                 "  absent   cuda.h: our declarations of CUDA's driver are not compared with it")
    return()
  endif()
  set_property(GLOBAL APPEND PROPERTY RIDGE_DEPENDENCY_ROWS "  found    cuda.h")
  set(compared abi_test)
  if(EXISTS "${RIDGE_CUDA_HEADER}/cublasLt.h")
    list(APPEND compared cublaslt_abi_test)
  endif()
  if(EXISTS "${RIDGE_CUDA_HEADER}/nvml.h")
    list(APPEND compared nvml_abi_test)
  endif()
  if(EXISTS "${RIDGE_CUDA_HEADER}/nccl.h")
    list(APPEND compared nccl_abi_test)
  endif()
  list(TRANSFORM compared PREPEND "${PROJECT_SOURCE_DIR}/tests/fake_cuda/header/")
  list(TRANSFORM compared APPEND ".cc")
  target_sources(${target} PRIVATE ${compared})
  set_source_files_properties(${compared} PROPERTIES
    SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS "-isystem${RIDGE_CUDA_HEADER}")
endfunction()

# HIP's headers (Debian's libamdhip64-dev), for holding docs/design/0054-hip.md against them.
function(ridge_compare_hip_header target)
  find_path(RIDGE_HIP_HEADER hip/hiprtc.h
            PATHS /opt/rocm/include "${PROJECT_SOURCE_DIR}/build/deps/hip/usr/include")
  mark_as_advanced(RIDGE_HIP_HEADER)
  if(NOT RIDGE_HIP_HEADER)
    set_property(GLOBAL APPEND PROPERTY RIDGE_DEPENDENCY_ROWS
                 "  absent   hip/hiprtc.h: docs/design/0054-hip.md is not held against it")
    return()
  endif()
  set_property(GLOBAL APPEND PROPERTY RIDGE_DEPENDENCY_ROWS "  found    hip/hiprtc.h")
  set(compared "${PROJECT_SOURCE_DIR}/tests/fake_cuda/header/hip_map_test.cc")
  target_sources(${target} PRIVATE "${compared}")
  set_source_files_properties("${compared}" PROPERTIES
    SKIP_PRECOMPILE_HEADERS ON
    COMPILE_OPTIONS "-isystem${RIDGE_HIP_HEADER};-O1")  # else it refers to functions of HIP
endfunction()

# ThreadSanitizer keeps a stack of its own for each thread, which fibers would mix up.
if(RIDGE_SANITIZE STREQUAL "thread")
  set_source_files_properties("${PROJECT_SOURCE_DIR}/tests/cuda_text/host_threads.cc"
                              PROPERTIES COMPILE_OPTIONS -fno-sanitize=thread)
endif()

# What compiles kernels' texts for the host (tests/cuda_text/host_program.h), in RIDGE_HOST_COMPILER:
# unoptimized, since to compile takes longer than to run, with a precompiled header, and by clang
# where it is installed: the texts of all cases take it 13 s, g++ 32.
function(ridge_add_host_compiler)
  find_program(RIDGE_HOST_CLANG clang++)
  if(RIDGE_HOST_CLANG)
    set(command "${RIDGE_HOST_CLANG}")
    set(suffix pch)
  else()
    set(command "${CMAKE_CXX_COMPILER}")
    set(suffix gch)
  endif()
  list(APPEND command -std=c++20 -O0 -w -fPIC -ffp-contract=off)
  if(RIDGE_SANITIZE MATCHES "address")
    list(APPEND command -fsanitize=address)
  endif()
  set(from "${PROJECT_SOURCE_DIR}/tests/cuda_text")
  set(folder "${PROJECT_BINARY_DIR}/host_cuda")
  set(header "${folder}/host_cuda.h")
  add_custom_command(OUTPUT "${header}.${suffix}"
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${folder}"
    COMMAND "${CMAKE_COMMAND}" -E copy "${from}/host_block.h" "${from}/host_cuda.h" "${folder}"
    COMMAND ${command} -x c++-header "${header}" -o "${header}.${suffix}"
    DEPENDS "${from}/host_block.h" "${from}/host_cuda.h" VERBATIM)
  add_custom_target(ridge_host_cuda DEPENDS "${header}.${suffix}")
  list(JOIN command " " command)
  set(RIDGE_HOST_COMPILER "${command} -include ${header}" PARENT_SCOPE)
endfunction()

function(ridge_compile_for_host target)
  add_dependencies(${target} ridge_host_cuda)
  target_compile_definitions(${target} PRIVATE "RIDGE_HOST_COMPILER=\"${RIDGE_HOST_COMPILER}\"")
endfunction()

# The plug-in for cuDNN that runs on the host, and the libraries that are looked for with it.
function(ridge_add_fake_cudnn folder)
  add_library(ridge_fake_cudnn MODULE "${folder}/fake_cudnn.cc" "${folder}/host_graphs.cc")
  target_link_libraries(ridge_fake_cudnn PRIVATE ridge_options ${CMAKE_DL_LIBS})
  set_target_properties(ridge_fake_cudnn PROPERTIES OUTPUT_NAME ridge_cudnn
    LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/fake_cuda")
  foreach(library cudnn.9.parts cudart.13.nothing)
    string(REPLACE "." ";" words ${library})
    list(GET words 0 name)
    list(GET words 1 version)
    list(GET words 2 source)
    add_library(ridge_fake_${name}_library SHARED "${folder}/${source}.cc")
    target_link_libraries(ridge_fake_${name}_library PRIVATE ${CMAKE_DL_LIBS})
    set_target_properties(ridge_fake_${name}_library PROPERTIES OUTPUT_NAME ${name}
      SOVERSION ${version} LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/fake_cuda")
    add_dependencies(ridge_fake_cudnn ridge_fake_${name}_library)
  endforeach()
endfunction()

# CUDA's device on a driver and a compiler that run on the host: fake_cuda/libcuda.so.1 and
# libnvrtc.so.13, which the loader opens as the real ones; and the kernels of tests/fake_device on it.
function(ridge_add_fake_cuda layers)
  set(folder "${PROJECT_SOURCE_DIR}/tests/fake_cuda")
  set(text_folder "${PROJECT_SOURCE_DIR}/tests/cuda_text")
  file(GLOB driver CONFIGURE_DEPENDS "${folder}/fake_*.cc")
  add_library(ridge_fake_cuda SHARED ${driver} "${text_folder}/host_threads.cc")
  target_link_libraries(ridge_fake_cuda PRIVATE ${CMAKE_DL_LIBS})
  add_library(ridge_fake_nvrtc SHARED "${folder}/nvrtc/fake_nvrtc.cc" "${text_folder}/host_program.cc")
  ridge_compile_for_host(ridge_fake_nvrtc)
  set_target_properties(ridge_fake_nvrtc PROPERTIES OUTPUT_NAME nvrtc SOVERSION 13
    LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/fake_cuda")
  add_library(ridge_partial_cuda SHARED "${folder}/partial_driver.cc")
  set_target_properties(ridge_fake_cuda PROPERTIES OUTPUT_NAME cuda SOVERSION 1
    LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/fake_cuda")
  set_target_properties(ridge_partial_cuda PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/fake_cuda")
  add_library(ridge_fake_cublaslt SHARED "${folder}/cublaslt/fake_cublaslt.cc"
              "${folder}/cublaslt/lt_product.cc")
  target_link_libraries(ridge_fake_cublaslt PRIVATE ridge_fake_cuda ridge_core)
  # Trainings on the fake GPU spend most of their time there.
  set_source_files_properties("${folder}/cublaslt/lt_product.cc" PROPERTIES COMPILE_OPTIONS -O3)
  set_target_properties(ridge_fake_cublaslt PROPERTIES OUTPUT_NAME cublasLt SOVERSION 13
    LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/fake_cuda")
  add_library(ridge_fake_nvml SHARED "${folder}/nvml/fake_nvml.cc")
  set_target_properties(ridge_fake_nvml PROPERTIES OUTPUT_NAME nvidia-ml SOVERSION 1
    LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/fake_cuda")
  add_library(ridge_fake_nccl SHARED "${folder}/nccl/fake_nccl.cc")
  target_link_libraries(ridge_fake_nccl PRIVATE ridge_fake_cuda)
  set_target_properties(ridge_fake_nccl PROPERTIES OUTPUT_NAME nccl SOVERSION 2
    LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/fake_cuda")
  foreach(target ridge_fake_cuda ridge_fake_nvrtc ridge_fake_cublaslt ridge_fake_nvml ridge_fake_nccl
          ridge_partial_cuda)
    target_link_libraries(${target} PRIVATE ridge_options)
  endforeach()
  ridge_add_fake_cudnn("${folder}/cudnn")
  file(GLOB tests CONFIGURE_DEPENDS "${folder}/*_test.cc" "${folder}/test_*.cc")
  list(APPEND tests "${folder}/cudnn/library_backend.cc"
       "${PROJECT_SOURCE_DIR}/tests/fake_device/launched_backend.cc"
       "${PROJECT_SOURCE_DIR}/tests/ops/case_file.cc" "${PROJECT_SOURCE_DIR}/tests/ops/check_backend.cc")
  ridge_add_test_program(ridge_fake_cuda_test SOURCES ${tests} LINK ${layers})
  if(TARGET ridge_fake_cuda_test)
    add_dependencies(ridge_fake_cuda_test ridge_fake_cuda ridge_fake_nvrtc ridge_fake_cublaslt
                     ridge_fake_cudnn ridge_fake_nvml ridge_fake_nccl ridge_partial_cuda)
    target_compile_definitions(ridge_fake_cuda_test
                               PRIVATE "RIDGE_FAKE_CUDA_FOLDER=\"${PROJECT_BINARY_DIR}/fake_cuda\"")
    ridge_compare_cuda_header(ridge_fake_cuda_test)
    ridge_compare_hip_header(ridge_fake_cuda_test)
  endif()
  # The system's driver, where there is one; and the same laws on ours.
  ridge_add_test_program(ridge_gpu_test
    SOURCES "${folder}/gpu/gpu_test.cc" "${folder}/gpu/gpu_kernels_test.cc"
            "${text_folder}/case_kernels.cc" "${PROJECT_SOURCE_DIR}/tests/ops/case_file.cc"
            "${PROJECT_SOURCE_DIR}/tests/ops/check_backend.cc"
    LINK ridge_backend)
  if(TARGET ridge_gpu_test)
    add_dependencies(ridge_gpu_test ridge_fake_cuda ridge_fake_nvrtc ridge_fake_cublaslt
                     ridge_fake_cudnn)
    add_test(NAME ridge_gpu_test_on_fake COMMAND ridge_gpu_test --gtest_brief=1)
    ridge_set_test_properties(ridge_gpu_test_on_fake fast 1200)
    set_property(TEST ridge_gpu_test_on_fake APPEND PROPERTY
                 ENVIRONMENT "RIDGE_CUDA_PATH=${PROJECT_BINARY_DIR}/fake_cuda" RIDGE_GPU_CASES=1)
    set_tests_properties(ridge_gpu_test_on_fake PROPERTIES COST 60)  # seconds: it begins early
  endif()
endfunction()

# Kernels' texts for CUDA, compiled by the host's compiler when the test runs.
function(ridge_add_cuda_text)
  set(folder "${PROJECT_SOURCE_DIR}/tests/cuda_text")
  file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cc")
  if(RIDGE_SANITIZE)  # NVIDIA's compiler is not ours
    list(FILTER sources EXCLUDE REGEX "nvrtc_test")
  endif()
  ridge_add_test_program(ridge_cuda_text_test
    SOURCES ${sources} "${PROJECT_SOURCE_DIR}/tests/ops/case_file.cc"
            "${PROJECT_SOURCE_DIR}/tests/ops/check_backend.cc"
    LINK ridge_backend)
  if(TARGET ridge_cuda_text_test)
    ridge_compile_for_host(ridge_cuda_text_test)
    set_tests_properties(ridge_cuda_text_test PROPERTIES COST 300)  # seconds: it begins early
    target_link_libraries(ridge_cuda_text_test PRIVATE ${CMAKE_DL_LIBS})
  endif()
endfunction()

# Partitioned graphs on virtual devices: operators from the cases of tests/ops, models and random
# graphs.
function(ridge_add_partition_tests)
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/partition/*.cc")
  if(NOT sources OR NOT TARGET ridge_learn)
    return()
  endif()
  ridge_add_test_program(ridge_partition_tests
    SOURCES ${sources} "${PROJECT_SOURCE_DIR}/tests/ops/case_file.cc"
    LINK ridge_partition ridge_models ridge_learn)
  file(GLOB drawn CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/generate/draw*.cc")
  add_executable(ridge_partition_random
    tests/partition/random/main.cc tests/partition/compare.cc ${drawn}
    tests/generate/sketch.cc tests/generate/leaves.cc tests/ops/case_file.cc)
  target_link_libraries(ridge_partition_random
                        PRIVATE ridge_options ridge_partition ridge_learn)
  ridge_link_program(ridge_partition_random)
  ridge_use_pch(ridge_partition_random ridge_pch)
  ridge_seeds(seeds 400)
  add_test(NAME partition_random COMMAND ridge_partition_random --seeds ${seeds})
  ridge_set_test_properties(partition_random fast 1800)
endfunction()

# Stages of models under schedules, on virtual devices.
function(ridge_add_pipeline_tests)
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/pipeline/*.cc")
  if(NOT sources OR NOT TARGET ridge_learn)
    return()
  endif()
  foreach(shared compare golden small_resnet)
    list(APPEND sources "${PROJECT_SOURCE_DIR}/tests/partition/${shared}.cc")
  endforeach()
  ridge_add_test_program(ridge_pipeline_tests SOURCES ${sources}
    LINK ridge_pipeline ridge_partition ridge_models ridge_learn)
endfunction()

function(ridge_add_tests)
  ridge_add_host_compiler()
  get_property(layers GLOBAL PROPERTY RIDGE_LAYERS)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/*.cc")
  list(FILTER sources EXCLUDE REGEX "/tests/(onnx|fuzz|generate|crossing|cuda_text|fake_cuda|fake_device|main|partition|pipeline)/")
  if(layers)
    ridge_add_test_program(ridge_tests SOURCES ${sources} LINK ${layers})
    ridge_add_fake_device("${layers}")
    ridge_add_fake_cuda("${layers}")
  endif()
  ridge_add_cuda_text()
  ridge_add_partition_tests()
  ridge_add_pipeline_tests()
  ridge_add_onnx_nodes()
  ridge_add_seeded_test(generate 2000 --every-operator)  # graphs over all differentiable operators
  ridge_add_seeded_test(crossing 100)  # trainings through the planner, in all its settings
  ridge_add_python_tests("tools/*_test.py" fast 120)
  if(TARGET ridge)
    ridge_add_python_tests("tests/e2e/*.py" e2e 900)
    ridge_add_python_tests("tests/generate/onnx_*.py" generate 900)
  endif()
endfunction()

# Timings, built only by the target ridge_benches: bench/*_bench.cc and ridge/**/*_bench.cc.
function(ridge_add_benches)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS
       "${PROJECT_SOURCE_DIR}/bench/*_bench.cc" "${PROJECT_SOURCE_DIR}/ridge/*_bench.cc")
  add_custom_target(ridge_benches)
  if(NOT TARGET benchmark::benchmark_main)
    return()
  endif()
  get_property(layers GLOBAL PROPERTY RIDGE_LAYERS)
  foreach(source ${sources})
    get_filename_component(name "${source}" NAME_WE)
    add_executable(${name} EXCLUDE_FROM_ALL "${source}")
    set_target_properties(${name} PROPERTIES
      RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bench")
    target_link_libraries(${name} PRIVATE ridge_options ${layers} benchmark::benchmark
                          benchmark::benchmark_main)
    ridge_link_program(${name})
    add_dependencies(ridge_benches ${name})
  endforeach()
endfunction()
