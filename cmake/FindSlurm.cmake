# Slurm has no pkg-config file. Finds its headers and libslurm; defines Slurm::headers (for
# plugins, which take every symbol from the host) and Slurm::slurm (for programs).
find_path(Slurm_INCLUDE_DIR slurm/spank.h)
find_library(Slurm_LIBRARY slurm)
if(Slurm_INCLUDE_DIR)
  file(STRINGS ${Slurm_INCLUDE_DIR}/slurm/slurm_version.h Slurm_VERSION_LINE
       REGEX "#define SLURM_VERSION_NUMBER")
  string(REGEX MATCH "0x([0-9a-f][0-9a-f])([0-9a-f][0-9a-f])([0-9a-f][0-9a-f])" _
               "${Slurm_VERSION_LINE}")
  if(CMAKE_MATCH_1)
    math(EXPR major "0x${CMAKE_MATCH_1}")
    math(EXPR minor "0x${CMAKE_MATCH_2}")
    math(EXPR micro "0x${CMAKE_MATCH_3}")
    set(Slurm_VERSION "${major}.${minor}.${micro}")
  endif()
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  Slurm
  REQUIRED_VARS Slurm_INCLUDE_DIR Slurm_LIBRARY
  VERSION_VAR Slurm_VERSION)
if(Slurm_FOUND AND NOT TARGET Slurm::headers)
  add_library(Slurm::headers INTERFACE IMPORTED)
  target_include_directories(Slurm::headers INTERFACE ${Slurm_INCLUDE_DIR})
  add_library(Slurm::slurm UNKNOWN IMPORTED)
  set_target_properties(Slurm::slurm PROPERTIES IMPORTED_LOCATION ${Slurm_LIBRARY}
                                                INTERFACE_INCLUDE_DIRECTORIES ${Slurm_INCLUDE_DIR})
endif()
