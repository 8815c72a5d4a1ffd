#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>
#include <memory>

#include "http/listener.h"

namespace atl::http {
namespace {

constexpr int kFlags = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;

Result<sockaddr_un> unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return fail(ErrorCode::InvalidArgument, "socket path is empty or too long: " + path);
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

// A socket file outlives a server that was killed. Only one that nobody answers is ours to remove.
Result<void> remove_stale(const std::string& path, const sockaddr_un& address) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return {};
    return fail_errno("lstat", path);
  }
  if (!S_ISSOCK(status.st_mode)) {
    return fail(ErrorCode::Conflict, "not a socket, so not replaced: " + path);
  }
  UniqueFd probe(::socket(AF_UNIX, kFlags, 0));
  if (!probe.valid()) return fail_errno("socket");
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 ||
      errno != ECONNREFUSED) {
    return fail(ErrorCode::Conflict, "another server is listening on " + path);
  }
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return fail_errno("unlink", path);
  return {};
}

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Result<Addresses> resolve(const std::string& address, uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV | (address == "localhost" ? 0 : AI_NUMERICHOST);
  addrinfo* list = nullptr;
  int error = getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (error != 0) {
    return fail(ErrorCode::InvalidArgument,
                "bad listen address " + address + ": " + gai_strerror(error));
  }
  return Addresses(list);
}

}  // namespace

Result<UnixListener> listen_on_path(const std::string& path, mode_t mode) {
  ATOLL_ASSIGN(sockaddr_un address, unix_address(path));
  ATOLL_TRY(remove_stale(path, address));
  UnixListener listener;
  listener.fd = UniqueFd(::socket(AF_UNIX, kFlags, 0));
  if (!listener.fd.valid()) return fail_errno("socket");
  // Before bind(), which takes the file's mode from here less the umask: never open wider than
  // asked for, not even for a moment. chmod() then restores what the umask took.
  if (::fchmod(listener.fd.get(), mode) != 0) return fail_errno("fchmod", path);
  if (::bind(listener.fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) !=
      0) {
    return fail_errno("bind", path);
  }
  if (::chmod(path.c_str(), mode) != 0) return fail_errno("chmod", path);
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return fail_errno("lstat", path);
  listener.device = status.st_dev;
  listener.inode = status.st_ino;
  if (::listen(listener.fd.get(), SOMAXCONN) != 0) return fail_errno("listen", path);
  return listener;
}

Result<UniqueFd> listen_on_address(const std::string& address, uint16_t port) {
  ATOLL_ASSIGN(Addresses addresses, resolve(address, port));
  UniqueFd fd(::socket(addresses->ai_family, kFlags, 0));
  if (!fd.valid()) return fail_errno("socket");
  int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (::bind(fd.get(), addresses->ai_addr, addresses->ai_addrlen) != 0) {
    return fail_errno("bind", address + ":" + std::to_string(port));
  }
  if (::listen(fd.get(), SOMAXCONN) != 0) return fail_errno("listen", address);
  return fd;
}

Result<uint16_t> bound_port(int fd) {
  sockaddr_storage storage{};
  socklen_t length = sizeof(storage);
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &length) != 0) {
    return fail_errno("getsockname");
  }
  if (storage.ss_family == AF_INET) {
    return ntohs(reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
  }
  if (storage.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_port);
  }
  return uint16_t{0};
}

}  // namespace atl::http
