# The Metal plug-in on a Mac. Elsewhere its modules are built for the tests alone, with the fake
# device of tests/shim instead of Apple's frameworks: clang, for blocks, and GNUstep's Foundation.
file(GLOB metal_modules CONFIGURE_DEPENDS metal/*.mm)
file(GLOB metal_kernels CONFIGURE_DEPENDS metal/*.metal)
file(GLOB metal_plans CONFIGURE_DEPENDS metal/*.cpp)
file(GLOB metal_headers CONFIGURE_DEPENDS metal/*.h cpp/*.h)
set(has_fake_metal FALSE)

set(metal_source ${CMAKE_CURRENT_BINARY_DIR}/metal_files.cpp)
add_custom_command(
  OUTPUT ${metal_source}
  COMMAND ${CMAKE_COMMAND} "-DSOURCES=${metal_kernels}"
          "-DINCLUDES=${CMAKE_CURRENT_SOURCE_DIR}/metal;${CMAKE_CURRENT_SOURCE_DIR}/cpp"
          "-DOUT=${metal_source}" -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/metal_source.cmake
  DEPENDS ${metal_kernels} ${metal_headers} cmake/metal_source.cmake
  VERBATIM)

set(metal_obstacle "")
if(MILLRACE_METAL STREQUAL "OFF")
  set(metal_obstacle "MILLRACE_METAL=OFF")
elseif(APPLE)
  enable_language(OBJCXX)
  add_library(millrace_metal MODULE ${metal_modules} ${metal_plans} ${metal_source})
  target_include_directories(millrace_metal PRIVATE cpp metal)
  target_compile_options(millrace_metal PRIVATE ${millrace_warnings})
  set_target_properties(millrace_metal PROPERTIES OBJCXX_STANDARD 17 OBJCXX_STANDARD_REQUIRED ON
    OBJCXX_EXTENSIONS OFF OBJCXX_VISIBILITY_PRESET hidden SUFFIX ".dylib")
  target_link_libraries(millrace_metal PRIVATE "-framework Foundation" "-framework Metal"
    "-framework CoreGraphics")  # without it a command-line program finds no default device
  list(APPEND plugins millrace_metal)
  message(STATUS "Metal plug-in: built")
elseif(NOT MILLRACE_BUILD_TESTS)
  set(metal_obstacle "not a Mac, and no tests are built")
elseif(MILLRACE_SANITIZE)
  set(metal_obstacle "its fake device is not built with a sanitizer")
else()
  find_program(METAL_CLANG clang++)
  find_path(GNUSTEP_INCLUDES Foundation/Foundation.h PATHS /usr/include/GNUstep)
  find_path(BLOCKS_INCLUDES Block.h)
  find_path(OBJC_INCLUDES objc/runtime.h
    PATHS /usr/lib/gcc/${CMAKE_CXX_LIBRARY_ARCHITECTURE}/${CMAKE_CXX_COMPILER_VERSION_MAJOR}/include
          /usr/lib/gcc/${CMAKE_CXX_LIBRARY_ARCHITECTURE}/12/include)
  find_library(GNUSTEP_BASE gnustep-base)
  find_library(BLOCKS_RUNTIME BlocksRuntime)
  find_library(OBJC_RUNTIME objc
    PATHS /usr/lib/gcc/${CMAKE_CXX_LIBRARY_ARCHITECTURE}/12)
  if(METAL_CLANG AND GNUSTEP_INCLUDES AND BLOCKS_INCLUDES AND OBJC_INCLUDES AND GNUSTEP_BASE AND
     BLOCKS_RUNTIME AND OBJC_RUNTIME)
    set(CMAKE_OBJCXX_COMPILER ${METAL_CLANG})
    set(prologue "${CMAKE_PCH_PROLOGUE}")
    enable_language(OBJCXX)
    set(CMAKE_PCH_PROLOGUE "${prologue}")  # clang's is not for the C++ compiler
    set(has_fake_metal TRUE)
    message(STATUS "Metal plug-in: not a Mac; its modules are built for the tests, with a fake device")
  else()
    set(metal_obstacle "not a Mac; the tests of its modules want clang and GNUstep: tools/setup")
  endif()
endif()
if(metal_obstacle)
  if(MILLRACE_METAL STREQUAL "ON")
    message(FATAL_ERROR "MILLRACE_METAL=ON, but ${metal_obstacle}")
  endif()
  message(STATUS "Metal plug-in: not built (${metal_obstacle})")
endif()

# What metal/ compiles with here: Debian's Objective-C runtime is gcc's, GNUstep is built for it.
set(fake_metal_options -fobjc-runtime=gcc -fblocks -fno-objc-arc -fobjc-exceptions
  -fconstant-string-class=NSConstantString -DGNUSTEP -DGNUSTEP_BASE_LIBRARY=1 -DGNU_RUNTIME=1
  -D_NATIVE_OBJC_EXCEPTIONS)

function(add_fake_metal)
  file(GLOB fake_modules CONFIGURE_DEPENDS tests/shim/*.mm)
  add_library(millrace_metal_fake MODULE ${metal_modules} ${fake_modules}
    $<TARGET_OBJECTS:millrace_metal_kernels>)
  target_include_directories(millrace_metal_fake PRIVATE cpp metal tests/shim)
  target_include_directories(millrace_metal_fake SYSTEM PRIVATE tests/shim ${GNUSTEP_INCLUDES}
    ${OBJC_INCLUDES} ${BLOCKS_INCLUDES})
  target_compile_options(millrace_metal_fake PRIVATE ${millrace_warnings}
    "$<$<COMPILE_LANGUAGE:OBJCXX>:${fake_metal_options}>")
  set_target_properties(millrace_metal_fake PROPERTIES OBJCXX_STANDARD 17
    OBJCXX_STANDARD_REQUIRED ON OBJCXX_EXTENSIONS OFF OBJCXX_VISIBILITY_PRESET hidden)
  # GNUstep brings functions of blocks, too, which do not go with clang's: these must come first.
  target_link_libraries(millrace_metal_fake PRIVATE ${BLOCKS_RUNTIME} ${GNUSTEP_BASE}
    ${OBJC_RUNTIME} Threads::Threads)
  target_link_options(millrace_metal_fake PRIVATE -Wl,-z,defs)
endfunction()
