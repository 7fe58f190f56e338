# sphase_embed(TARGET name FILES a.sql b.sql)
# Adds a source to TARGET that defines `extern const std::string_view kNAME` in namespace sphase,
# NAME taken from `name`, holding the files one after the other.
function(sphase_embed target name)
  cmake_parse_arguments(EMBED "" "" "FILES" ${ARGN})
  set(text "")
  foreach(file ${EMBED_FILES})
    file(READ ${file} content)
    string(APPEND text "${content}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  endforeach()
  set(out ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  file(
    GENERATE
    OUTPUT ${out}
    CONTENT
      "// Generated from ${EMBED_FILES}\n#include <string_view>\nnamespace sphase {\nextern const std::string_view ${name};\nconst std::string_view ${name} = R\"SPHASE(${text})SPHASE\";\n}\n"
  )
  target_sources(${target} PRIVATE ${out})
endfunction()
