# Everything that the adapter and the bindings need to know of the torch they are built for, and where they go.
include(SherlorchTorch)

# The range of torch that this source is written for stands in pyproject.toml alone.
file(STRINGS ${PROJECT_SOURCE_DIR}/pyproject.toml torch_range REGEX "\"torch>=[0-9.]+,<[0-9.]+\"")
string(REGEX REPLACE ".*\"torch>=([0-9.]+),<([0-9.]+)\".*" "\\1" SHERLORCH_TORCH_MIN "${torch_range}")
string(REGEX REPLACE ".*\"torch>=([0-9.]+),<([0-9.]+)\".*" "\\2" SHERLORCH_TORCH_BELOW "${torch_range}")

sherlorch_locate_torch()
if(sherlorch_torch_error)
  message(FATAL_ERROR "${sherlorch_torch_error}")
endif()
string(REGEX MATCH "^[0-9]+\\.[0-9]+\\.[0-9]+" torch_release "${SHERLORCH_TORCH_VERSION}")
if(torch_release VERSION_LESS SHERLORCH_TORCH_MIN OR NOT torch_release VERSION_LESS SHERLORCH_TORCH_BELOW)
  message(FATAL_ERROR "sherlorch ${PROJECT_VERSION} needs torch >=${SHERLORCH_TORCH_MIN},<${SHERLORCH_TORCH_BELOW}, "
                      "not ${SHERLORCH_TORCH_VERSION} in ${SHERLORCH_TORCH_DIR}.")
endif()
message(STATUS "torch ${SHERLORCH_TORCH_VERSION} in ${SHERLORCH_TORCH_DIR}")

# In a wheel the package folder is the prefix, and torch lies beside it in site-packages.
include(GNUInstallDirs)
if(SHERLORCH_IN_WHEEL)
  set(SHERLORCH_LIB_DIR sherlorch/lib)
  set(SHERLORCH_INCLUDE_DIR sherlorch/include)
  set(SHERLORCH_CMAKE_DIR sherlorch/share/cmake/sherlorch)
  set(SHERLORCH_LIB_RPATH "$ORIGIN/../../torch/lib")
  set(SHERLORCH_TORCH_HINT "\${CMAKE_CURRENT_LIST_DIR}/../../../../torch")
else()
  set(SHERLORCH_LIB_DIR ${CMAKE_INSTALL_LIBDIR})
  set(SHERLORCH_INCLUDE_DIR ${CMAKE_INSTALL_INCLUDEDIR})
  set(SHERLORCH_CMAKE_DIR share/cmake/sherlorch)
  set(SHERLORCH_LIB_RPATH "${SHERLORCH_TORCH_DIR}/lib")
  set(SHERLORCH_TORCH_HINT "${SHERLORCH_TORCH_DIR}")
endif()

# What code that includes torch's headers is compiled with. NDEBUG always: torch's own release builds have it, and some
# of its headers lay out or assert on members by it.
add_library(sherlorch_torch_flags INTERFACE)
target_compile_definitions(
  sherlorch_torch_flags INTERFACE NDEBUG SHERLORCH_TORCH_VERSION="${SHERLORCH_TORCH_VERSION}"
                                  SHERLORCH_VERSION="${PROJECT_VERSION}")
target_link_libraries(sherlorch_torch_flags INTERFACE sherlorch_flags)
