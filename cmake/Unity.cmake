# Several source files as one translation unit, made by cmake/unity.py: compiling all of them takes
# half of the time.  With RIDGE_UNITY=OFF each is compiled alone, which shows a missing include.

option(RIDGE_UNITY "Compile the files of a folder twelve at a time" ON)
set(RIDGE_UNITY_FILES 12)

# Highway's kernels include themselves once for each instruction set, and stay alone.
set(RIDGE_ALONE "_simd\\.cc$")

# Adds to the list `result` the unit NAME, made of these files.
function(ridge_add_unit result name)
  set(unit "${PROJECT_BINARY_DIR}/generated/unity/${name}.cc")
  set(script "${PROJECT_SOURCE_DIR}/cmake/unity.py")
  add_custom_command(
    OUTPUT "${unit}"
    COMMAND "${PYTHON3_PROGRAM}" "${script}" "${unit}" ${ARGN}
    DEPENDS "${script}" ${ARGN}
    WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
    COMMENT "unity ${name}.cc"
    VERBATIM)
  set(${result} ${${result}} "${unit}" PARENT_SCOPE)
endfunction()

# ridge_unite(result PREFIX file...): the units of these files (absolute paths), a folder's together.
function(ridge_unite result prefix)
  if(NOT RIDGE_UNITY OR NOT PYTHON3_PROGRAM)
    set(${result} ${ARGN} PARENT_SCOPE)
    return()
  endif()
  set(out ${ARGN})
  list(FILTER out INCLUDE REGEX "${RIDGE_ALONE}")
  set(files ${ARGN})
  list(FILTER files EXCLUDE REGEX "${RIDGE_ALONE}")
  list(SORT files)
  set(folders "")
  foreach(file ${files})
    file(RELATIVE_PATH file "${PROJECT_SOURCE_DIR}" "${file}")
    get_filename_component(folder "${file}" DIRECTORY)
    string(MAKE_C_IDENTIFIER "${prefix}${folder}" folder)
    list(APPEND folders ${folder})
    list(APPEND ${folder} "${file}")
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder ${folders})
    list(LENGTH ${folder} count)
    set(at 0)
    while(at LESS count)
      list(SUBLIST ${folder} ${at} ${RIDGE_UNITY_FILES} part)
      ridge_add_unit(out "${folder}_${at}" ${part})
      math(EXPR at "${at} + ${RIDGE_UNITY_FILES}")
    endwhile()
  endforeach()
  set(${result} ${out} PARENT_SCOPE)
endfunction()
