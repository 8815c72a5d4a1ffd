// Git verbs: git itself, run inside the sandbox, with its answers as JSON.
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <charconv>

#include "api/file_path.h"
#include "api/routes.h"
#include "api/shapes.h"
#include "base/json_escape.h"

namespace atl::api {
namespace {

namespace json = boost::json;

constexpr std::chrono::minutes kLocalTime{1};
constexpr std::chrono::minutes kRemoteTime{10};
constexpr char kField = '\x1f';

// "ref" and the like come from outside: one that looks like an option is not a name.
Result<void> check_name(std::string_view text, std::string_view field) {
  bool plain = !text.empty() && !text.starts_with('-') && text.find('\0') == text.npos &&
               text.size() <= 4096;
  if (plain) return {};
  return fail(
      Error(ErrorCode::InvalidArgument, "this is not a name that git takes").with_field(field));
}

struct Repository {
  Target target;
  std::string cwd;

  Task<Result<std::string>> git(std::vector<std::string> arguments,
                                std::chrono::milliseconds limit = kLocalTime) const {
    RunOptions run;
    run.argv = {"git"};
    run.argv.insert(run.argv.end(), arguments.begin(), arguments.end());
    // All of a sandbox belongs to one tenant: git need not mind which of its users owns what.
    run.env = {{"GIT_TERMINAL_PROMPT", "0"},
               {"LC_ALL", "C.UTF-8"},
               {"GIT_OPTIONAL_LOCKS", "0"},
               {"GIT_CONFIG_COUNT", "1"},
               {"GIT_CONFIG_KEY_0", "safe.directory"},
               {"GIT_CONFIG_VALUE_0", "*"}};
    run.cwd = cwd;
    run.timeout = limit;
    ATOLL_CO_ASSIGN(RunResult result, co_await target.session->run(std::move(run)));
    if (result.process.exit_code == 0) co_return to_valid_utf8(result.stdout_data);
    if (result.process.timed_out) {
      co_return fail(ErrorCode::Timeout, "git " + arguments[0] + " took too long");
    }
    std::string said = result.stderr_data.empty() ? result.stdout_data : result.stderr_data;
    while (!said.empty() && said.back() == '\n') said.pop_back();
    co_return fail(ErrorCode::InvalidState,
                   "git " + arguments[0] + ": " + to_valid_utf8(said.substr(0, 2000)));
  }
};

Task<Result<Repository>> repository(Context& context, const http::Request& request) {
  std::string cwd(request.query.get("cwd").value_or(""));
  ATOLL_CO_TRY(check_path(cwd.empty() ? "." : cwd, "cwd"));
  ATOLL_CO_ASSIGN(Target target, co_await find_running(context, request));
  co_return Repository{std::move(target), std::move(cwd)};
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == text.npos) break;
    text.remove_prefix(at + 1);
  }
  return parts;
}

int64_t to_number(std::string_view text) {
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// `git status --porcelain=v2 --branch -z`: headers, then one entry after another.
class StatusReader {
 public:
  json::object read(std::string_view text) {
    auto parts = split(text, '\0');
    for (size_t i = 0; i < parts.size(); i++) {
      std::string_view line = parts[i];
      if (line.starts_with("# ")) header(line.substr(2));
      if (line.starts_with("1 ")) changed(line, 8);
      if (line.starts_with("u ")) changed(line, 10);
      if (line.starts_with("2 ")) {
        changed(line, 9);
        i++;  // the path it had before
      }
      if (line.starts_with("? ")) untracked_.emplace_back(line.substr(2));
    }
    bool dirty = !staged_.empty() || !modified_.empty() || !untracked_.empty();
    return {{"branch", branch_},     {"head", head_},          {"isDirty", dirty},
            {"ahead", ahead_},       {"behind", behind_},      {"staged", staged_},
            {"modified", modified_}, {"untracked", untracked_}};
  }

 private:
  void header(std::string_view line) {
    auto words = split(line, ' ');
    if (words.size() < 2) return;
    if (words[0] == "branch.oid" && words[1] != "(initial)") head_ = words[1];
    if (words[0] == "branch.head") branch_ = words[1];
    if (words[0] == "branch.ab" && words.size() == 3) {
      ahead_ = to_number(words[1].substr(1));
      behind_ = to_number(words[2].substr(1));
    }
  }

  void changed(std::string_view line, size_t fields_before_path) {
    std::string_view state = line.substr(2, 2);
    std::string_view path = line;
    for (size_t i = 0; i < fields_before_path && !path.empty(); i++) {
      size_t space = path.find(' ');
      path = space == path.npos ? std::string_view() : path.substr(space + 1);
    }
    if (state[0] != '.') staged_.emplace_back(path);
    if (state[1] != '.') modified_.emplace_back(path);
  }

  std::string branch_, head_;
  int64_t ahead_ = 0, behind_ = 0;
  json::array staged_, modified_, untracked_;
};

Task<Result<void>> status(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto repo, co_await repository(context, request));
  ATOLL_CO_ASSIGN(std::string text,
                  co_await repo.git({"status", "--porcelain=v2", "--branch", "-z"}));
  co_return co_await writer.send_json(json::serialize(StatusReader().read(text)));
}

