// System calls that touch nothing but registers: for code that shares its memory with another
// running process, where even errno is somebody else's. Returns -errno on failure.
#pragma once

#include <cstdint>
#include <type_traits>

namespace atl::os {

inline long raw_syscall6(long number, long a, long b, long c, long d, long e) {
#if defined(__x86_64__)
  long result;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  asm volatile("syscall"
               : "=a"(result)
               : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
               : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  asm volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory", "cc");
  return x0;
#else
#error "no raw_syscall for this architecture"
#endif
}

template <class T>
long as_register(T value) {
  if constexpr (std::is_pointer_v<T>) {
    return static_cast<long>(reinterpret_cast<intptr_t>(value));
  } else if constexpr (std::is_null_pointer_v<T>) {
    return 0;
  } else {
    return static_cast<long>(value);
  }
}

template <class A = long, class B = long, class C = long, class D = long, class E = long>
long raw_syscall(long number, A a = 0, B b = 0, C c = 0, D d = 0, E e = 0) {
  return raw_syscall6(number, as_register(a), as_register(b), as_register(c), as_register(d),
                      as_register(e));
}

}  // namespace atl::os
