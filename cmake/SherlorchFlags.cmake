# What every target of this project is compiled with.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 11)
  message(FATAL_ERROR "sherlorch needs g++ 11 or newer for C++20, not ${CMAKE_CXX_COMPILER_VERSION}: "
                      "set CXX to a newer compiler.")
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
  message(FATAL_ERROR "sherlorch needs clang 14 or newer for C++20, not ${CMAKE_CXX_COMPILER_VERSION}: "
                      "set CXX to a newer compiler.")
endif()

string(REGEX MATCH "^(x86_64|AMD64)$" SHERLORCH_X86_64 "${CMAKE_SYSTEM_PROCESSOR}")
if(SHERLORCH_X86_64)
  set(SHERLORCH_X86_64 TRUE)
endif()

add_library(sherlorch_flags INTERFACE)
target_compile_options(
  sherlorch_flags
  INTERFACE -Wall -Wextra -Wpedantic -Wshadow $<$<BOOL:${SHERLORCH_WERROR}>:-Werror>
            # g++ 12 warns falsely of std::string's own operator+ (its bug 105651).
            $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
            # Within the library a call to one of its own functions may be inlined and skips the PLT.
            -fno-semantic-interposition
            # g++ clears small structures with string instructions, which cost some 30 cycles each, unless it is told
            # of a processor on which they do. That changes no instruction set.
            $<$<AND:$<CXX_COMPILER_ID:GNU>,$<BOOL:${SHERLORCH_X86_64}>>:-mtune=skylake>)

if(SHERLORCH_SANITIZE)
  target_compile_options(sherlorch_flags INTERFACE -fsanitize=${SHERLORCH_SANITIZE} -fno-omit-frame-pointer
                                                   -fno-sanitize-recover=all)
  target_link_options(sherlorch_flags INTERFACE -fsanitize=${SHERLORCH_SANITIZE})
endif()

# sherlorch_add_gtest(target): runs the binary as ctest tests, in two shards so that `ctest -j2` uses both cores.
function(sherlorch_add_gtest target)
  set(shards 2)
  math(EXPR last "${shards} - 1")
  foreach(shard RANGE ${last})
    add_test(NAME ${target}.${shard} COMMAND ${target} --gtest_brief=1)
    set_tests_properties(${target}.${shard} PROPERTIES ENVIRONMENT
                                                       "GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${shard}")
  endforeach()
endfunction()