std::string commit_format() {
  std::string format = "--format=";
  for (std::string_view part : {"%H", "%an", "%ae", "%aI", "%B"}) {
    format.append(part).push_back(kField);
  }
  return format;
}

json::object commit_json(std::string_view text) {
  auto fields = split(text, kField);
  fields.resize(5);
  std::string message(fields[4]);
  while (!message.empty() && message.back() == '\n') message.pop_back();
  return {{"sha", fields[0]},    {"shortSha", fields[0].substr(0, 7)},
          {"author", fields[1]}, {"email", fields[2]},
          {"date", fields[3]},   {"message", message}};
}

Task<Result<void>> history(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(uint64_t limit, number(request, "limit", 10));
  ATOLL_CO_ASSIGN(auto repo, co_await repository(context, request));
  ATOLL_CO_ASSIGN(
      std::string text,
      co_await repo.git(
          {"log", "-z", "-n", std::to_string(std::min<uint64_t>(limit, 1000)), commit_format()}));
  json::array commits;
  for (std::string_view one : split(text, '\0')) {
    if (!one.empty()) commits.push_back(commit_json(one));
  }
  co_return co_await writer.send_json(
      json::serialize(json::object{{"commits", std::move(commits)}}));
}

std::string_view change_name(char letter) {
  switch (letter) {
    case 'A':
      return "added";
    case 'D':
      return "deleted";
    case 'R':
    case 'C':
      return "renamed";
    default:
      return "modified";
  }
}

// --name-status -z: "M\0path\0", "R100\0old\0new\0".
std::map<std::string, std::string> change_names(std::string_view text) {
  std::map<std::string, std::string> names;
  auto parts = split(text, '\0');
  for (size_t i = 0; i + 1 < parts.size(); i += 2) {
    if (parts[i].empty()) break;
    char letter = parts[i][0];
    if (letter == 'R' || letter == 'C') i++;
    if (i + 1 < parts.size()) names[std::string(parts[i + 1])] = change_name(letter);
  }
  return names;
}

Task<Result<void>> diff(Context& context, http::Request& request, http::ResponseWriter& writer) {
  std::string ref(request.query.get("ref").value_or("HEAD"));
  ATOLL_CO_TRY(check_name(ref, "ref"));
  ATOLL_CO_ASSIGN(auto repo, co_await repository(context, request));
  ATOLL_CO_ASSIGN(std::string raw, co_await repo.git({"diff", "--no-ext-diff", ref, "--"}));
  ATOLL_CO_ASSIGN(std::string counts,
                  co_await repo.git({"diff", "--no-renames", "--numstat", "-z", ref, "--"}));
  ATOLL_CO_ASSIGN(std::string kinds,
                  co_await repo.git({"diff", "--no-renames", "--name-status", "-z", ref, "--"}));
  auto names = change_names(kinds);
  json::array files;
  int64_t additions = 0, deletions = 0;
  for (std::string_view line : split(counts, '\0')) {
    auto fields = split(line, '\t');
    if (fields.size() != 3) continue;
    int64_t added = to_number(fields[0]), removed = to_number(fields[1]);
    additions += added;
    deletions += removed;
    auto name = names.find(std::string(fields[2]));
    files.push_back(json::object{{"path", fields[2]},
                                 {"status", name == names.end() ? "modified" : name->second},
                                 {"additions", added},
                                 {"deletions", removed}});
  }
  json::object body{{"files", std::move(files)},
                    {"additions", additions},
                    {"deletions", deletions},
                    {"raw", raw}};
  co_return co_await writer.send_json(json::serialize(body));
}

Task<Result<void>> branches(Context& context, http::Request& request,
                            http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto repo, co_await repository(context, request));
  ATOLL_CO_ASSIGN(std::string text,
                  co_await repo.git(
                      {"for-each-ref", "refs/heads",
                       "--format=%(refname:short)%1f%(HEAD)%1f%(upstream:short)%1f%(objectname)"}));
  json::array list;
  for (std::string_view line : split(text, '\n')) {
    auto fields = split(line, kField);
    if (fields.size() < 4) continue;
    json::object branch{{"name", fields[0]}, {"current", fields[1] == "*"}, {"commit", fields[3]}};
    if (!fields[2].empty()) branch["upstream"] = fields[2];
    list.push_back(std::move(branch));
  }
  co_return co_await writer.send_json(json::serialize(json::object{{"branches", std::move(list)}}));
}

