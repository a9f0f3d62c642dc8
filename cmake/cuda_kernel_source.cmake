cmake_minimum_required(VERSION 3.25)
# Writes OUT: the text of SOURCE, a .cu file, as C++ for the shim of tests/shim/cuda. Every block of
# a kernel finds its shared memory new, so each declaration tells the shim where it is.
file(READ "${SOURCE}" text)
string(REGEX REPLACE "//[^\n]*" "" code "${text}")
string(REGEX MATCHALL "__shared__" declared "${code}")
string(REGEX REPLACE
  "extern __shared__ ([A-Za-z0-9_]+) ([a-z_]+)\\[\\];"
  "\\1* const \\2 = static_cast<\\1*>(device_shim::dynamic_memory);"
  text "${text}")
string(REGEX REPLACE
  "(__shared__ [A-Za-z0-9_:<> ]+ ([a-z_]+)(\\[[^;]*\\])?;)"
  "\\1 static thread_local uint64_t \\2_block; device_shim::shared_memory(\\2, \\2_block);"
  text "${text}")
string(REGEX REPLACE "//[^\n]*" "" code "${text}")
string(REGEX MATCHALL "device_shim::(shared|dynamic)_memory" told "${code}")
list(LENGTH declared declarations)
list(LENGTH told translations)
if(NOT declarations EQUAL translations)
  message(FATAL_ERROR "${SOURCE}: of ${declarations} declarations of shared memory only "
    "${translations} were understood: one type, one name in small letters, its extents")
endif()
file(WRITE "${OUT}" "#line 1 \"${SOURCE}\"\n${text}")
