#include "image/import.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>

#include <memory>
#include <string_view>
#include <vector>

#include "base/json_escape.h"
#include "base/random_id.h"
#include "base/scope_exit.h"
#include "base/unique_fd.h"
#include "image/confined_child.h"
#include "image/extract.h"
#include "image/layer_finish.h"
#include "image/sha256.h"
#include "image/tree.h"
#include "os/file.h"
#include "os/id_map.h"

namespace atl::image {
namespace {

// Part of every layer id: raise it when finish_layer or extraction starts to make something else of
// the same archive.
constexpr int kLayerFormat = 1;
constexpr size_t kDigitsInId = 40;
constexpr std::string_view kTemporaryPrefix = ".import-";
constexpr size_t kChunk = 256 * 1024;
constexpr uint32_t kMaxMessageBytes = 8192;

// What the child says at its end, followed by message_size bytes of text.
struct ChildReport {
  uint8_t ok = 0;
  uint8_t code = 0;
  int32_t err = 0;
  uint32_t message_size = 0;
  ExtractReport extract;
};

void send_report(int socket, const ChildReport& report, std::string_view message) {
  [[maybe_unused]] ssize_t ignored = send(socket, &report, sizeof report, MSG_NOSIGNAL);
  if (!message.empty()) ignored = send(socket, message.data(), message.size(), MSG_NOSIGNAL);
}

void run_extraction(int socket, const void* argument) {
  ChildReport report;
  Result<ExtractReport> result =
      extract_archive(socket, *static_cast<const ExtractLimits*>(argument));
  if (result) {
    report.ok = 1;
    report.extract = *result;
    return send_report(socket, report, {});
  }
  std::string_view message = result.error().message();
  message = message.substr(0, kMaxMessageBytes);
  report.code = static_cast<uint8_t>(result.error().code());
  report.err = result.error().sys_errno();
  report.message_size = static_cast<uint32_t>(message.size());
  send_report(socket, report, message);
}

Result<size_t> receive(int socket, void* data, size_t size) {
  ssize_t received;
  do {
    received = recv(socket, data, size, MSG_WAITALL);
  } while (received < 0 && errno == EINTR);
  if (received >= 0) return static_cast<size_t>(received);
  if (errno == EAGAIN)
    return fail(ErrorCode::Timeout, "unpacking the archive does not come to an end");
  if (errno == ECONNRESET) return size_t{0};
  return fail_errno("recv");
}

// The text comes from a process that has parsed hostile input: let through only what a terminal
// and a log can take.
std::string printable(std::string_view text) {
  std::string out = to_valid_utf8(text);
  for (char& c : out) {
    if ((c >= 0 && c < ' ') || c == 0x7f) c = '?';
  }
  return out;
}

Result<ExtractReport> read_report(int socket) {
  ChildReport report;
  ATOLL_ASSIGN(size_t size, receive(socket, &report, sizeof report));
  if (size != sizeof report || report.message_size > kMaxMessageBytes ||
      report.code > static_cast<uint8_t>(ErrorCode::Internal)) {
    return fail(ErrorCode::InvalidArgument,
                "the process that unpacks the archive died; the archive is damaged or hostile, or "
                "needs more than 1 GiB of memory to decompress");
  }
  if (report.ok == 1) return report.extract;
  std::string message(report.message_size, '\0');
  ATOLL_ASSIGN(size, receive(socket, message.data(), message.size()));
  message.resize(size);
  return fail(static_cast<ErrorCode>(report.code), printable(message));
}

Result<size_t> read_chunk(int fd, char* buffer) {
  ssize_t size;
  do {
    size = read(fd, buffer, kChunk);
  } while (size < 0 && errno == EINTR);
  if (size < 0) return fail_errno("read", "the archive");
  return static_cast<size_t>(size);
}

Result<std::string> digest_of(int archive) {
  Sha256 hash;
  auto buffer = std::make_unique<char[]>(kChunk);
  for (;;) {
    ATOLL_ASSIGN(size_t size, read_chunk(archive, buffer.get()));
    if (size == 0) return hash.finish();
    hash.update(buffer.get(), size);
  }
}

// False when the other side has stopped reading.
Result<bool> send_all(int socket, const char* data, size_t size) {
  while (size > 0) {
    ssize_t sent = send(socket, data, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) return false;
    if (sent < 0 && errno == EAGAIN)
      return fail(ErrorCode::Timeout, "unpacking the archive has stalled");
    if (sent < 0) return fail_errno("send");
    data += sent;
    size -= static_cast<size_t>(sent);
  }
  return true;
}

// Sends the archive to the child and returns the digest of exactly the bytes it was given. Stops
// early if the child does: its report says why.
Result<std::string> feed(int archive, int socket) {
  if (lseek(archive, 0, SEEK_SET) != 0) return fail_errno("lseek", "the archive");
  Sha256 hash;
  auto buffer = std::make_unique<char[]>(kChunk);
  for (;;) {
    ATOLL_ASSIGN(size_t size, read_chunk(archive, buffer.get()));
    if (size == 0) break;
    hash.update(buffer.get(), size);
    ATOLL_ASSIGN(bool alive, send_all(socket, buffer.get(), size));
    if (!alive) return hash.finish();
  }
  if (shutdown(socket, SHUT_WR) != 0) return fail_errno("shutdown");
  return hash.finish();
}

Result<ExtractReport> unpack(int archive, int layer, const ImportOptions& options,
                             const std::string& digest) {
  ExtractLimits limits{options.max_bytes, options.max_entries};
  ConfinedChild::Code code{prepare_extraction, run_extraction, &limits};
  ATOLL_ASSIGN(ConfinedChild child, ConfinedChild::start(layer, code));
  timeval stall{options.stall_timeout.count(), 0};
  if (setsockopt(child.socket(), SOL_SOCKET, SO_SNDTIMEO, &stall, sizeof stall) != 0 ||
      setsockopt(child.socket(), SOL_SOCKET, SO_RCVTIMEO, &stall, sizeof stall) != 0) {
    return fail_errno("setsockopt");
  }
  ATOLL_ASSIGN(std::string fed, feed(archive, child.socket()));
  ATOLL_ASSIGN(ExtractReport report, read_report(child.socket()));
  // It has nothing left to do; what it might still try must not race with what follows.
  child.kill();
  ATOLL_TRY(child.wait());
  if (fed != digest) {
    return fail(ErrorCode::Conflict, "the archive changed while it was being read; try again");
  }
  return report;
}

Result<UniqueFd> open_archive(const std::string& path) {
  // O_NONBLOCK: a FIFO in place of the file must not hold us up.
  UniqueFd archive(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!archive.valid()) return fail_errno("open", path);
  struct stat info {};
  if (fstat(archive.get(), &info) != 0) return fail_errno("fstat", path);
  if (!S_ISREG(info.st_mode)) {
    return fail(ErrorCode::InvalidArgument, path + " is not a regular file");
  }
  return archive;
}

Result<UniqueFd> open_layers(const std::string& path) {
  ATOLL_ASSIGN(UniqueFd layers, open_or_create_directory(path));
  // Search only: the mapped root of a sandbox mount must get through, nobody needs to list it.
  if (fchmod(layers.get(), 0711) != 0) return fail_errno("fchmod", path);
  return layers;
}

Result<UniqueFd> lock_layers(int layers) {
  UniqueFd lock(openat(layers, ".lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock.valid()) return fail_errno("openat", ".lock");
  while (flock(lock.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return fail_errno("flock", ".lock");
  }
  return lock;
}

// We hold the lock, so a temporary directory can only be a dead import's.
Result<void> remove_leftovers(int layers) {
  ATOLL_ASSIGN(std::vector<std::string> names, list_directory(layers));
  for (const std::string& name : names) {
    if (name.starts_with(kTemporaryPrefix)) ATOLL_TRY(remove_tree(layers, name));
  }
  return {};
}

struct LayerIdentity {
  std::string id;
  std::string digest;
};

Result<ExtractReport> build_layer(int archive, int layers, const ImportOptions& options,
                                  const LayerIdentity& identity) {
  std::string temporary = random_id(kTemporaryPrefix);
  ScopeExit cleanup(
      [&] { [[maybe_unused]] Result<void> ignored = remove_tree(layers, temporary); });
  Attributes root{0755, os::kDiskIdBase, os::kDiskIdBase};
  ATOLL_ASSIGN(UniqueFd layer, ensure_directory(layers, temporary, root, Existing::Reset));
  ATOLL_ASSIGN(ExtractReport report, unpack(archive, layer.get(), options, identity.digest));
  ATOLL_TRY(finish_layer(layer.get()));
  if (syncfs(layer.get()) != 0) return fail_errno("syncfs", options.layers_dir);
  if (renameat2(layers, temporary.c_str(), layers, identity.id.c_str(), RENAME_NOREPLACE) != 0) {
    return fail_errno("renameat2", identity.id);
  }
  cleanup.dismiss();
  if (fsync(layers) != 0) return fail_errno("fsync", options.layers_dir);
  return report;
}

}  // namespace

Result<ImportReport> import_rootfs(const ImportOptions& options) {
  if (geteuid() != 0) {
    return fail(ErrorCode::PermissionDenied,
                "importing a root filesystem needs root: run it with sudo");
  }
  ATOLL_ASSIGN(UniqueFd archive, open_archive(options.archive_path));
  ATOLL_ASSIGN(std::string digest, digest_of(archive.get()));
  LayerIdentity identity{fmt::format("{}-{}", digest.substr(0, kDigitsInId), kLayerFormat), digest};
  ImportReport report{.layer_id = identity.id, .digest = "sha256:" + digest};
  ATOLL_ASSIGN(UniqueFd layers, open_layers(options.layers_dir));
  ATOLL_ASSIGN(UniqueFd lock, lock_layers(layers.get()));
  ATOLL_TRY(remove_leftovers(layers.get()));
  if (os::open_beneath(layers.get(), identity.id.c_str(), O_PATH | O_DIRECTORY)) {
    report.reused = true;
    return report;
  }
  Result<ExtractReport> built = build_layer(archive.get(), layers.get(), options, identity);
  if (!built) return fail(std::move(built).error().context("importing " + options.archive_path));
  report.entries = built->entries;
  report.bytes = built->bytes;
  report.skipped_devices = built->skipped_devices;
  report.skipped_attributes = built->skipped_attributes;
  return report;
}

}  // namespace atl::image
