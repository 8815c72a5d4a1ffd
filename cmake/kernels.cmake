# The programs of code kernels travel inside the atoll binary (src/code/launch.cpp) and reach a sandbox
# through the input of the process that runs them. sucrase, which strips types, comes from npm
# (./dev setup); without it there are kernels for all languages but TypeScript.
set(KERNEL_DIR ${CMAKE_BINARY_DIR}/kernels)
file(MAKE_DIRECTORY ${KERNEL_DIR})
set(KERNEL_SOURCES ${PROJECT_SOURCE_DIR}/src/kernels)
set(ATOLL_SUCRASE_VERSION 3.35.1)
set(ATOLL_CACHE_DIR "$ENV{ATOLL_CACHE}")
if(NOT ATOLL_CACHE_DIR)
  set(ATOLL_CACHE_DIR /var/cache/atoll)
endif()
set(ATOLL_SUCRASE_DIR ${ATOLL_CACHE_DIR}/sucrase-${ATOLL_SUCRASE_VERSION} CACHE PATH
    "Where npm has installed sucrase: a directory with node_modules in it")

set(KERNEL_LIBRARY ${KERNEL_DIR}/sucrase.js)
if(EXISTS ${ATOLL_SUCRASE_DIR}/node_modules/sucrase/dist/index.js)
  add_custom_command(OUTPUT ${KERNEL_LIBRARY}
    COMMAND python3 ${PROJECT_SOURCE_DIR}/cmake/bundle_sucrase.py ${ATOLL_SUCRASE_DIR}/node_modules
            ${KERNEL_SOURCES}/sucrase_entry.js ${KERNEL_LIBRARY}
    DEPENDS ${PROJECT_SOURCE_DIR}/cmake/bundle_sucrase.py ${KERNEL_SOURCES}/sucrase_entry.js VERBATIM)
else()
  message(WARNING "${ATOLL_SUCRASE_DIR} is missing (./dev setup): code kernels will not run TypeScript")
  file(WRITE ${KERNEL_LIBRARY} "null")
endif()

set(KERNEL_BLOB ${KERNEL_DIR}/kernels.S)
set(KERNEL_TEXT "    .section .rodata\n")
foreach(name python branch node bash)
  string(APPEND KERNEL_TEXT "    .global atoll_kernel_${name}_begin\n    .global atoll_kernel_${name}_end\natoll_kernel_${name}_begin:\n")
  if(name STREQUAL node)
    string(APPEND KERNEL_TEXT "    .ascii \"const sucrase = \"\n    .incbin \"${KERNEL_LIBRARY}\"\n    .ascii \";\\n\"\n    .incbin \"${KERNEL_SOURCES}/node.js\"\n")
  elseif(name STREQUAL bash)
    string(APPEND KERNEL_TEXT "    .incbin \"${KERNEL_SOURCES}/bash.sh\"\n")
  else()
    string(APPEND KERNEL_TEXT "    .incbin \"${KERNEL_SOURCES}/${name}.py\"\n")
  endif()
  string(APPEND KERNEL_TEXT "atoll_kernel_${name}_end:\n")
endforeach()
string(APPEND KERNEL_TEXT "    .section .note.GNU-stack,\"\",@progbits\n")
file(CONFIGURE OUTPUT ${KERNEL_BLOB} CONTENT "${KERNEL_TEXT}" @ONLY)
set_source_files_properties(${KERNEL_BLOB} PROPERTIES OBJECT_DEPENDS
  "${KERNEL_LIBRARY};${KERNEL_SOURCES}/python.py;${KERNEL_SOURCES}/branch.py;${KERNEL_SOURCES}/node.js;${KERNEL_SOURCES}/bash.sh")
add_library(atoll_kernels_blob STATIC ${KERNEL_BLOB})
set_target_properties(atoll_kernels_blob PROPERTIES LINKER_LANGUAGE CXX)
