# The plotting library of the page, https://dygraphs.com; Debian: libjs-dygraphs. Finds the file to
# embed: Dygraphs_SCRIPT.
find_file(Dygraphs_SCRIPT dygraph.min.js PATHS /usr/share/javascript/dygraphs
                                               /usr/share/javascript/dygraphs/dist)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Dygraphs REQUIRED_VARS Dygraphs_SCRIPT)
