# One place for warnings and sanitizers: every target of ours links sphase_options.
add_library(sphase_options INTERFACE)
target_include_directories(sphase_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(
  sphase_options
  INTERFACE -Wall -Wextra -Wshadow -Wpointer-arith -Wformat=2
            $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Woverloaded-virtual -Wold-style-cast>
            $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes -Wmissing-prototypes>)
target_compile_definitions(sphase_options INTERFACE SPHASE_VERSION="${PROJECT_VERSION}"
                                                    _GNU_SOURCE)
set(SPHASE_SANITIZE "" CACHE STRING "Sanitizers, e.g. address,undefined or thread")
if(SPHASE_SANITIZE)
  target_compile_options(sphase_options INTERFACE -fsanitize=${SPHASE_SANITIZE}
                                                  -fno-sanitize-recover=all
                                                  -fno-omit-frame-pointer)
  target_link_options(sphase_options INTERFACE -fsanitize=${SPHASE_SANITIZE})
endif()
option(SPHASE_WERROR "Warnings are errors" ON)
if(SPHASE_WERROR)
  target_compile_options(sphase_options INTERFACE -Werror)
endif()
