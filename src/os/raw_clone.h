// clone3 with a function for the child to run on a stack of its own. Header-only and free of libc
// state, so that the agent (musl) and the launcher (glibc) can both call it.
#pragma once

#include <linux/sched.h>
#include <sys/syscall.h>

#include <cstddef>
#include <cstdint>

namespace atl::os {

// The child calls entry(argument) and must never return from it. With CLONE_VM it shares our
// memory: only raw system calls, no allocation, no libc state. Returns as clone3 does, with
// -errno on failure.
inline long clone3_call(clone_args& args, void (*entry)(void*), void* argument) {
#if defined(__x86_64__)
  long result;
  register void* child_argument asm("r8") = argument;
  register void (*child_entry)(void*) asm("r9") = entry;
  asm volatile(
      "syscall\n"
      "test %%rax, %%rax\n"
      "jnz 1f\n"
      "xor %%ebp, %%ebp\n"
      "mov %%r8, %%rdi\n"
      "call *%%r9\n"
      "ud2\n"
      "1:\n"
      : "=a"(result)
      : "0"(static_cast<long>(SYS_clone3)), "D"(&args), "S"(sizeof args), "r"(child_argument),
        "r"(child_entry)
      : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long number asm("x8") = SYS_clone3;
  register long first asm("x0") = reinterpret_cast<long>(&args);
  register long second asm("x1") = sizeof args;
  register void* child_argument asm("x3") = argument;
  register void (*child_entry)(void*) asm("x4") = entry;
  asm volatile(
      "svc #0\n"
      "cbnz x0, 1f\n"
      "mov x29, #0\n"
      "mov x0, x3\n"
      "blr x4\n"
      "brk #1\n"
      "1:\n"
      : "+r"(first)
      : "r"(number), "r"(second), "r"(child_argument), "r"(child_entry)
      : "memory", "cc");
  return first;
#else
#error "no clone3_call for this architecture"
#endif
}

inline uint64_t pointer_value(const void* pointer) {
  return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(pointer));
}

}  // namespace atl::os