Task<Result<void>> add(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request));
  ATOLL_CO_ASSIGN(const json::object* object, document.object());
  http::JsonObjectReader reader(*object);
  ATOLL_CO_ASSIGN(auto paths, reader.string_array("paths"));
  ATOLL_CO_TRY(reader.finish());
  if (paths.empty()) {
    co_return fail(Error(ErrorCode::InvalidArgument, "name the paths to add").with_field("paths"));
  }
  std::vector<std::string> arguments{"add", "--"};
  for (std::string& path : paths) {
    ATOLL_CO_TRY(check_path(path, "paths"));
    arguments.push_back(std::move(path));
  }
  ATOLL_CO_ASSIGN(auto repo, co_await repository(context, request));
  ATOLL_CO_TRY(co_await repo.git(std::move(arguments)));
  co_return co_await writer.send_json(std::string(kSuccess));
}

Task<Result<void>> commit(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request));
  ATOLL_CO_ASSIGN(const json::object* object, document.object());
  http::JsonObjectReader reader(*object);
  ATOLL_CO_ASSIGN(std::string message, reader.require_string("message"));
  ATOLL_CO_ASSIGN(auto amend, reader.optional_bool("amend"));
  ATOLL_CO_TRY(reader.finish());
  if (message.empty() || message.find('\0') != message.npos) {
    co_return fail(Error(ErrorCode::InvalidArgument, "a commit needs a message of text")
                       .with_field("message"));
  }
  ATOLL_CO_ASSIGN(auto repo, co_await repository(context, request));
  std::vector<std::string> arguments{"commit", "--message=" + message};
  if (amend.value_or(false)) arguments.emplace_back("--amend");
  ATOLL_CO_TRY(co_await repo.git(std::move(arguments)));
  ATOLL_CO_ASSIGN(std::string text, co_await repo.git({"log", "-z", "-n", "1", commit_format()}));
  co_return co_await writer.send_json(json::serialize(commit_json(text)));
}

// push and pull: one flag each, and the network.
Task<Result<void>> exchange(Context& context, http::Request& request, http::ResponseWriter& writer,
                            std::string verb, std::string_view flag, std::string option) {
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request));
  ATOLL_CO_ASSIGN(const json::object* object, document.object());
  http::JsonObjectReader reader(*object);
  ATOLL_CO_ASSIGN(auto wanted, reader.optional_bool(flag));
  ATOLL_CO_TRY(reader.finish());
  ATOLL_CO_ASSIGN(auto repo, co_await repository(context, request));
  std::vector<std::string> arguments{std::move(verb)};
  if (wanted.value_or(false)) arguments.push_back(std::move(option));
  ATOLL_CO_TRY(co_await repo.git(std::move(arguments), kRemoteTime));
  co_return co_await writer.send_json(std::string(kSuccess));
}

Task<Result<void>> push(Context& context, http::Request& request, http::ResponseWriter& writer) {
  return exchange(context, request, writer, "push", "force", "--force");
}

Task<Result<void>> pull(Context& context, http::Request& request, http::ResponseWriter& writer) {
  return exchange(context, request, writer, "pull", "rebase", "--rebase");
}

Task<Result<void>> checkout(Context& context, http::Request& request,
                            http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request));
  ATOLL_CO_ASSIGN(const json::object* object, document.object());
  http::JsonObjectReader reader(*object);
  ATOLL_CO_ASSIGN(std::string ref, reader.require_string("ref"));
  ATOLL_CO_ASSIGN(auto create, reader.optional_bool("create"));
  ATOLL_CO_TRY(reader.finish());
  ATOLL_CO_TRY(check_name(ref, "ref"));
  ATOLL_CO_ASSIGN(auto repo, co_await repository(context, request));
  std::vector<std::string> arguments{"checkout"};
  if (create.value_or(false)) arguments.emplace_back("-b");
  arguments.insert(arguments.end(), {ref, "--"});
  ATOLL_CO_TRY(co_await repo.git(std::move(arguments)));
  co_return co_await writer.send_json(std::string(kSuccess));
}

}  // namespace

void add_git_routes(RuntimeRoutes& routes) {
  routes.add(Access::RuntimeRead, "GET", "/git/status", status);
  routes.add(Access::RuntimeRead, "GET", "/git/log", history);
  routes.add(Access::RuntimeRead, "GET", "/git/diff", diff);
  routes.add(Access::RuntimeRead, "GET", "/git/branches", branches);
  routes.add(Access::RuntimeWrite, "POST", "/git/add", add);
  routes.add(Access::RuntimeWrite, "POST", "/git/commit", commit);
  routes.add(Access::RuntimeWrite, "POST", "/git/push", push);
  routes.add(Access::RuntimeWrite, "POST", "/git/pull", pull);
  routes.add(Access::RuntimeWrite, "POST", "/git/checkout", checkout);
}

}  // namespace atl::api
