#include "cli/report.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <span>

#include "base/unique_fd.h"
#include "cli/terminal.h"

namespace atl::cli {
namespace {

bool is_socket(std::string_view url) { return url.starts_with("unix:"); }

bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

// What failed before a server could say anything.
std::string explain_connection(const Error& error, std::string_view url) {
  switch (error.sys_errno()) {
    case ENOENT:
    case ECONNREFUSED:
      return fmt::format(
          "no server at {} (start one with 'sudo atoll serve' or './dev run', or set ATOLL_URL)",
          url);
    case EACCES:
    case EPERM:
      return fmt::format(
          "no permission to use {} (use sudo, or join the group: sudo usermod -aG atoll $USER)",
          url);
    default:
      return fmt::format("cannot reach the server at {}: {} (is it still running?)", url,
                         error.message());
  }
}

// Whether the server refused the caller, not the sandbox a path.
bool about_key(const Error& error) {
  return contains(error.message(), "key") || contains(error.message(), "administrator") ||
         contains(error.message(), "token");
}

// By what the message says is not there; the first that fits.
struct Hint {
  std::string_view words;
  std::string_view advice;
};
constexpr Hint kMissing[] = {
    {"API key", "'atoll key ls' lists the keys"},
    {"no snapshot '", "'atoll snapshot ls' lists the snapshots"},
    {"no checkpoint '", "'atoll checkpoint ls' lists the checkpoints"},
    {"no state before command", "'atoll history SANDBOX' lists them"},
    {"secret", "'atoll secret set' sets it"},
    {"preview link", "'atoll port ls SANDBOX' lists the links"},
    {"sandbox", "'atoll ls' lists the sandboxes"},
    {"process", "'atoll ps SANDBOX' lists the processes"},
};

// What a person can do about an answer of the server's; empty where the message says it all.
std::string_view advice(const Error& error) {
  switch (error.code()) {
    case ErrorCode::Unauthenticated:
      return "set ATOLL_API_KEY to the key in DATA/api-key, by default /var/lib/atoll/api-key";
    case ErrorCode::PermissionDenied:
      return about_key(error) ? "'atoll whoami' shows who you are"
                              : "check the owner and mode of the path, or use --user root";
    case ErrorCode::NotFound:
      for (const Hint& hint : kMissing) {
        if (contains(error.message(), hint.words)) return hint.advice;
      }
      return "check the path";
    case ErrorCode::TemplateMissing:
      return "'atoll template ls' lists templates, 'atoll template import' adds one";
    case ErrorCode::Conflict:
      return contains(error.message(), "name") || error.field() == "name"
                 ? "choose another name, or 'atoll rm' the old sandbox"
                 : "";
    case ErrorCode::InvalidState:
      if (contains(error.message(), "bootstrap script")) return "";
      return "'atoll inspect SANDBOX' shows its state; 'atoll start' or 'atoll unpause' wakes it";
    case ErrorCode::TooLarge:
      return "send less at once";
    case ErrorCode::ResourceExhausted:
      return "remove sandboxes with 'atoll rm', or raise the limit";
    case ErrorCode::NoSpace:
      return "free space, or raise the limit with --disk";
    case ErrorCode::NotSupported:
      return "'atoll doctor' says what this host lacks";
    case ErrorCode::Unavailable:
      return "try again; 'atoll doctor' and the server's log may say more";
    case ErrorCode::Timeout:
      return "try again, or allow more time";
    case ErrorCode::Internal:
      return "see the server's log";
    case ErrorCode::InvalidArgument:
    case ErrorCode::Cancelled:
      return "";
  }
  return "";
}

struct Translation {
  std::string_view server;
  std::string_view ours;
};

// What the API calls its fields, and what they are on the command line.
constexpr Translation kFlags[] = {
    {"resources.cpuCores", "--cpu"},
    {"resources.memoryMB", "--memory"},
    {"resources.diskGB", "--disk"},
    {"resources.pids", "--pids"},
    {"maxLifetimeSeconds", "--timeout"},
    {"idleTimeoutSeconds", "--idle-timeout"},
    {"environment", "--template"},
    {"cwd", "--cwd"},
    {"user", "--user"},
    {"env", "--env"},
    {"metadata", "--label"},
    {"idempotencyKey", "--key"},
    {"deleteAfterStoppedSeconds", "--delete-after"},
    {"secrets", "--secret"},
    {"git.url", "--git"},
    {"git.ref", "--git-ref"},
    {"git.depth", "--git-depth"},
    {"role", "--role"},
    {"ratePerSecond", "--rate"},
    {"expiresInSeconds", "--expires"},
    {"quota.sandboxes", "--max-sandboxes"},
    {"quota.cpuCores", "--max-cpu"},
    {"quota.memoryMB", "--max-memory"},
    {"quota.diskGB", "--max-disk"},
    {"tenant", "--tenant"},
    {"Atoll-Tenant", "--tenant"},
    {"scope", "--scope"},
    {"sessionId", "--session"},
    {"ttlMinutes", "--ttl"},
    {"lastEventId", "--since"},
};
// The server's advice, in verbs.
constexpr Translation kAdvice[] = {
    {"start it first", "'atoll start' starts it"},
    {"unpause it first", "'atoll unpause' lets it go on"},
    {"ask for recursive", "use -r"},
};

std::string translated(std::span<const Translation> table, std::string_view text) {
  for (const Translation& row : table) {
    if (row.server == text) return std::string(row.ours);
  }
  return std::string(text);
}

bool is_connection_error(const Error& error) {
  return error.sys_errno() != 0 &&
         (contains(error.message(), "connect ") || contains(error.message(), "recv") ||
          contains(error.message(), "sendmsg"));
}

void print_line(std::string_view line) {
  fmt::print(stderr, "{} {}\n", paint("atoll:", Colour::Red, use_colour(STDERR_FILENO)),
             printable(line));
}

// The key of a server on this host, for who may read it. Never sent anywhere else.
std::string local_key(std::string_view url) {
  bool local = url.starts_with("http://127.0.0.1:") || url.starts_with("http://localhost:") ||
               url.starts_with("http://[::1]:");
  if (!local) return {};
  const char* dir = getenv("ATOLL_DATA_DIR");
  std::string path = std::string(dir == nullptr ? "/var/lib/atoll" : dir) + "/api-key";
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  char text[256];
  ssize_t size = fd.valid() ? read(fd.get(), text, sizeof text) : 0;
  std::string key(text, size > 0 ? static_cast<size_t>(size) : 0);
  while (key.ends_with('\n')) key.pop_back();
  return key;
}

}  // namespace

std::string explain(const Error& error, std::string_view url) {
  if (is_connection_error(error)) return explain_connection(error, url);
  std::string line = error.message();
  if (error.sys_errno() != 0) return line;  // of a local file: it names path and cause
  if (!error.field().empty() && !contains(line, error.field())) {
    line.insert(0, translated(kFlags, error.field()) + ": ");
  }
  // The server's own advice comes after a semicolon. It fits best, except that it knows no verbs.
  std::string hint(advice(error));
  size_t semicolon = line.find("; ");
  if (line.ends_with(')')) return line;
  if (semicolon != line.npos) {
    if (error.code() != ErrorCode::NotFound || hint.empty()) {
      hint = translated(kAdvice, line.substr(semicolon + 2));
    }
    line.resize(semicolon);
  }
  return hint.empty() ? line : fmt::format("{} ({})", line, hint);
}

int report(const Error& error, std::string_view url) {
  print_line(explain(error, url));
  return kOwnFailure;
}

int report_usage(std::string_view what) {
  print_line(what);
  return kUsageError;
}

int start_exit_code(const Error& error) {
  if (error.field() != "command" && error.field() != "executable") return kOwnFailure;
  if (error.code() == ErrorCode::NotFound) return kNotFound;
  return error.code() == ErrorCode::InvalidArgument ? kOwnFailure : kNotExecutable;
}

int report_start(const Error& error, const std::string& command, std::string_view url) {
  int code = start_exit_code(error);
  if (code == kNotFound) {
    print_line(
        fmt::format("{}: command not found in the sandbox (check the name and PATH)", command));
  } else if (code == kNotExecutable) {
    print_line(fmt::format("{}: cannot be executed: {} (check its mode and format)", command,
                           error.message()));
  } else {
    return report(error, url);
  }
  return code;
}

Result<Client> make_client(const Globals& globals) {
  ClientOptions options = ClientOptions::from_environment();
  if (!globals.url.empty()) options.url = globals.url;
  if (!globals.tenant.empty()) options.tenant = globals.tenant;
  if (options.api_key.empty() && !is_socket(options.url)) options.api_key = local_key(options.url);
  return Client::connect(std::move(options));
}

void print_out(std::string_view text) { fwrite(text.data(), 1, text.size(), stdout); }

std::string indent_json(std::string_view json) {
  std::string out;
  int depth = 0;
  bool in_string = false;
  auto new_line = [&] { out.append("\n").append(static_cast<size_t>(depth) * 2, ' '); };
  for (size_t i = 0; i < json.size(); i++) {
    char c = json[i];
    if (in_string) {
      out.push_back(c);
      if (c == '\\' && i + 1 < json.size())
        out.push_back(json[++i]);
      else if (c == '"')
        in_string = false;
      continue;
    }
    bool opens = c == '{' || c == '[';
    bool closes = c == '}' || c == ']';
    if (c == ' ' || c == '\n') continue;
    if (opens && i + 1 < json.size() && (json[i + 1] == '}' || json[i + 1] == ']')) {
      out.push_back(c);
      out.push_back(json[++i]);
      continue;
    }
    if (closes) depth--;
    if (closes) new_line();
    out.push_back(c);
    if (c == '"') in_string = true;
    if (opens) depth++;
    if (opens || c == ',') new_line();
    if (c == ':') out.push_back(' ');
  }
  return out;
}

void print_json(std::string_view json) {
  print_out(isatty(STDOUT_FILENO) == 1 ? indent_json(json) : std::string(json));
  print_out("\n");
}

}  // namespace atl::cli
