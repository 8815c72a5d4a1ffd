// Runs inside a sandbox and measures what the kernel alone takes for a command there:
// fork, execve of /bin/true, wait.
//   fork_probe rounds N            one unmeasured round, then N; microseconds of each, a line each
//   fork_probe rate PROCESSES MS   rounds per second of so many processes at once
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void run_true(void) {
  static char* const argv[] = {"/bin/true", NULL};
  static char* const envp[] = {"PATH=/usr/bin:/bin", NULL};
  pid_t child = fork();
  if (child == 0) {
    execve(argv[0], argv, envp);
    _exit(127);
  }
  int status = -1;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
    fprintf(stderr, "fork_probe: fork, exec or wait failed\n");
    exit(1);
  }
}

static int measure_rounds(int rounds) {
  double* times = calloc((size_t)rounds, sizeof *times);
  if (times == NULL) return 1;
  run_true();
  for (int i = 0; i < rounds; i++) {
    double begin = now_us();
    run_true();
    times[i] = now_us() - begin;
  }
  for (int i = 0; i < rounds; i++) printf("%.1f\n", times[i]);
  return 0;
}

static int measure_rate(int processes, double duration_us) {
  long* counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (counts == MAP_FAILED || processes < 1 || processes > 256) return 1;
  double begin = now_us(), end = begin + duration_us;
  for (int i = 0; i < processes; i++) {
    pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) {
      while (now_us() < end) {
        run_true();
        counts[i]++;
      }
      _exit(0);
    }
  }
  int failed = 0, status;
  while (wait(&status) > 0) failed |= status;
  double seconds = (now_us() - begin) / 1e6;
  long total = 0;
  for (int i = 0; i < processes; i++) total += counts[i];
  printf("%.1f\n", (double)total / seconds);
  return failed != 0;
}

int main(int argc, char** argv) {
  if (argc == 3 && strcmp(argv[1], "rounds") == 0) return measure_rounds(atoi(argv[2]));
  if (argc == 4 && strcmp(argv[1], "rate") == 0) {
    return measure_rate(atoi(argv[2]), atof(argv[3]) * 1000);
  }
  fprintf(stderr, "usage: fork_probe rounds N | rate PROCESSES MS\n");
  return 2;
}
