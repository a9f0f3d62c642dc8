# Copies LIBRARIES and all that they need, but for the C and C++ runtimes, to OUT (stripped by STRIP,
# if given), and writes OUT/index: one line each, SHA-256, size and name.
file(GET_RUNTIME_DEPENDENCIES
  LIBRARIES ${LIBRARIES}
  RESOLVED_DEPENDENCIES_VAR found
  UNRESOLVED_DEPENDENCIES_VAR missing
  PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread|stdc\\+\\+|gcc_s|asan|ubsan|tsan)\\.so"
    "^/usr/lib/" "^/System/")  # the system's, as a Mac names it
if(missing)
  message(FATAL_ERROR "not found: ${missing}")
endif()

file(REMOVE_RECURSE ${OUT}.new)
file(MAKE_DIRECTORY ${OUT}.new)
foreach(library IN LISTS LIBRARIES found)
  get_filename_component(name "${library}" NAME)
  file(COPY_FILE "${library}" "${OUT}.new/${name}")
  if(STRIP)
    execute_process(COMMAND ${STRIP} --strip-unneeded "${OUT}.new/${name}"
      COMMAND_ERROR_IS_FATAL ANY)
  endif()
endforeach()

file(GLOB files RELATIVE ${OUT}.new ${OUT}.new/*)
list(SORT files)
set(index "")
foreach(name IN LISTS files)
  file(SHA256 "${OUT}.new/${name}" hash)
  file(SIZE "${OUT}.new/${name}" size)
  string(APPEND index "${hash} ${size} ${name}\n")
endforeach()
file(WRITE ${OUT}.new/index "${index}")
file(REMOVE_RECURSE ${OUT})
file(RENAME ${OUT}.new ${OUT})
