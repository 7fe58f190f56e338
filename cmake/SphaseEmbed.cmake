# sphase_embed(TARGET name FILES a.sql b.sql)
# Adds a source to TARGET that defines in namespace sphase, `name` being kNAME:
#   extern const std::string_view kNAME        the files one after the other, byte by byte
#   extern const std::string_view kNAMESha256  their SHA-256, as hexadecimal digits
# As an array of bytes: a string literal has a longest length and an end that a file may hold. A
# line that points to a source map is left out, since it would make a browser look for that file.
function(sphase_embed target name)
  cmake_parse_arguments(EMBED "" "" "FILES" ${ARGN})
  set(base ${CMAKE_CURRENT_BINARY_DIR}/${name})
  set(text "")
  foreach(file ${EMBED_FILES})
    file(READ ${file} content)
    string(REGEX REPLACE "//# sourceMappingURL=[^\n]*" "" content "${content}")
    string(APPEND text "${content}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  endforeach()
  file(WRITE ${base}.bytes "${text}")
  file(SHA256 ${base}.bytes hash)
  file(READ ${base}.bytes bytes HEX)
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${bytes}")
  string(REGEX REPLACE "('....',)('....',)('....',)('....',)" "\\1\\2\\3\\4\n" bytes "${bytes}")
  file(
    WRITE ${base}.new
    "// Generated from ${EMBED_FILES}\n#include <string_view>\nnamespace sphase {\n"
    "namespace {\nconstexpr char kBytes[] = {\n${bytes}};\n}\n"
    "extern const std::string_view ${name}, ${name}Sha256;\n"
    "const std::string_view ${name}(kBytes, sizeof kBytes);\n"
    "const std::string_view ${name}Sha256(\"${hash}\");\n}\n")
  file(COPY_FILE ${base}.new ${base}.cpp ONLY_IF_DIFFERENT)
  target_sources(${target} PRIVATE ${base}.cpp)
endfunction()
