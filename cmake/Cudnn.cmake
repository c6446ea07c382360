# The plug-in between the program and cuDNN, where the headers are found: cuDNN's C++ frontend as
# scripts/build_cudnn_plugin.sh or scripts/build_cudnn_ask.sh fetched it, and those of cuDNN and
# CUDA.  The program links none of them and opens the plug-in beside itself.

set(folder "${PROJECT_SOURCE_DIR}/build/deps/cudnn")
find_path(RIDGE_CUDNN_FRONTEND cudnn_frontend.h PATHS "${folder}/include" NO_DEFAULT_PATH)
find_path(RIDGE_CUDNN_HEADER cudnn.h
          PATHS "${folder}/nvidia/cudnn/include" /usr/local/cuda/include /usr/include)
find_path(RIDGE_CUDA_RUNTIME_HEADER cuda_runtime_api.h
          PATHS "${folder}/nvidia/cu13/include" /usr/local/cuda/include /usr/include)
mark_as_advanced(RIDGE_CUDNN_FRONTEND RIDGE_CUDNN_HEADER RIDGE_CUDA_RUNTIME_HEADER)

if(RIDGE_SANITIZE OR RIDGE_FUZZ OR NOT TARGET ridge)
  return()
endif()
if(NOT RIDGE_CUDNN_FRONTEND OR NOT RIDGE_CUDNN_HEADER OR NOT RIDGE_CUDA_RUNTIME_HEADER)
  set_property(GLOBAL APPEND PROPERTY RIDGE_DEPENDENCY_ROWS
               "  absent   cuDNN's headers: scripts/build_cudnn_plugin.sh")
  return()
endif()
set_property(GLOBAL APPEND PROPERTY RIDGE_DEPENDENCY_ROWS "  found    cuDNN's headers")

add_library(ridge_cudnn MODULE plugins/cudnn/ridge_cudnn.cc)
target_include_directories(ridge_cudnn PRIVATE "${PROJECT_SOURCE_DIR}")
target_include_directories(ridge_cudnn SYSTEM PRIVATE "${RIDGE_CUDNN_FRONTEND}"
                           "${RIDGE_CUDNN_HEADER}" "${RIDGE_CUDA_RUNTIME_HEADER}")
# Templates of a minute: what they are for runs once a plan.
target_compile_options(ridge_cudnn PRIVATE -O1 -g0 -Wall -Wextra)
target_link_libraries(ridge_cudnn PRIVATE ${CMAKE_DL_LIBS})
set_target_properties(ridge_cudnn PROPERTIES CXX_VISIBILITY_PRESET hidden SKIP_PRECOMPILE_HEADERS ON
  LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
target_link_options(ridge_cudnn PRIVATE -Wl,--no-undefined)
add_dependencies(ridge ridge_cudnn)
install(TARGETS ridge_cudnn LIBRARY DESTINATION lib/ridge)
