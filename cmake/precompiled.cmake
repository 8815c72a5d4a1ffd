# Boost and the standard library are most of what the compiler reads: parsed once, an empty build
# directory is full in about half the time.
file(WRITE ${CMAKE_BINARY_DIR}/precompiled.cpp "")
add_library(atoll_precompiled OBJECT ${CMAKE_BINARY_DIR}/precompiled.cpp)
target_link_libraries(atoll_precompiled PUBLIC atoll_options)
target_precompile_headers(atoll_precompiled PRIVATE ${CMAKE_CURRENT_LIST_DIR}/precompiled.h)
# So that a compiler cache may hold what was compiled with it.
target_compile_options(atoll_options INTERFACE "SHELL:-Xclang -fno-pch-timestamp")

# Test programs: their own code is compiled without optimisation, which nobody would notice at run
# time; what they test is the optimised libraries.
function(atoll_test_program name)
  target_compile_options(${name} PRIVATE -O0 -U_FORTIFY_SOURCE)
  target_precompile_headers(${name} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/precompiled.h
                            <gtest/gtest.h> <gmock/gmock.h>)
endfunction()
