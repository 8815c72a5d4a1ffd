#include "agent/users.h"

#include <fcntl.h>

#include <charconv>
#include <optional>
#include <vector>

#include "base/unique_fd.h"

namespace atl::agent {
namespace {

constexpr uint32_t kMaxId =
    65534;  // the last is nobody's; 65535 stands for "no change" in old calls
constexpr size_t kMaxFile = 1u << 20;

std::string read_small_file(const char* path) {
  UniqueFd fd(open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  std::string text;
  char buffer[4096];
  while (fd.valid() && text.size() < kMaxFile) {
    ssize_t size = read(fd.get(), buffer, sizeof buffer);
    if (size <= 0) break;
    text.append(buffer, static_cast<size_t>(size));
  }
  return text;
}

std::vector<std::string_view> split(std::string_view line, char separator) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  while (parts.size() < 8) {
    size_t end = line.find(separator, begin);
    parts.push_back(line.substr(begin, end == line.npos ? line.npos : end - begin));
    if (end == line.npos) break;
    begin = end + 1;
  }
  return parts;
}

std::optional<uint32_t> parse_id(std::string_view text) {
  uint32_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return {};
  return value <= kMaxId ? std::optional(value) : std::nullopt;
}

// Calls found(fields) for each line with at least `fields` fields until it returns true.
template <class Found>
void scan(const char* path, size_t fields, Found found) {
  std::string text = read_small_file(path);
  std::string_view rest = text;
  while (!rest.empty()) {
    size_t end = rest.find('\n');
    auto parts = split(rest.substr(0, end), ':');
    if (parts.size() >= fields && found(parts)) return;
    if (end == rest.npos) return;
    rest.remove_prefix(end + 1);
  }
}

std::string name_in(const char* path, uint32_t id) {
  std::string name = std::to_string(id);
  scan(path, 3, [&](const auto& fields) {
    if (parse_id(fields[2]) != id) return false;
    name = fields[0];
    return true;
  });
  return name;
}

std::optional<Account> lookup(std::string_view name, std::optional<uint32_t> uid) {
  std::optional<Account> account;
  scan("/etc/passwd", 6, [&](const auto& fields) {
    auto line_uid = parse_id(fields[2]);
    auto line_gid = parse_id(fields[3]);
    bool match = uid ? line_uid == uid : fields[0] == name;
    if (!match || !line_uid || !line_gid) return false;
    account = Account{.uid = *line_uid,
                      .gid = *line_gid,
                      .name = std::string(fields[0]),
                      .home = std::string(fields[5])};
    return true;
  });
  return account;
}

}  // namespace

Result<Account> find_account(std::string_view user) {
  size_t colon = user.find(':');
  auto uid = parse_id(user.substr(0, colon));
  std::optional<Account> account = lookup(user, uid);
  if (!account && uid) account = Account{.uid = *uid, .gid = *uid, .name = std::to_string(*uid)};
  // The kernel's root exists whatever the image says.
  if (!account && user == "root") account = Account{.name = "root", .home = "/root"};
  if (account && colon != user.npos) {
    auto gid = parse_id(user.substr(colon + 1));
    if (!gid)
      account.reset();
    else
      account->gid = *gid;
  }
  if (!account) {
    return fail(Error(ErrorCode::InvalidArgument, "no user '" + std::string(user) +
                                                      "' in the sandbox; give a name from its "
                                                      "/etc/passwd or an id of 0 to 65534")
                    .with_field("user"));
  }
  if (account->home.empty() || account->home.front() != '/') account->home = "/";
  return *account;
}

std::string user_name(uint32_t uid) { return name_in("/etc/passwd", uid); }
std::string group_name(uint32_t gid) { return name_in("/etc/group", gid); }

}  // namespace atl::agent
