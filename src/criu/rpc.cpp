#include "criu/rpc.h"

#include "criu/protobuf.h"

namespace atl::criu {
namespace {

// Numbers of fields in CRIU's images/rpc.proto.
enum Option : uint32_t {
  kImagesDirFd = 1,
  kPid = 2,
  kLeaveRunning = 3,
  kFileLocks = 8,
  kLogLevel = 9,
  kLogFile = 10,
  kNotifyScripts = 12,
  kRoot = 13,
  kLinkRemap = 18,
  kInheritFd = 27,
  kCgroupsMode = 34,
  kGhostLimit = 35,
  kIrmapScanPaths = 36,
  kExternal = 37,
  kTimeout = 45,
  kConfigFile = 51,
  kTcpClose = 52,
};
constexpr uint64_t kIgnoreCgroups = 0;
constexpr uint64_t kWarnings = 2;
constexpr uint64_t kGhostBytes = 64u << 20;
// Where a watched inode is looked for, as its path is not known.
constexpr const char* kWatchedPlaces[] = {"/workspace", "/home", "/root", "/tmp", "/usr",
                                          "/etc",       "/var",  "/opt",  "/srv"};

std::string options_of(const Request& request) {
  ProtoWriter options;
  options.number(kImagesDirFd, static_cast<uint64_t>(request.images_dir));
  options.flag(kFileLocks, true);
  options.number(kLogLevel, kWarnings);
  options.bytes(kLogFile, request.log_file);
  options.flag(kNotifyScripts, true);
  options.flag(kLinkRemap, true);
  options.number(kCgroupsMode, kIgnoreCgroups);
  for (const std::string& item : request.external) options.bytes(kExternal, item);
  if (!request.config_file.empty()) options.bytes(kConfigFile, request.config_file);
  options.flag(kTcpClose, true);
  if (request.verb == Verb::Dump) {
    options.number(kPid, static_cast<uint64_t>(request.pid));
    options.flag(kLeaveRunning, request.leave_running);
    options.number(kGhostLimit, kGhostBytes);
    options.number(kTimeout, request.timeout_s);
    for (const char* place : kWatchedPlaces) options.bytes(kIrmapScanPaths, place);
  }
  if (!request.root.empty()) options.bytes(kRoot, request.root);
  for (const auto& [key, fd] : request.inherit) {
    ProtoWriter item;
    item.bytes(1, key);
    item.number(2, static_cast<uint64_t>(fd));
    options.bytes(kInheritFd, item.take());
  }
  return options.take();
}

template <class Take>
Result<void> each_field(std::string_view bytes, const Take& take) {
  ProtoReader reader(bytes);
  for (;;) {
    ATOLL_ASSIGN(auto field, reader.next());
    if (!field) return {};
    ATOLL_TRY(take(*field));
  }
}

Result<void> read_notify(std::string_view bytes, Response& response) {
  return each_field(bytes, [&](const ProtoField& field) -> Result<void> {
    if (field.number == 1) response.script = field.bytes;
    if (field.number == 2) response.pid = static_cast<pid_t>(field.value);
    return {};
  });
}

Result<void> read_version(std::string_view bytes, Response& response) {
  return each_field(bytes, [&](const ProtoField& field) -> Result<void> {
    if (field.number == 1) response.major = static_cast<uint32_t>(field.value);
    if (field.number == 2) response.minor = static_cast<uint32_t>(field.value);
    if (field.number == 4) response.sublevel = static_cast<uint32_t>(field.value);
    return {};
  });
}

}  // namespace

std::string encode_request(const Request& request) {
  ProtoWriter writer;
  writer.number(1, static_cast<uint64_t>(request.verb));
  if (request.verb != Verb::Version) writer.bytes(2, options_of(request));
  return writer.take();
}

std::string encode_notified(bool success) {
  ProtoWriter writer;
  writer.number(1, static_cast<uint64_t>(Verb::Notify));
  writer.flag(3, success);
  return writer.take();
}

Result<Response> decode_response(std::string_view bytes) {
  Response response;
  ATOLL_TRY(each_field(bytes, [&](const ProtoField& field) -> Result<void> {
    switch (field.number) {
      case 1:
        response.verb = static_cast<Verb>(field.value);
        return {};
      case 2:
        response.success = field.value != 0;
        return {};
      case 4:  // the answer to Restore: { pid = 1 }
        return each_field(field.bytes, [&](const ProtoField& inner) -> Result<void> {
          if (inner.number == 1) response.pid = static_cast<pid_t>(inner.value);
          return {};
        });
      case 5:
        return read_notify(field.bytes, response);
      case 7:
        response.error = static_cast<int>(field.value);
        return {};
      case 9:
        response.message = field.bytes;
        return {};
      case 10:
        return read_version(field.bytes, response);
      default:
        return {};
    }
  }));
  return response;
}

}  // namespace atl::criu
