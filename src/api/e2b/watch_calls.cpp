// envd's two ways to watch a directory: a stream of events, and a watcher whose events are fetched.
#include <boost/json/object.hpp>

#include "api/e2b/call.h"
#include "api/e2b/connect.h"
#include "api/e2b/routes.h"
#include "api/e2b/watches.h"
#include "api/file_path.h"
#include "base/json_escape.h"

namespace atl::api::e2b {
namespace {

namespace json = boost::json;
using http::JsonObjectReader;

struct Watched {
  Call call;
  std::unique_ptr<FileWatcher> watcher;
  std::string base;
};

Task<Result<Watched>> open_watch(Context& context, http::Request& request) {
  ATOLL_CO_ASSIGN(auto document, co_await read_message(request));
  ATOLL_CO_ASSIGN(const json::object* object, document.object());
  JsonObjectReader reader(*object);
  ATOLL_CO_ASSIGN(auto path, reader.optional_string("path"));
  ATOLL_CO_ASSIGN(auto recursive, reader.optional_bool("recursive"));
  ATOLL_CO_ASSIGN(auto entries, reader.optional_bool("includeEntry"));
  ATOLL_CO_TRY(reader.optional_bool("allowNetworkMounts"));  // there are none
  ATOLL_CO_TRY(reader.finish());
  ATOLL_CO_TRY(check_path(path.value_or(""), "path"));
  if (entries.value_or(false)) {
    co_return fail(Error(ErrorCode::NotSupported,
                         "'includeEntry' is not supported: ask for the "
                         "file's information when its event comes")
                       .with_field("includeEntry"));
  }
  ATOLL_CO_ASSIGN(Call call, co_await open_call(context, request));
  std::string base = call.resolve(path.value_or(""));
  ATOLL_CO_ASSIGN(FileEntry entry, co_await call.session().stat(base, call.user));
  if (entry.kind != FileKind::Directory && entry.target_kind != FileKind::Directory) {
    co_return fail(
        Error(ErrorCode::InvalidArgument, "path " + base + " not a directory").with_field("path"));
  }
  ATOLL_CO_ASSIGN(auto watcher,
                  co_await call.session().watch(base, recursive.value_or(false), call.user));
  co_return Watched{std::move(call), std::move(watcher), std::move(base)};
}

Task<Result<void>> relay(FileWatcher& watcher, EventTranslator translator,
                         MessageStream& messages) {
  ATOLL_CO_TRY(co_await messages.send(R"({"start":{}})"));
  for (;;) {
    auto event = co_await watcher.next();
    if (!event) co_return co_await messages.finish(&event.error());
    for (const std::string& text : co_await translator.translate(std::move(*event))) {
      ATOLL_CO_TRY(co_await messages.send(R"({"filesystem":)" + text + "}"));
    }
  }
}

Task<Result<void>> watch_dir(Context& context, http::Request& request,
                             http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(Watched on, co_await open_watch(context, request));
  std::shared_ptr<FileWatcher> watcher = std::move(on.watcher);
  writer.on_closed([watcher] { watcher->cancel(); });
  auto messages = std::make_shared<MessageStream>(writer, R"({"keepalive":{}})");
  auto result = co_await messages->start(keepalive_interval(request));
  EventTranslator translator(on.call.target.session, on.base);
  if (result) result = co_await relay(*watcher, std::move(translator), *messages);
  co_await messages->close();
  co_return result;
}

Task<Result<void>> create_watcher(Watches& watches, Context& context, http::Request& request,
                                  http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(Watched on, co_await open_watch(context, request));
  ATOLL_CO_ASSIGN(std::string id,
                  co_await watches.add(on.call.target, std::move(on.watcher), std::move(on.base)));
  co_return co_await writer.send_json(R"({"watcherId":")" + id + R"("})");
}

struct WatcherCall {
  Call call;
  std::string id;
};

Task<Result<WatcherCall>> open_watcher(Context& context, http::Request& request) {
  ATOLL_CO_ASSIGN(auto document, co_await read_message(request));
  ATOLL_CO_ASSIGN(const json::object* object, document.object());
  JsonObjectReader reader(*object);
  ATOLL_CO_ASSIGN(std::string id, reader.require_string("watcherId"));
  ATOLL_CO_TRY(reader.finish());
  ATOLL_CO_ASSIGN(Call call, co_await open_call(context, request));
  co_return WatcherCall{std::move(call), std::move(id)};
}

Task<Result<void>> get_events(Watches& watches, Context& context, http::Request& request,
                              http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(WatcherCall on, co_await open_watcher(context, request));
  ATOLL_CO_ASSIGN(std::string events, watches.take(on.call.target.sandbox->record.id, on.id));
  co_return co_await writer.send_json(R"({"events":)" + events + "}");
}

Task<Result<void>> remove_watcher(Watches& watches, Context& context, http::Request& request,
                                  http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(WatcherCall on, co_await open_watcher(context, request));
  watches.remove(on.call.target.sandbox->record.id, on.id);
  co_return co_await writer.send_json("{}");
}

}  // namespace

void add_watch_calls(ControlRoutes& routes) {
  using Handler = Task<Result<void>> (*)(Watches&, Context&, http::Request&, http::ResponseWriter&);
  auto watches = std::make_shared<Watches>();
  auto with = [watches](Handler handler) -> Action {
    return
        [watches, handler](Context& context, http::Request& request, http::ResponseWriter& writer) {
          return handler(*watches, context, request, writer);
        };
  };
  constexpr auto kRead = Access::RuntimeRead;
  routes.add(kRead, "POST", "/filesystem.Filesystem/WatchDir", watch_dir);
  routes.add(kRead, "POST", "/filesystem.Filesystem/CreateWatcher", with(create_watcher));
  routes.add(kRead, "POST", "/filesystem.Filesystem/GetWatcherEvents", with(get_events));
  routes.add(kRead, "POST", "/filesystem.Filesystem/RemoveWatcher", with(remove_watcher));
}

}  // namespace atl::api::e2b
