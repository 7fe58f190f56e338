# libmunge-dev has no CMake package. Finds it; defines Munge::munge.
find_path(Munge_INCLUDE_DIR munge.h)
find_library(Munge_LIBRARY munge)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Munge REQUIRED_VARS Munge_INCLUDE_DIR Munge_LIBRARY)
if(Munge_FOUND AND NOT TARGET Munge::munge)
  add_library(Munge::munge UNKNOWN IMPORTED)
  set_target_properties(Munge::munge PROPERTIES IMPORTED_LOCATION ${Munge_LIBRARY}
                                                INTERFACE_INCLUDE_DIRECTORIES
                                                ${Munge_INCLUDE_DIR})
endif()
