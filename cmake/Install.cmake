# cmake --install: bin/ridge, its completions, the oneDNN library it was built with, licenses.
# bin/ridge finds its libraries in ../lib/ridge, so the installed folder can be moved.

install(FILES LICENSE DESTINATION share/doc/ridge)
# What a GPU can tell, with the program of PyTorch beside which it is timed.
install(PROGRAMS tools/gpu_check.sh tools/gpu_judge.py DESTINATION share/ridge)
install(FILES bench/peers/bench_gpu_torch.py DESTINATION share/ridge)
install(DIRECTORY plugins/cudnn/devices DESTINATION share/ridge)

if(TARGET ridge)
  set_target_properties(ridge PROPERTIES INSTALL_RPATH "$ORIGIN/../lib/ridge")
  install(TARGETS ridge RUNTIME DESTINATION bin)
endif()

# Where the shells look.  The program prints them itself, so they are made when it is installed.
if(TARGET ridge AND NOT CMAKE_CROSSCOMPILING)
  set(scripts "${PROJECT_BINARY_DIR}/completions")
  install(CODE "
    file(MAKE_DIRECTORY \"${scripts}\")
    foreach(shell bash zsh fish)
      execute_process(COMMAND \"$<TARGET_FILE:ridge>\" completion \${shell}
                      OUTPUT_FILE \"${scripts}/\${shell}\" COMMAND_ERROR_IS_FATAL ANY)
    endforeach()")
  install(FILES "${scripts}/bash" DESTINATION share/bash-completion/completions RENAME ridge)
  install(FILES "${scripts}/zsh" DESTINATION share/zsh/site-functions RENAME _ridge)
  install(FILES "${scripts}/fish" DESTINATION share/fish/vendor_completions.d RENAME ridge.fish)
endif()

# A oneDNN of the system stays where it is; the one of scripts/setup.sh goes along.
string(FIND "${dnnl_DIR}" "${RIDGE_ONEDNN_PREFIX}/" at)
if(at EQUAL 0)
  file(REAL_PATH "${RIDGE_ONEDNN_PREFIX}/lib/libdnnl.so.3" RIDGE_DNNL_LIBRARY)
  install(FILES "${RIDGE_DNNL_LIBRARY}" DESTINATION lib/ridge RENAME libdnnl.so.3)
  install(CODE [[
    if(CMAKE_INSTALL_DO_STRIP)  # 52 MB become 44
      execute_process(COMMAND strip --strip-unneeded
                      "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/lib/ridge/libdnnl.so.3")
    endif()]])
  install(DIRECTORY "${RIDGE_ONEDNN_PREFIX}/share/doc/onednn" DESTINATION share/doc/ridge)
endif()

# With RIDGE_PORTABLE the program goes to machines that have none of these: libgomp, the one OpenMP
# runtime of the program and of oneDNN, and Highway's few functions, which Debian has no archive of.
# Everything else is inside the program (see ridge_link_program).
if(RIDGE_PORTABLE)
  execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -print-file-name=libgomp.so.1
                  OUTPUT_VARIABLE gomp OUTPUT_STRIP_TRAILING_WHITESPACE)
  get_target_property(hwy hwy::hwy LOCATION)
  foreach(library "${gomp}" "${hwy}")
    file(REAL_PATH "${library}" file)
    get_filename_component(name "${library}" NAME)
    string(REGEX REPLACE "(\\.so\\.[0-9]+)\\..*" "\\1" name "${name}")
    install(FILES "${file}" DESTINATION lib/ridge RENAME "${name}")
  endforeach()
  foreach(package libgomp1 libhwy-dev libfmt-dev zlib1g-dev libprotobuf-dev libcli11-dev
                  nlohmann-json3-dev libturbojpeg0-dev libpng-dev libwebp-dev libflac-dev
                  libogg-dev)
    install(FILES "/usr/share/doc/${package}/copyright" DESTINATION share/doc/ridge/licenses
            RENAME "${package}")
  endforeach()
endif()
