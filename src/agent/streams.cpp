#include "agent/streams.h"

#include <fcntl.h>
#include <unistd.h>

namespace atl::agent {
namespace {

struct Pipe {
  UniqueFd read_end;
  UniqueFd write_end;
};

Result<Pipe> make_pipe() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return fail_errno("pipe2");
  return Pipe{.read_end = UniqueFd(fds[0]), .write_end = UniqueFd(fds[1])};
}

// Only our end: the command expects ordinary blocking streams.
void set_nonblocking(const UniqueFd& fd) { fcntl(fd.get(), F_SETFL, O_NONBLOCK); }

Result<Streams> open_terminal(const wire::ExecRequest& request, const Account& account) {
  ATOLL_ASSIGN(Pty pty, open_pty(request.cols, request.rows, account));
  Streams streams;
  // Input gets a descriptor of its own, so that it can be waited for on its own.
  streams.our_stdin.reset(fcntl(pty.master.get(), F_DUPFD_CLOEXEC, 3));
  streams.our_stdout = std::move(pty.master);
  streams.child_stdin.reset(fcntl(pty.slave.get(), F_DUPFD_CLOEXEC, 3));
  streams.child_stdout = std::move(pty.slave);
  return streams;
}

}  // namespace

Result<Streams> open_streams(const wire::ExecRequest& request, const Account& account) {
  if (request.pty) return open_terminal(request, account);
  Streams streams;
  ATOLL_ASSIGN(Pipe out, make_pipe());
  ATOLL_ASSIGN(Pipe err, make_pipe());
  set_nonblocking(out.read_end);
  set_nonblocking(err.read_end);
  streams.our_stdout = std::move(out.read_end);
  streams.child_stdout = std::move(out.write_end);
  streams.our_stderr = std::move(err.read_end);
  streams.child_stderr = std::move(err.write_end);
  if (request.stdin_open) {
    ATOLL_ASSIGN(Pipe in, make_pipe());
    set_nonblocking(in.write_end);
    streams.our_stdin = std::move(in.write_end);
    streams.child_stdin = std::move(in.read_end);
  }
  return streams;
}

}  // namespace atl::agent
