# cmake --install: bin/ridge, the oneDNN library it was built with, licenses.
# bin/ridge finds libdnnl in ../lib, so the installed folder can be moved.

install(FILES LICENSE DESTINATION share/doc/ridge)

if(TARGET ridge)
  set_target_properties(ridge PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
  install(TARGETS ridge RUNTIME DESTINATION bin)
endif()

# A oneDNN of the system stays where it is; the one of scripts/setup.sh goes along, without the
# symbols that only a debugger reads.
string(FIND "${dnnl_DIR}" "${RIDGE_ONEDNN_PREFIX}/" at)
if(at EQUAL 0)
  install(FILES "${RIDGE_ONEDNN_PREFIX}/lib/libdnnl.so.3" DESTINATION lib PERMISSIONS
          OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ RENAME libdnnl.so.3)
endif()
