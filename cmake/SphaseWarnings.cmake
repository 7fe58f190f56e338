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
if(SPHASE_SANITIZE MATCHES "thread")
  # Boost.Asio's memory fences, which the thread sanitizer does not know.
  target_compile_definitions(sphase_options INTERFACE BOOST_ASIO_DISABLE_FENCED_BLOCK)
endif()
option(SPHASE_WERROR "Warnings are errors" ON)
if(SPHASE_WERROR)
  target_compile_options(sphase_options INTERFACE -Werror)
endif()
