# Debian's libzstd-dev has no CMake package. Finds it; defines Zstd::zstd, the static library where
# there is one: the recorder must be up within a few ms, and each library to load costs some of it.
find_path(Zstd_INCLUDE_DIR zstd.h)
find_library(Zstd_LIBRARY NAMES libzstd.a zstd)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Zstd REQUIRED_VARS Zstd_INCLUDE_DIR Zstd_LIBRARY)
if(Zstd_FOUND AND NOT TARGET Zstd::zstd)
  add_library(Zstd::zstd UNKNOWN IMPORTED)
  set_target_properties(Zstd::zstd PROPERTIES IMPORTED_LOCATION ${Zstd_LIBRARY}
                                              INTERFACE_INCLUDE_DIRECTORIES ${Zstd_INCLUDE_DIR})
endif()
