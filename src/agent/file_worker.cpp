#include "agent/file_worker.h"

#include <errno.h>
#include <sys/syscall.h>

#include "agent/file_channel.h"
#include "agent/file_ops.h"
#include "agent/users.h"

namespace atl::agent {

std::string resolve_path(std::string_view workdir, std::string_view path) {
  if (path.empty()) return std::string(workdir);
  if (path.front() == '/') return std::string(path);
  return std::string(workdir) + "/" + std::string(path);
}

static Result<void> become(const std::string& user) {
  if (user.empty() || user == "root") return {};
  ATOLL_ASSIGN(Account account, find_account(user));
  if (account.uid == 0 && account.gid == 0) return {};
  gid_t groups[] = {account.gid};
  if (syscall(SYS_setgroups, 1, groups) != 0 ||
      syscall(SYS_setresgid, account.gid, account.gid, account.gid) != 0 ||
      syscall(SYS_setresuid, account.uid, account.uid, account.uid) != 0) {
    return fail_errno("switch to user", user);
  }
  return {};
}

static Result<void> check_path(std::string_view path, std::string_view field) {
  if (path.find('\0') != path.npos || path.size() >= 4096) {
    return fail(Error(ErrorCode::InvalidArgument, "a path has no NUL byte and at most 4095 bytes")
                    .with_field(field));
  }
  return {};
}

static Result<void> serve(FileChannel& channel, const std::string& workdir,
                          wire::FileRequest request) {
  ATOLL_TRY(check_path(request.path, "path"));
  ATOLL_TRY(check_path(request.target, "target"));
  request.path = resolve_path(workdir, request.path);
  switch (request.op) {
    case wire::FileOp::Stat:
      return file_stat(channel, request);
    case wire::FileOp::List:
      return file_list(channel, request);
    case wire::FileOp::Read:
      return file_read(channel, request);
    case wire::FileOp::Write:
      return file_write(channel, request);
    case wire::FileOp::Mkdir:
      return file_mkdir(channel, request);
    case wire::FileOp::Move:
      request.target = resolve_path(workdir, request.target);
      return file_move(channel, request);
    case wire::FileOp::Remove:
      return file_remove(channel, request);
    case wire::FileOp::Search:
      return file_search(channel, request);
    case wire::FileOp::Watch:
      return file_watch(channel, request);
    case wire::FileOp::ReadTree:
      return tree_read(channel, request);
    case wire::FileOp::WriteTree:
      return tree_write(channel, request);
  }
  return fail(ErrorCode::NotSupported, "unknown file operation");
}

void run_file_worker(UniqueFd socket, wire::FrameBuffer pending, const FileDefaults& defaults,
                     const wire::FileRequest& first) {
  FileChannel channel(std::move(socket), std::move(pending));
  auto user_of = [&](const wire::FileRequest& asked) {
    return asked.user.empty() ? defaults.user : asked.user;
  };
  std::string user = user_of(first);
  if (auto identity = become(user); !identity) {
    (void)channel.send_error(identity.error());
    return;
  }
  wire::FileRequest request = first;
  for (;;) {
    Result<void> result = user_of(request) == user
                              ? serve(channel, defaults.workdir, request)
                              : fail(ErrorCode::InvalidArgument, "one user per connection");
    // In mid-frame there is no place for an error: only the end of the connection tells.
    if (channel.broken()) return;
    if (!result && !channel.send_error(result.error())) return;
    // Data of a write that failed half-way is still on its way: skip to the next request.
    for (;;) {
      auto frame = channel.receive();
      if (!frame || !*frame) return;
      if ((*frame)->type != static_cast<uint16_t>(wire::AgentType::FileRequest)) continue;
      auto next = wire::decode<wire::FileRequest>((*frame)->payload);
      if (!next) return;
      request = std::move(*next);
      break;
    }
  }
}

}  // namespace atl::agent
