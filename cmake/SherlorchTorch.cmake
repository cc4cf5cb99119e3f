# Finds the torch to build or link against, without find_package(Torch): its config file stops with an error where torch
# was built for CUDA and the CUDA toolkit is not installed, and nothing here needs the toolkit.
#
# Used by the build and, installed beside sherlorchConfig.cmake, by programs that use sherlorch.

# sherlorch_locate_torch([HINT directory...])
#
# Defines the imported target sherlorch::torch and, in the caller's scope, SHERLORCH_TORCH_DIR (the folder that holds
# torch's include/ and lib/) and SHERLORCH_TORCH_VERSION ("2.13.0"; what is in SHERLORCH_TORCH_VERSION already, such as
# "2.13.0+cpu", stays). Looks at, in this order: SHERLORCH_TORCH_DIR, an earlier find_package(Torch), Torch_DIR, the
# hints, CMAKE_PREFIX_PATH. On failure sets sherlorch_torch_error to one sentence, else to "".
function(sherlorch_locate_torch)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "HINT")
  set(candidates ${SHERLORCH_TORCH_DIR} ${TORCH_INSTALL_PREFIX})
  if(Torch_DIR)
    list(APPEND candidates ${Torch_DIR}/../../..)
  endif()
  list(APPEND candidates ${arg_HINT})
  # torch.utils.cmake_prefix_path is torch/share/cmake; a libtorch archive is given by its top folder.
  foreach(prefix IN LISTS CMAKE_PREFIX_PATH)
    list(APPEND candidates ${prefix} ${prefix}/../..)
  endforeach()

  set(root)
  foreach(candidate IN LISTS candidates)
    get_filename_component(candidate ${candidate} ABSOLUTE)
    if(EXISTS ${candidate}/include/torch/headeronly/version.h AND EXISTS ${candidate}/lib/libtorch_cpu.so)
      set(root ${candidate})
      break()
    endif()
  endforeach()
  if(NOT root)
    set(sherlorch_torch_error
        "sherlorch found no torch: pass -DCMAKE_PREFIX_PATH=$(python -c 'import torch; print(torch.utils.cmake_prefix_path)')."
        PARENT_SCOPE)
    return()
  endif()

  file(STRINGS ${root}/include/torch/headeronly/version.h lines REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
  string(REGEX MATCHALL "[0-9]+" numbers "${lines}")
  list(JOIN numbers "." version)
  if(NOT "${SHERLORCH_TORCH_VERSION}" MATCHES "^${version}([^0-9]|$)")
    set(SHERLORCH_TORCH_VERSION ${version} PARENT_SCOPE)
  endif()
  set(SHERLORCH_TORCH_DIR ${root} PARENT_SCOPE)
  set(sherlorch_torch_error "" PARENT_SCOPE)

  if(NOT TARGET sherlorch::torch)
    add_library(sherlorch::torch INTERFACE IMPORTED GLOBAL)
    set_target_properties(
      sherlorch::torch
      PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${root}/include;${root}/include/torch/csrc/api/include"
                 INTERFACE_COMPILE_FEATURES cxx_std_20
                 # libtorch.so has no symbols of its own: it brings in the devices, so it must not be dropped.
                 INTERFACE_LINK_LIBRARIES
                 "-Wl,--push-state,--no-as-needed,${root}/lib/libtorch.so,--pop-state;${root}/lib/libtorch_cpu.so;${root}/lib/libc10.so")
  endif()
endfunction()
