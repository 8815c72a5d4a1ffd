#include "serve/setup.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <charconv>

#include "base/log.h"
#include "base/random_id.h"
#include "os/file.h"
#include "store/data_lock.h"

namespace atl::serve {
namespace {

// Used where the account is missing: an id that Debian's policy gives to nobody.
constexpr uid_t kFallbackId = 64199;
constexpr uid_t kEgressFallbackId = 64198;

Result<void> make_dir(const std::string& path, mode_t mode, uid_t owner, gid_t group) {
  if (mkdir(path.c_str(), mode) != 0 && errno != EEXIST) return fail_errno("mkdir", path);
  UniqueFd dir(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!dir.valid()) return fail_errno("open", path);
  if (fchown(dir.get(), owner, group) != 0) return fail_errno("chown", path);
  if (fchmod(dir.get(), mode) != 0) return fail_errno("chmod", path);
  return {};
}

Result<void> make_dirs(const config::Config& config, const Account& account) {
  const std::string& data = config.data_dir;
  const std::string& run = config.run_dir;
  // Layers hold set-user-id files of foreign ids: no other account may reach them.
  ATOLL_TRY(make_dir(data, 0750, 0, account.gid));
  ATOLL_TRY(make_dir(data + "/layers", 0711, 0, 0));
  ATOLL_TRY(make_dir(data + "/templates", 0775, 0, account.gid));
  ATOLL_TRY(make_dir(data + "/incoming", 0700, account.uid, account.gid));
  ATOLL_TRY(make_dir(data + "/state", 0700, account.uid, account.gid));
  ATOLL_TRY(make_dir(data + "/audit", 0700, account.uid, account.gid));
  ATOLL_TRY(make_dir(run, 0755, 0, 0));
  ATOLL_TRY(make_dir(run + "/agents", 0750, 0, account.gid));
  return make_dir(run + "/launcher", 0700, 0, 0);
}

Result<std::string> load_api_key(const std::string& data_dir, const Account& account) {
  std::string path = data_dir + "/api-key";
  if (auto text = os::read_file_at(AT_FDCWD, path.c_str()); text && text->size() > 16) {
    return text->substr(0, text->find_last_not_of('\n') + 1);
  }
  std::string key = random_id("sk-atoll-", 32) + random_id("", 16);
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd.valid()) return fail_errno("create", path);
  ATOLL_TRY(os::write_all(fd.get(), key + "\n"));
  if (fchown(fd.get(), 0, account.gid) != 0 || fchmod(fd.get(), 0640) != 0)
    return fail_errno("chown", path);
  return key;
}

Result<UniqueFd> listen_unix(const std::string& path, const Account& account) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return fail(ErrorCode::InvalidArgument,
                "the run directory's path is too long for a socket: " + path);
  }
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return fail_errno("socket");
  unlink(path.c_str());  // ours alone: the lock is held
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    return fail_errno("bind", path);
  if (chown(path.c_str(), 0, account.gid) != 0 || chmod(path.c_str(), 0660) != 0)
    return fail_errno("chown", path);
  if (listen(fd.get(), 1024) != 0) return fail_errno("listen", path);
  return fd;
}

struct Endpoint {
  sockaddr_in address{};
  std::string text;
};

Result<Endpoint> parse_endpoint(const std::string& text) {
  auto refuse = [&] {
    return fail(ErrorCode::InvalidArgument,
                "--listen takes ADDRESS:PORT or none, not '" + text + "'");
  };
  size_t colon = text.find_last_of(':');
  if (colon == text.npos) return refuse();
  Endpoint endpoint;
  endpoint.address.sin_family = AF_INET;
  std::string host = text.substr(0, colon) == "localhost" ? "127.0.0.1" : text.substr(0, colon);
  uint16_t port = 0;
  auto [end, error] = std::from_chars(text.data() + colon + 1, text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size()) return refuse();
  if (inet_pton(AF_INET, host.c_str(), &endpoint.address.sin_addr) != 1) return refuse();
  endpoint.address.sin_port = htons(port);
  endpoint.text = host;
  return endpoint;
}

Result<UniqueFd> listen_tcp(const std::string& text, const std::string& scheme,
                            std::string& base_url) {
  ATOLL_ASSIGN(Endpoint endpoint, parse_endpoint(text));
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return fail_errno("socket");
  int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  auto* address = reinterpret_cast<sockaddr*>(&endpoint.address);
  if (bind(fd.get(), address, sizeof endpoint.address) != 0) return fail_errno("bind", text);
  if (listen(fd.get(), 1024) != 0) return fail_errno("listen", text);
  socklen_t size = sizeof endpoint.address;
  getsockname(fd.get(), address, &size);
  base_url =
      scheme + "://" + endpoint.text + ":" + std::to_string(ntohs(endpoint.address.sin_port));
  return fd;
}

}  // namespace

Account find_account(const std::string& name) {
  if (passwd* entry = getpwnam(name.c_str())) return {entry->pw_uid, entry->pw_gid};
  return {.uid = kFallbackId, .gid = kFallbackId, .missing = true};
}

std::string find_criu(const std::string& set) {
  std::vector<std::string> places{set};
  if (set.empty()) {
    char program[PATH_MAX] = {};
    ssize_t size = readlink("/proc/self/exe", program, sizeof program - 1);
    std::string_view path(program, static_cast<size_t>(std::max<ssize_t>(size, 0)));
    places = {std::string(path.substr(0, path.find_last_of('/'))) + "/criu",
              "/usr/local/lib/atoll/criu", "/usr/lib/atoll/criu", "/var/cache/atoll/criu"};
    if (const char* cache = getenv("ATOLL_CACHE")) places.push_back(std::string(cache) + "/criu");
  }
  for (const std::string& place : places) {
    if (access((place + "/lib/loader").c_str(), X_OK) == 0) return place;
  }
  return set;
}

Result<Prepared> prepare(const config::Config& config) {
  Prepared prepared;
  prepared.notifier = Notifier::from_environment();
  prepared.account = find_account(config.user);
  if (prepared.account.missing) {
    log(LogLevel::Warning, "no such account, the server runs as an unnamed one",
        {{"account", config.user},
         {"uid", std::to_string(kFallbackId)},
         {"remedy", "useradd --system " + config.user}});
  }
  // It owns no file, so a number without a name does as well.
  prepared.egress = find_account(config.user + "-egress");
  if (prepared.egress.missing) prepared.egress.uid = prepared.egress.gid = kEgressFallbackId;
  ATOLL_TRY(make_dirs(config, prepared.account));
  ATOLL_ASSIGN(prepared.lock, store::lock_data_dir(config.data_dir));
  ATOLL_TRY(store::name_holder(prepared.lock, config.run_dir + "/atoll.sock"));
  ATOLL_ASSIGN(prepared.api_key, load_api_key(config.data_dir, prepared.account));
  ATOLL_ASSIGN(UniqueFd local, listen_unix(config.run_dir + "/atoll.sock", prepared.account));
  prepared.listeners.push_back(std::move(local));
  if (config.listen != "none") {
    std::string scheme = config.tls.certificate.empty() ? "http" : "https";
    ATOLL_ASSIGN(UniqueFd tcp, listen_tcp(config.listen, scheme, prepared.base_url));
    prepared.listeners.push_back(std::move(tcp));
  }
  if (!config.public_url.empty()) prepared.base_url = config.public_url;
  return prepared;
}

}  // namespace atl::serve
