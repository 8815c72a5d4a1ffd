# The agent is PID 1 of every sandbox. It is static, on musl, without libstdc++: glibc start-up
# costs about half a millisecond on virtual machines where cpuid traps, and every page the agent
# touches is paid for once per sandbox. libstdc++'s headers work on musl once the few glibc names
# they mention are defined (src/agent/musl_compat.h).
set(ATOLL_AGENT_DIR ${CMAKE_BINARY_DIR}/agent)
execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-resource-dir OUTPUT_VARIABLE CLANG_RESOURCES
                OUTPUT_STRIP_TRAILING_WHITESPACE)
execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-libgcc-file-name OUTPUT_VARIABLE LIBGCC
                OUTPUT_STRIP_TRAILING_WHITESPACE)
set(TRIPLE ${CMAKE_SYSTEM_PROCESSOR}-linux)
file(MAKE_DIRECTORY ${ATOLL_AGENT_DIR}/include)
foreach(pair linux=/usr/include/linux asm=/usr/include/${TRIPLE}-gnu/asm
        asm-generic=/usr/include/asm-generic tl=/usr/include/tl)
  string(REPLACE "=" ";" pair ${pair})
  list(GET pair 0 link)
  list(GET pair 1 target)
  file(CREATE_LINK ${target} ${ATOLL_AGENT_DIR}/include/${link} SYMBOLIC)
endforeach()

set(AGENT_FLAGS
  -std=c++20 -Os -fno-exceptions -fno-rtti -fno-pic -fno-stack-protector -U_FORTIFY_SOURCE
  -fno-asynchronous-unwind-tables -fno-threadsafe-statics -ffunction-sections -fdata-sections
  -Wall -Wextra -Werror -Wshadow -D_GLIBCXX_EXTERN_TEMPLATE=0 -D_GNU_SOURCE
  -nostdinc -nostdinc++ -include ${PROJECT_SOURCE_DIR}/src/agent/musl_compat.h
  -isystem /usr/include/c++/12 -isystem /usr/include/${TRIPLE}-gnu/c++/12
  -isystem /usr/include/${TRIPLE}-musl -isystem ${CLANG_RESOURCES}/include
  -isystem ${ATOLL_AGENT_DIR}/include -I${PROJECT_SOURCE_DIR}/src -I${PROJECT_SOURCE_DIR}/include)
set(MUSL_LIB /usr/lib/${TRIPLE}-musl)

file(GLOB AGENT_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/agent/*.cpp)
list(FILTER AGENT_SOURCES EXCLUDE REGEX "_test\\.cpp$")
file(GLOB AGENT_WIRE CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/wire/*.cpp)
list(FILTER AGENT_WIRE EXCLUDE REGEX "_test\\.cpp$")
list(APPEND AGENT_SOURCES ${AGENT_WIRE} ${PROJECT_SOURCE_DIR}/src/base/error.cpp)

set(AGENT_OBJECTS)
foreach(source ${AGENT_SOURCES})
  file(RELATIVE_PATH object ${PROJECT_SOURCE_DIR}/src ${source})
  string(REPLACE "/" "_" object ${object})
  set(object ${ATOLL_AGENT_DIR}/${object}.o)
  add_custom_command(OUTPUT ${object}
    COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} ${CMAKE_CXX_COMPILER} ${AGENT_FLAGS} -MD -MF ${object}.d
            -c ${source} -o ${object}
    DEPENDS ${source} ${PROJECT_SOURCE_DIR}/src/agent/musl_compat.h DEPFILE ${object}.d
    COMMENT "agent: ${source}" VERBATIM)
  list(APPEND AGENT_OBJECTS ${object})
endforeach()
set(ATOLL_AGENT_BINARY ${ATOLL_AGENT_DIR}/atoll-agent)
add_custom_command(OUTPUT ${ATOLL_AGENT_BINARY}
  COMMAND ${CMAKE_CXX_COMPILER} -nostdlib -static -fuse-ld=mold -Wl,--gc-sections -Wl,-s
          -Wl,-z,noexecstack ${MUSL_LIB}/crt1.o ${MUSL_LIB}/crti.o ${AGENT_OBJECTS}
          -L${MUSL_LIB} -lc ${LIBGCC} ${MUSL_LIB}/crtn.o -o ${ATOLL_AGENT_BINARY}
  DEPENDS ${AGENT_OBJECTS} VERBATIM)

# The agent travels inside the atoll binary.
set(AGENT_BLOB ${ATOLL_AGENT_DIR}/agent_blob.S)
file(WRITE ${AGENT_BLOB}
"    .section .rodata
    .global atoll_agent_begin
    .global atoll_agent_end
    .balign 16
atoll_agent_begin:
    .incbin \"${ATOLL_AGENT_BINARY}\"
atoll_agent_end:
    .section .note.GNU-stack,\"\",@progbits
")
enable_language(ASM)
set_source_files_properties(${AGENT_BLOB} PROPERTIES OBJECT_DEPENDS ${ATOLL_AGENT_BINARY})
add_library(atoll_agent_blob STATIC ${AGENT_BLOB})
set_target_properties(atoll_agent_blob PROPERTIES LINKER_LANGUAGE CXX)
