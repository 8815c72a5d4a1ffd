#include "auth/master_key.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "auth/digest.h"
#include "base/random_id.h"
#include "base/scope_exit.h"
#include "base/unique_fd.h"

namespace atl::auth {
namespace {

constexpr int kSafeFlags = O_CLOEXEC | O_NOFOLLOW | O_NOCTTY;

// The directory is held open, so that what is checked, made and synced is in one place whatever
// happens to its path.
struct Place {
  UniqueFd dir;
  std::string name;
  std::string path;
};

Result<Place> place_of(const std::string& path) {
  size_t slash = path.find_last_of('/');
  std::string dir = slash == path.npos ? "." : path.substr(0, slash + 1);
  UniqueFd fd(open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return fail_errno("open directory", dir);
  return Place{std::move(fd), path.substr(slash == path.npos ? 0 : slash + 1), path};
}

tl::unexpected<Error> unsafe(const Place& place, std::string_view problem,
                             std::string_view remedy) {
  return fail(ErrorCode::InvalidState,
              fmt::format("master key {} {}; {}", place.path, problem, remedy));
}

Result<void> check_file(const Place& place, const struct stat& info) {
  if (!S_ISREG(info.st_mode)) {
    return unsafe(place, "is not a regular file", "put the key file back or remove what is there");
  }
  if (info.st_uid != geteuid() && info.st_uid != 0) {
    return unsafe(place, fmt::format("belongs to user {}", info.st_uid),
                  fmt::format("if you trust it, run: chown {} {}", geteuid(), place.path));
  }
  if ((info.st_mode & 077) != 0) {
    return unsafe(place, fmt::format("is open to others (mode {:04o})", info.st_mode & 07777),
                  "if nobody has read it, run: chmod 600 " + place.path);
  }
  if (info.st_size != SecretKey::kSize) {
    return unsafe(place, fmt::format("has {} bytes instead of 32", info.st_size),
                  "restore it from a backup; without the right key stored secrets are lost");
  }
  return {};
}

Result<SecretKey> load(const Place& place) {
  // Non-blocking, or a FIFO put there would hold the server up.
  UniqueFd fd(openat(place.dir.get(), place.name.c_str(), O_RDONLY | O_NONBLOCK | kSafeFlags));
  if (!fd.valid() && errno == ELOOP) {
    return unsafe(place, "is a symbolic link", "give the path of the file itself");
  }
  if (!fd.valid()) return fail_errno("open", place.path);
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) return fail_errno("stat", place.path);
  ATOLL_TRY(check_file(place, info));
  SecretBytes bytes(SecretKey::kSize);
  ssize_t size = pread(fd.get(), bytes.data(), bytes.size(), 0);
  if (size < 0) return fail_errno("read", place.path);
  if (size != SecretKey::kSize) {
    return unsafe(place, "became shorter while it was read", "try again");
  }
  return SecretKey(SecretKey::Bytes(bytes.data(), SecretKey::kSize));
}

Result<void> write_durably(const Place& place, const std::string& name, const SecretKey& key) {
  UniqueFd fd(
      openat(place.dir.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | kSafeFlags, 0600));
  if (!fd.valid()) return fail_errno("create", place.path);
  if (write(fd.get(), key.bytes().data(), SecretKey::kSize) != SecretKey::kSize) {
    return fail_errno("write", place.path);
  }
  if (fsync(fd.get()) != 0) return fail_errno("fsync", place.path);
  return {};
}

// Under a name of its own first; the link then makes the whole file appear at once, and fails where
// another process was faster.
Result<void> create(const Place& place) {
  std::string temporary = "." + place.name + random_id(".", 16);
  ScopeExit remove([&] { unlinkat(place.dir.get(), temporary.c_str(), 0); });
  ATOLL_TRY(write_durably(place, temporary, SecretKey::random()));
  int dir = place.dir.get();
  if (linkat(dir, temporary.c_str(), dir, place.name.c_str(), 0) != 0 && errno != EEXIST) {
    return fail_errno("link", place.path);
  }
  if (fsync(dir) != 0) return fail_errno("fsync directory of", place.path);
  return {};
}

}  // namespace

Result<MasterKey> MasterKey::load_or_create(const std::string& path) {
  ATOLL_ASSIGN(Place place, place_of(path));
  auto key = load(place);
  if (!key && key.error().sys_errno() == ENOENT) {
    ATOLL_TRY(create(place));
    key = load(place);
  }
  if (!key) return fail(std::move(key).error());
  return MasterKey(std::move(*key));
}

SecretKey MasterKey::derive(std::string_view label) const {
  std::string info = "atoll/v1/" + std::string(label);
  SecretBytes out(SecretKey::kSize);
  hkdf_sha256({.secret = as_text(key_.bytes()), .salt = "", .info = info},
              {out.data(), out.size()});
  return SecretKey(SecretKey::Bytes(out.data(), SecretKey::kSize));
}

}  // namespace atl::auth
