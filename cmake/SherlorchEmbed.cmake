# sherlorch_embed_text(TARGET target HEADER core/x/y.h NAMESPACE ns SYMBOL name files... [SYMBOL name files...])
#
# Adds to `target` a generated pair y.h and y.cpp that declares and defines, for each SYMBOL, a NUL-terminated
# `extern const char name[]` and its length without the NUL, `extern const std::size_t nameSize`. The files of one
# symbol are joined in the order given; none at all make an empty text. Text only: no NUL bytes.
set(_SHERLORCH_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_DIR}/embed_text.cmake)

function(sherlorch_embed_text)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "TARGET;HEADER;NAMESPACE" "")
  set(inputs)
  set(take_name FALSE)
  foreach(word IN LISTS arg_UNPARSED_ARGUMENTS)
    if(word STREQUAL "SYMBOL")
      set(take_name TRUE)
    elseif(take_name)
      set(take_name FALSE)
    else()
      list(APPEND inputs ${word})
    endif()
  endforeach()

  set(root ${PROJECT_BINARY_DIR}/generated)
  string(REGEX REPLACE "\\.h$" "" stem ${root}/${arg_HEADER})
  list(JOIN arg_UNPARSED_ARGUMENTS "|" symbols)
  add_custom_command(
    OUTPUT ${stem}.h ${stem}.cpp
    COMMAND ${CMAKE_COMMAND} -D "SYMBOLS=${symbols}" -D "NAMESPACE=${arg_NAMESPACE}" -D "HEADER=${arg_HEADER}"
            -D "STEM=${stem}" -P ${_SHERLORCH_EMBED_SCRIPT}
    DEPENDS ${inputs} ${_SHERLORCH_EMBED_SCRIPT}
    COMMENT "Embedding ${arg_HEADER}"
    VERBATIM)
  target_sources(${arg_TARGET} PRIVATE ${stem}.cpp ${stem}.h)
  # For tools that read sources without compiling them.
  if(NOT TARGET generated_sources)
    add_custom_target(generated_sources)
  endif()
  add_custom_target(${arg_TARGET}_text DEPENDS ${stem}.h)
  add_dependencies(generated_sources ${arg_TARGET}_text)
  target_include_directories(${arg_TARGET} PRIVATE ${root})
endfunction()
