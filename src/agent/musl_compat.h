// Included before everything in the agent: lets libstdc++'s header-only parts compile on musl.
// libstdc++ was configured for glibc and mentions these names; none of the code behind them
// (locales, threads) is used.
#pragma once

#define __GLIBC_PREREQ(major, minor) 0
#define __locale_t locale_t
enum {
  _ISupper = 1,
  _ISlower = 2,
  _ISalpha = 4,
  _ISdigit = 8,
  _ISxdigit = 16,
  _ISspace = 32,
  _ISprint = 64,
  _ISgraph = 128,
  _ISblank = 256,
  _IScntrl = 512,
  _ISpunct = 1024,
  _ISalnum = 2048
};
#include <bits/c++config.h>
#undef _GLIBCXX_HAS_GTHREADS
#undef _GLIBCXX_USE_PTHREAD_COND_CLOCKWAIT
