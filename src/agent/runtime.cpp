// What the C++ runtime library would bring: allocation and the functions that header-only
// containers call when an invariant breaks. The agent has no exceptions; it dies loudly.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cstddef>
#include <memory>
#include <new>

namespace {
[[noreturn]] void die(const char* why) {
  [[maybe_unused]] ssize_t ignored = write(2, why, strlen(why));
  abort();
}
void* allocate(size_t size) {
  void* memory = malloc(size);
  if (memory == nullptr) die("atoll-agent: out of memory\n");
  return memory;
}
}  // namespace

namespace std {
void __throw_length_error(const char*) { die("atoll-agent: length error\n"); }
void __throw_logic_error(const char*) { die("atoll-agent: logic error\n"); }
void __throw_out_of_range_fmt(const char*, ...) { die("atoll-agent: out of range\n"); }
void __throw_bad_alloc() { die("atoll-agent: bad alloc\n"); }
void __throw_bad_array_new_length() { die("atoll-agent: bad array length\n"); }
void __throw_bad_function_call() { die("atoll-agent: empty function\n"); }
bool _Sp_make_shared_tag::_S_eq(const type_info&) noexcept { return false; }  // only with RTTI
}  // namespace std

void* operator new(size_t size) { return allocate(size); }
void* operator new[](size_t size) { return allocate(size); }
void operator delete(void* memory) noexcept { free(memory); }
void operator delete[](void* memory) noexcept { free(memory); }
void operator delete(void* memory, size_t) noexcept { free(memory); }
void operator delete[](void* memory, size_t) noexcept { free(memory); }
extern "C" void __cxa_pure_virtual() { die("atoll-agent: pure virtual call\n"); }
extern "C" int __cxa_atexit(void (*)(void*), void*, void*) { return 0; }  // PID 1 never exits
extern "C" void* __dso_handle = nullptr;
