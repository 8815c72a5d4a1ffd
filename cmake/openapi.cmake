# The description of the HTTP API travels inside the atoll binary, as JSON.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
set(OPENAPI_JSON ${CMAKE_BINARY_DIR}/openapi.json)
set(OPENAPI_YAML ${PROJECT_SOURCE_DIR}/docs/api/openapi.yaml)
add_custom_command(OUTPUT ${OPENAPI_JSON}
  COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/cmake/openapi.py ${OPENAPI_YAML} ${OPENAPI_JSON}
  DEPENDS ${OPENAPI_YAML} ${PROJECT_SOURCE_DIR}/cmake/openapi.py VERBATIM)

set(OPENAPI_BLOB ${CMAKE_BINARY_DIR}/openapi_blob.S)
file(WRITE ${OPENAPI_BLOB}
"    .section .rodata
    .global atoll_openapi_begin
    .global atoll_openapi_end
atoll_openapi_begin:
    .incbin \"${OPENAPI_JSON}\"
atoll_openapi_end:
    .section .note.GNU-stack,\"\",@progbits
")
set_source_files_properties(${OPENAPI_BLOB} PROPERTIES OBJECT_DEPENDS ${OPENAPI_JSON})
add_library(atoll_openapi_blob STATIC ${OPENAPI_BLOB})
set_target_properties(atoll_openapi_blob PROPERTIES LINKER_LANGUAGE CXX)
