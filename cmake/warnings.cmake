# Every target of ours is compiled with these; third-party headers are SYSTEM and exempt.
add_library(atoll_options INTERFACE)
target_compile_features(atoll_options INTERFACE cxx_std_20)
target_compile_options(atoll_options INTERFACE
  -Wall -Wextra -Wpedantic -Werror -Wshadow -Wnon-virtual-dtor -Wconversion -Wno-sign-conversion
  -Wno-gnu-statement-expression -Wno-c99-designator -Wno-missing-field-initializers
  -fstack-protector-strong -fno-omit-frame-pointer)
target_compile_definitions(atoll_options INTERFACE
  _GLIBCXX_ASSERTIONS BOOST_ASIO_SEPARATE_COMPILATION BOOST_ASIO_NO_DEPRECATED BOOST_ASIO_RECYCLING_ALLOCATOR_CACHE_SIZE=8 BOOST_JSON_NO_LIB FMT_HEADER_ONLY)
target_include_directories(atoll_options INTERFACE
  ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)

if(ATOLL_FUZZ)
  # Without this in the libraries the fuzzer is blind to the code it is meant to explore.
  target_compile_options(atoll_options INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(ATOLL_SANITIZE)
  target_compile_options(atoll_options INTERFACE -fsanitize=${ATOLL_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(atoll_options INTERFACE -fsanitize=${ATOLL_SANITIZE})
else()
  target_compile_options(atoll_options INTERFACE $<$<CONFIG:Release>:-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2>)
endif()
target_link_options(atoll_options INTERFACE -fuse-ld=mold -Wl,-z,now -Wl,-z,relro)
