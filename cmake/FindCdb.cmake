# tinycdb has no CMake package. Finds it; defines Cdb::cdb (shared) and Cdb::pic: position
# independent objects, for a plugin that must load on a host without libcdb. Debian 12 has them in
# libcdb_pic.a; Debian 13 has libcdb.a alone, whose objects are position independent (PIE) and have
# no relocation that a shared object could not take. (Where they do, the link says so.)
find_path(Cdb_INCLUDE_DIR cdb.h)
find_library(Cdb_LIBRARY cdb)
find_library(Cdb_PIC_LIBRARY NAMES libcdb_pic.a libcdb.a)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Cdb REQUIRED_VARS Cdb_INCLUDE_DIR Cdb_LIBRARY Cdb_PIC_LIBRARY)
if(Cdb_FOUND AND NOT TARGET Cdb::cdb)
  add_library(Cdb::cdb UNKNOWN IMPORTED)
  set_target_properties(Cdb::cdb PROPERTIES IMPORTED_LOCATION ${Cdb_LIBRARY}
                                            INTERFACE_INCLUDE_DIRECTORIES ${Cdb_INCLUDE_DIR})
  add_library(Cdb::pic STATIC IMPORTED)
  set_target_properties(Cdb::pic PROPERTIES IMPORTED_LOCATION ${Cdb_PIC_LIBRARY}
                                            INTERFACE_INCLUDE_DIRECTORIES ${Cdb_INCLUDE_DIR})
endif()
