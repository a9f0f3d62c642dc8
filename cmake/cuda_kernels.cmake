# CUDA's kernels as functions of the host, for the tests, with a shim instead of the CUDA runtime:
# needs neither a toolkit nor a GPU. The plug-in may be built of the same sources beside it.
file(GLOB cuda_shim CONFIGURE_DEPENDS tests/shim/cuda/*.cpp)
file(GLOB cuda_trials CONFIGURE_DEPENDS tests/shim/cuda/*.cu)
set(cuda_kernel_script ${CMAKE_CURRENT_SOURCE_DIR}/cmake/cuda_kernel_source.cmake)
set(cuda_kernel_sources)
foreach(source IN LISTS cuda_sources cuda_trials)
  get_filename_component(name ${source} NAME_WE)
  if(name STREQUAL "backend_cuda" OR name STREQUAL "cublaslt_library")
    continue()  # the driver and the vendor's library: no kernels of ours
  endif()
  set(translated ${CMAKE_CURRENT_BINARY_DIR}/cuda_kernels/${name}.cpp)
  add_custom_command(
    OUTPUT ${translated}
    COMMAND ${CMAKE_COMMAND} -DSOURCE=${source} -DOUT=${translated} -P ${cuda_kernel_script}
    DEPENDS ${source} ${cuda_kernel_script}
    VERBATIM)
  list(APPEND cuda_kernel_sources ${translated})
endforeach()

# Headers are compiled as they are: shared memory of theirs would begin with what the last block left.
file(GLOB cuda_headers CONFIGURE_DEPENDS cuda/*.cuh)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${cuda_headers})
foreach(header IN LISTS cuda_headers)
  file(READ ${header} text)
  string(REGEX REPLACE "//[^\n]*" "" code "${text}")
  if(code MATCHES "__shared__")
    message(FATAL_ERROR "${header}: declares shared memory, but only .cu files are translated for "
      "the shim (cmake/cuda_kernel_source.cmake): declare it in the kernel and hand it over")
  endif()
endforeach()

add_library(millrace_cuda_kernels OBJECT ${cuda_kernel_sources} ${cuda_shim})
# The shim's first: its headers stand for those of the toolkit, and for cuda/tensor_core.cuh.
target_include_directories(millrace_cuda_kernels PUBLIC tests/shim/cuda tests/shim cuda)
# What nvcc knows or proves and g++ does not: unrolling, and that a register is written first.
target_compile_options(millrace_cuda_kernels PRIVATE ${millrace_warnings} -Wno-unknown-pragmas
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized> $<$<CONFIG:RelWithDebInfo>:-O1>)
target_link_libraries(millrace_cuda_kernels PUBLIC millrace_objects)
