// audit verify, audit tail: on the server's host, as root, whether it runs or not.
#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <deque>
#include <memory>

#include "auth/audit_files.h"
#include "auth/audit_log.h"
#include "auth/audit_verify.h"
#include "cli/config_options.h"
#include "cli/json_out.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "client/decode.h"

namespace atl::cli {
namespace {

constexpr int kFaulty = 1;

struct AuditArguments {
  std::string data_dir;
  auth::AuditAnchors anchors;
  unsigned lines = 20;
};

Option data_dir_flag(AuditArguments& arguments) {
  return {"--data-dir", "DIR", kDataDirHelp, &arguments.data_dir, {}, Complete::File};
}

Result<std::string> audit_dir(const AuditArguments& arguments) {
  ATOLL_ASSIGN(std::string data_dir, data_dir_or_configured(arguments.data_dir));
  return data_dir + "/audit";
}

void print_report_json(const auth::AuditReport& found) {
  JsonObject object;
  object.flag("ok", !found.fault)
      .number("files", static_cast<int64_t>(found.files))
      .number("entries", static_cast<int64_t>(found.entries))
      .text("head", auth::to_string(found.head));
  if (found.fault) {
    object.text("file", found.fault->file)
        .number("line", static_cast<int64_t>(found.fault->line))
        .text("reason", found.fault->reason);
  }
  print_json(object.take());
}

Result<int> verify(const Globals& globals, const AuditArguments& arguments) {
  ATOLL_ASSIGN(std::string dir, audit_dir(arguments));
  ATOLL_ASSIGN(auth::AuditReport found, auth::verify_audit_log(dir, arguments.anchors));
  if (globals.json)
    print_report_json(found);
  else if (!found.fault)
    print_out(fmt::format("{} entries, head {}\n", found.entries, auth::to_string(found.head)));
  if (!found.fault) return 0;
  if (!globals.json) {
    report_usage(fmt::format("{}/{}:{}: {}", dir, found.fault->file, found.fault->line,
                             found.fault->reason));
  }
  return kFaulty;
}

Option head_flag(std::string flag, std::string help, std::function<void(auth::AuditHead)> take) {
  ReadValue read = [take = std::move(take)](const std::string& text) -> Result<void> {
    ATOLL_ASSIGN(auth::AuditHead head, auth::parse_audit_head(text));
    take(std::move(head));
    return {};
  };
  return {std::move(flag), "SEQ:HASH", std::move(help), read};
}

Command verify_command() {
  auto arguments = std::make_shared<AuditArguments>();
  auth::AuditAnchors& anchors = arguments->anchors;
  Command command;
  command.name = "verify";
  command.summary = "Check that no entry of the audit log was changed or taken away";
  command.examples = {"sudo atoll audit verify", "sudo atoll audit verify --head 17:3f0c..."};
  command.options = {
      data_dir_flag(*arguments),
      head_flag("--head", "the head that an earlier run printed, which must still be there",
                [&](auth::AuditHead head) { anchors.head = std::move(head); }),
      head_flag("--start", "the last entry of the files that were archived",
                [&](auth::AuditHead head) { anchors.start = std::move(head); })};
  command.run = [arguments](const Globals& globals) {
    auto code = verify(globals, *arguments);
    return code ? *code : report(code.error());
  };
  return command;
}

void keep_last(std::deque<std::string>& lines, size_t count) {
  while (lines.size() > count) lines.pop_front();
}

// The last lines of one file.
Result<std::deque<std::string>> last_lines(int dir, const std::string& name, size_t count) {
  ATOLL_ASSIGN(UniqueFd file, auth::open_audit_file(dir, name, O_RDONLY));
  std::deque<std::string> lines;
  std::string rest;
  std::string block(64u << 10, '\0');
  while (true) {
    ssize_t size = read(file.get(), block.data(), block.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return fail_errno("read", name);
    if (size == 0) break;
    rest.append(block, 0, static_cast<size_t>(size));
    size_t begin = 0;
    for (size_t end; (end = rest.find('\n', begin)) != rest.npos; begin = end + 1) {
      lines.push_back(rest.substr(begin, end - begin));
    }
    rest.erase(0, begin);
    keep_last(lines, count);
  }
  if (!rest.empty()) lines.push_back(std::move(rest));
  keep_last(lines, count);
  return lines;
}

// The newest entries, whatever file they are in.
Result<std::deque<std::string>> newest(const std::string& path, size_t count) {
  UniqueFd dir(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!dir.valid()) return fail_errno("open", path);
  ATOLL_ASSIGN(auto names, auth::rotated_audit_files(dir.get()));
  names.emplace_back(auth::kAuditFile);
  std::deque<std::string> lines;
  for (auto name = names.rbegin(); name != names.rend() && lines.size() < count; name++) {
    ATOLL_ASSIGN(auto older, last_lines(dir.get(), *name, count - lines.size()));
    lines.insert(lines.begin(), older.begin(), older.end());
  }
  return lines;
}

std::string shown(const std::string& line) {
  using client::text_of;
  auto entry = client::parse_answer(line);
  if (!entry) return line;
  std::string target = text_of(*entry, "target");
  std::string text =
      fmt::format("{}  {}  {}  {}  {}  {}", text_of(*entry, "at"), text_of(*entry, "actor"),
                  text_of(*entry, "tenant"), text_of(*entry, "action"),
                  target.empty() ? "-" : target, text_of(*entry, "outcome"));
  std::string detail = text_of(*entry, "detail");
  return detail.empty() ? text : text + "  " + detail;
}

Result<int> tail(const Globals& globals, const AuditArguments& arguments) {
  ATOLL_ASSIGN(std::string dir, audit_dir(arguments));
  ATOLL_ASSIGN(auto lines, newest(dir, arguments.lines));
  for (const std::string& line : lines) {
    print_out((globals.json ? line : printable(shown(line))) + "\n");
  }
  return 0;
}

Command tail_command() {
  auto arguments = std::make_shared<AuditArguments>();
  Command command;
  command.name = "tail";
  command.summary = "Show the newest entries of the audit log: who did what to what";
  command.examples = {"sudo atoll audit tail", "sudo atoll audit tail -n 1000 --json | jq .actor"};
  command.options = {data_dir_flag(*arguments),
                     {"-n,--lines", "N", "how many (default: 20)", &arguments->lines}};
  command.run = [arguments](const Globals& globals) {
    auto code = tail(globals, *arguments);
    return code ? *code : report(code.error());
  };
  return command;
}

}  // namespace

Command audit_command() {
  Command command;
  command.name = "audit";
  command.summary = "Read and check the log of who did what (on the server's host, as root)";
  command.examples = {"sudo atoll audit verify", "sudo atoll audit tail -n 50"};
  command.commands.push_back(verify_command());
  command.commands.push_back(tail_command());
  return command;
}

}  // namespace atl::cli
