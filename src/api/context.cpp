#include "api/context.h"

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <charconv>

#include "base/log.h"
#include "http/status.h"
#include "os/file.h"

namespace atl::api {
namespace {

Result<void> take_turn(Service& service, const Principal& who) {
  if (who.key == nullptr) return {};
  uint32_t rate = who.key->rate_per_s != 0 ? who.key->rate_per_s : service.settings.rate_per_s;
  if (rate == 0) return {};
  return service.limiter.take(who.key->id, rate, 0, os::monotonic_us() / 1000);
}

struct Entry {
  const Principal& who;
  const std::string& action;
  const http::Request& request;
};

// What the path names first.
std::string target_of(const http::Request& request) {
  for (const char* name : {"id", "name", "snapshot", "template"}) {
    if (const std::string& value = request.param(name); !value.empty()) return value;
  }
  return {};
}

auth::AuditEntry line_of(const Entry& entry, std::string outcome) {
  return {.at_ms = sandbox::wall_clock_ms(),
          .actor = entry.who.actor,
          .tenant = entry.who.caller.owner.tenant,
          .action = entry.action,
          .target = target_of(entry.request),
          .outcome = std::move(outcome),
          .peer = entry.request.peer.address};
}

void write_line(auth::AuditLog& audit, const auth::AuditEntry& line) {
  auto written = audit.append(line);
  if (!written) {
    log(LogLevel::Error, "cannot write the audit log", {{"error", written.error().message()}});
  }
}

void note(Service& service, const Entry& entry, std::string outcome) {
  if (service.audit != nullptr) write_line(*service.audit, line_of(entry, std::move(outcome)));
}

// What the installation is asked to change is on record before anything happens. A call into a
// sandbox is written down while the sandbox works on it: ahead of its answer, and not in its way.
Task<void> note_accepted(Service& service, Access access, const Entry& entry) {
  // Some things only an administrator may look at; that alone changes nothing.
  bool looks = entry.request.method == "GET" && !is_runtime(access);
  if (service.audit == nullptr || !changes(access) || looks) co_return;
  if (!is_runtime(access)) co_return note(service, entry, "accepted");
  auto executor = co_await boost::asio::this_coro::executor;
  boost::asio::post(executor, [audit = service.audit, line = line_of(entry, "accepted")] {
    write_line(*audit, line);
  });
}

Result<Principal> admit(Service& service, const Guarded& what, const Dialect& dialect,
                        const http::Request& request) {
  const auto& [access, name, action] = what;
  if (access == Access::Open) return Principal();
  Principal nobody;
  auto who = dialect.authenticate(service, request);
  if (!who) {
    note(service, {nobody, name, request}, "denied: " + who.error().message());
    return who;
  }
  ATOLL_TRY(take_turn(service, *who));
  auto allowed = authorize(*who, access, request);
  if (!allowed) {
    note(service, {*who, name, request}, "denied: " + allowed.error().message());
    return fail(std::move(allowed).error());
  }
  return who;
}

struct Guard {
  Service& service;
  Guarded what;
  Dialect dialect;

  Task<void> refuse(const http::Request& request, const Error& error,
                    http::ResponseWriter& writer) const {
    (void)co_await writer.send(dialect.refuse(request, error));
  }

  Task<void> run(http::Request& request, http::ResponseWriter& writer) const {
    const auto& [access, name, action] = what;
    auto who = admit(service, what, dialect, request);
    if (!who) co_return co_await refuse(request, who.error(), writer);
    co_await note_accepted(service, access, {*who, name, request});
    Context context{.service = service, .manager = service.manager, .who = *who};
    auto result = co_await action(context, request, writer);
    if (result && !context.made.empty()) {
      note(service, {*who, name, request}, "created: " + context.made);
    }
    if (result) co_return;
    if (changes(access)) {
      note(service, {*who, name, request},
           std::string("failed: ") + std::string(http::wire_code(result.error().code())));
    }
    // Once bytes of a body are out an error can only show as a broken connection.
    if (!writer.started()) co_await refuse(request, result.error(), writer);
  }
};

}  // namespace

Dialect own_dialect() {
  return {.authenticate = authenticate, .refuse = [](const http::Request&, const Error& error) {
            return http::error_response(error);
          }};
}

http::Handler guarded(Service& service, Guarded what, const Dialect& dialect) {
  auto guard = std::make_shared<const Guard>(Guard{service, std::move(what), dialect});
  return [guard](http::Request& request, http::ResponseWriter& writer) -> Task<void> {
    return guard->run(request, writer);
  };
}

Task<Result<http::JsonDocument>> read_json(http::Request& request, size_t limit) {
  auto body = co_await request.body->read_all(limit);
  if (!body) co_return fail(std::move(body).error());
  // The document, and what is made of it.
  if (body->size() > http::MemoryShare::kFree) ATOLL_CO_TRY(request.memory.take(2 * body->size()));
  co_return http::JsonDocument::parse(body->empty() ? "{}" : *body, limit);
}

Result<sandbox::SandboxPtr> find_sandbox(Context& context, const http::Request& request) {
  return context.manager.find(context.who.caller, request.param("id"));
}

Task<Result<Target>> find_running(Context& context, const http::Request& request) {
  ATOLL_CO_ASSIGN(sandbox::SandboxPtr sandbox, find_sandbox(context, request));
  ATOLL_CO_ASSIGN(auto session, co_await context.manager.session(sandbox));
  co_return Target(context.manager, std::move(sandbox), std::move(session));
}

Task<Result<void>> keep_point(Context& context, const Target& target, const RunOptions& command) {
  if (!target.sandbox->record.spec.history) co_return Result<void>();
  constexpr size_t kMaxShown = 1024;
  std::string shown = command.label;
  for (const std::string& word :
       command.label.empty() ? command.argv : std::vector<std::string>()) {
    shown += (shown.empty() ? "" : " ") + word;
  }
  co_return co_await context.manager.before_command(target.sandbox, shown.substr(0, kMaxShown));
}

Result<int32_t> pid_of(const http::Request& request) {
  const std::string& text = request.param("pid");
  int32_t pid = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
  if (error == std::errc() && end == text.data() + text.size() && pid > 0) return pid;
  return fail(
      Error(ErrorCode::InvalidArgument, "'" + text + "' is not a process id").with_field("pid"));
}

Result<uint64_t> number(const http::Request& request, std::string_view name, uint64_t fallback) {
  auto value = request.query.get(name);
  if (!value) return fallback;
  uint64_t parsed = 0;
  auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), parsed);
  if (error != std::errc() || end != value->data() + value->size()) {
    return fail(Error(ErrorCode::InvalidArgument, std::string(name) + " must be a whole number")
                    .with_field(name));
  }
  return parsed;
}

}  // namespace atl::api
