// The client against a small server that answers as docs/api/http.md has it.
#include "atoll/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <mutex>

#include "client/decode.h"
#include "http/http_test_support.h"
#include "http/sse.h"

namespace atl {
namespace {

using http::Request;
using http::Response;
using http::ResponseWriter;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kRuntime = "/v1/sandboxes/{id}/runtime";

// What the last request was, as the server saw it.
struct Seen {
  std::mutex mutex;
  std::string target;
  std::string body;
  std::string authorization;
  std::string tenant;
};

class ClientTest : public ::testing::Test {
 protected:
  ClientTest() : server_([this](http::Router& router) { add_routes(router); }) {}

  Client client() {
    ClientOptions options;
    options.url = server_.endpoint();
    options.api_key = "secret";
    options.tenant = "acme";
    return std::move(*Client::connect(options));
  }
  std::string body() {
    std::lock_guard lock(seen_.mutex);
    return seen_.body;
  }
  std::string target() {
    std::lock_guard lock(seen_.mutex);
    return seen_.target;
  }

  void answer(http::Router& router, std::string_view method, std::string_view pattern,
              std::string text, int status = 200) {
    Seen& seen = seen_;
    std::string& stored = stored_;
    router.add(method, pattern,
               [&seen, &stored, text = std::move(text), status](
                   Request& request, ResponseWriter& writer) -> Task<void> {
                 auto all = co_await request.body->read_all(64 << 20);
                 {
                   std::lock_guard lock(seen.mutex);
                   seen.target = request.target;
                   seen.body = all.value_or("");
                   seen.authorization = request.headers.get("authorization").value_or("");
                   seen.tenant = request.headers.get("atoll-tenant").value_or("");
                   if (request.method == "PUT") stored = seen.body;
                 }
                 co_await writer.send(Response::json(text == "STORED" ? stored : text, status));
               });
  }

  static Task<void> attach(Request&, ResponseWriter& writer) {
    auto socket = co_await writer.upgrade_websocket({});
    if (!socket) co_return;
    auto& peer = **socket;
    co_await peer.send_binary(std::string("\x01out\0", 5));
    co_await peer.send_binary(
        "\x02"
        "err");
    co_await peer.send_text(R"({"type":"lost","stream":"stdout","bytes":7})");
    for (;;) {
      auto message = co_await peer.receive();
      if (!message) co_return;
      if (message->binary) co_await peer.send_binary("\x01" + message->data.substr(1));
      if (message->data == R"({"type":"eof"})") break;
      if (!message->binary) co_await peer.send_text(R"({"type":"error","message":"no"})");
    }
    co_await peer.send_text(R"({"type":"exit","process":{"pid":7,"exitCode":3}})");
    co_await peer.close(http::CloseCode::Normal, "");
  }

  static Task<void> logs(Request&, ResponseWriter& writer) {
    http::EventStream events(writer);
    co_await events.start();
    co_await events.send("heartbeat", "{}");
    co_await events.send("stderr", R"({"data":"oops","offset":4,"timestamp":"t"})");
    co_await events.send("exit", R"({"pid":7,"exitCode":0})");
    co_await events.finish();
  }

  static Task<void> sandbox_events(Request& request, ResponseWriter& writer) {
    http::EventStream events(writer);
    co_await events.start();
    if (!request.headers.get("last-event-id")) {
      co_await events.send("heartbeat", "{}", "4");
      co_await events.send("sandbox.stopped",
                           R"({"at":"t","sandboxId":"sandbox-1","name":"web","reason":"why"})",
                           "5");
    }
    co_await events.finish();
  }

  static Task<void> watch(Request&, ResponseWriter& writer) {
    http::EventStream events(writer);
    co_await events.start();
    co_await events.send("ready", "{}");
    co_await events.send("created", R"({"path":"/workspace/a","isDir":false})");
    co_await events.finish();
  }

  void add_routes(http::Router& router) {
    std::string runtime(kRuntime);
    answer(router, "POST", "/v1/sandboxes", kSandbox, 201);
    answer(router, "GET", "/v1/sandboxes", std::string(R"({"sandboxes":[)") + kSandbox + "]}");
    answer(router, "GET", "/v1/sandboxes/{id}",
           R"({"success":false,"error":{"code":"NOT_FOUND","message":"no sandbox 'x'",)"
           R"("fields":["id"]}})",
           404);
    answer(router, "PATCH", "/v1/sandboxes/{id}", kSandbox);
    answer(router, "POST", runtime + "/process/spawn",
           R"({"success":true,"data":{"pid":7,"running":true}})");
    answer(router, "POST", runtime + "/terminals/commands",
           R"({"success":true,"result":{"exitCode":3,"stdout":"a","durationMicroseconds":5}})");
    answer(router, "GET", runtime + "/fs/list/{path...}",
           R"({"success":true,"data":{"entries":[{"name":"a","isDir":true,"permissions":"0755",)"
           R"("modTime":"2001-09-09T01:46:40.250Z"}],"truncated":true}})");
    answer(router, "GET", runtime + "/fs/stat/{path...}",
           R"({"success":true,"data":{"name":"f","isFile":true,"permissions":"0640",)"
           R"("modTime":"2001-09-09T01:46:40.000Z"}})");
    answer(router, "PUT", runtime + "/fs/upload/{path...}",
           R"({"success":true,"data":{"name":"f","size":5}})");
    answer(router, "GET", runtime + "/fs/download/{path...}", "STORED");
    answer(router, "PUT", runtime + "/fs/upload-dir/{path...}", R"({"success":true})");
    answer(router, "GET", runtime + "/fs/download-dir/{path...}", "STORED");
    answer(router, "GET", "/v1/sandboxes/{id}/wait", kSandbox);
    answer(router, "GET", "/v1/sandboxes/{id}/usage", R"({"cpuSeconds":1.5,"memoryGBSeconds":2})");
    answer(router, "GET", "/v1/usage",
           R"({"activeSandboxes":1,"cpuSeconds":2,"keys":[{"tenant":"acme","keyId":null}]})");
    answer(router, "POST", "/v1/sandboxes/{id}/tokens", R"({"token":"a.b.c","scope":"session"})",
           201);
    answer(router, "POST", "/v1/keys",
           R"({"id":"k1","tenant":"acme","quota":{"cpuCores":1.5},"key":"atoll_x"})", 201);
    answer(router, "PUT", "/v1/secrets/{name}", R"({"name":"TOKEN"})");
    router.add("GET", "/v1/events", sandbox_events);
    router.add("GET", runtime + "/process/{pid}/attach", attach);
    router.add("GET", runtime + "/process/{pid}/logs", logs);
    router.add("GET", runtime + "/fs/watch/{path...}", watch);
  }

  static constexpr const char* kSandbox =
      R"({"id":"sandbox-1","name":"web","status":"running","template":"base","envNames":["A"],)"
      R"("resources":{"cpuCores":1.5,"memoryMB":512,"diskGB":2,"pids":64},"metadata":{"k":"v"},)"
      R"("timings":{"source":"pool","totalMicroseconds":900}})";

  Seen seen_;
  std::string stored_;
  http::testing::TestServer server_;
};

TEST_F(ClientTest, CreateSendsOnlyWhatIsSet) {
  CreateRequest request;
  request.name = "web";
  request.env = {{"A", "1"}};
  request.limits.cpu_millis = 1500;
  request.limits.memory_bytes = 512 << 20;
  request.limits.disk_bytes = uint64_t{2} << 30;
  request.max_lifetime = std::chrono::hours(1);
  auto sandbox = client().create(request);
  ASSERT_TRUE(sandbox) << sandbox.error().message();
  EXPECT_EQ(body(), R"({"name":"web","env":{"A":"1"},"resources":{"cpuCores":1.5E0,"memoryMB":512,)"
                    R"("diskGB":2},"maxLifetimeSeconds":3600})");
  EXPECT_EQ(sandbox->id, "sandbox-1");
  EXPECT_EQ(sandbox->limits.cpu_millis, 1500u);
  EXPECT_EQ(sandbox->limits.memory_bytes, 512u << 20);
  EXPECT_EQ(sandbox->metadata.at("k"), "v");
  EXPECT_EQ(sandbox->timings.source, "pool");
  EXPECT_THAT(sandbox->env_names, ElementsAre("A"));
}

TEST_F(ClientTest, ListPassesItsFilters) {
  ListRequest request;
  request.status = "running";
  request.limit = 5;
  auto all = client().list(request);
  ASSERT_TRUE(all);
  EXPECT_EQ(all->size(), 1u);
  EXPECT_EQ(target(), "/v1/sandboxes?status=running&limit=5");
  std::lock_guard lock(seen_.mutex);
  EXPECT_EQ(seen_.authorization, "Bearer secret");
  EXPECT_EQ(seen_.tenant, "acme");
}

TEST_F(ClientTest, TheServersErrorArrivesWhole) {
  auto found = client().get("x/../y");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code(), ErrorCode::NotFound);
  EXPECT_EQ(found.error().message(), "no sandbox 'x'");
  EXPECT_EQ(found.error().field(), "id");
  EXPECT_EQ(target(), "/v1/sandboxes/x%2F..%2Fy");
}

TEST_F(ClientTest, ArgumentsGoAsTheyAre) {
  SpawnRequest request;
  request.argv = {"sh", "-c", "echo \"$A\""};
  request.pty = true;
  auto process = client().spawn("web", request);
  ASSERT_TRUE(process);
  EXPECT_EQ(process->pid, 7);
  EXPECT_EQ(body(),
            R"({"executable":"sh","args":["-c","echo \"$A\""],"pty":true,"cols":80,"rows":24})");
  auto result = client().exec("web", {.shell = "false"});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->exit_code, 3);
  EXPECT_EQ(body(), R"({"command":"false"})");
}

TEST_F(ClientTest, AttachCarriesBothDirections) {
  auto attachment = client().attach("web", 7);
  ASSERT_TRUE(attachment) << attachment.error().message();
  auto first = attachment->next();
  EXPECT_EQ(first->data, std::string("out\0", 4));
  EXPECT_EQ(first->stream, Stream::Stdout);
  EXPECT_EQ(attachment->next()->stream, Stream::Stderr);
  EXPECT_EQ(attachment->next()->lost, 7u);
  ASSERT_TRUE(attachment->write_input("ping"));
  EXPECT_EQ(attachment->next()->data, "ping");
  ASSERT_TRUE(attachment->signal("SIGINT"));
  EXPECT_EQ(attachment->next()->kind, ProcessEvent::Kind::Refused);
  ASSERT_TRUE(attachment->end_input());
  auto last = attachment->next();
  EXPECT_EQ(last->kind, ProcessEvent::Kind::Exited);
  EXPECT_EQ(last->process.exit_code, 3);
}

TEST_F(ClientTest, LogsAndWatchAreEvents) {
  auto reader = client().logs("web", 7);
  ASSERT_TRUE(reader);
  auto event = reader->next();
  EXPECT_EQ((*event)->data, "oops");
  EXPECT_EQ((*event)->offset, 4u);
  EXPECT_EQ((*reader->next())->kind, ProcessEvent::Kind::Exited);
  EXPECT_FALSE(reader->next()->has_value());

  auto watcher = client().watch("web", "");
  ASSERT_TRUE(watcher);
  EXPECT_EQ((*watcher->next())->path, "/workspace/a");
  EXPECT_FALSE(watcher->next()->has_value());
}

TEST_F(ClientTest, CreateNamesSecretsAndARepository) {
  CreateRequest request;
  request.secrets = {"TOKEN"};
  request.git = {.url = "https://h/r", .ref = "main", .depth = 1};
  request.delete_after_stopped = std::chrono::hours(1);
  request.auto_resume = false;
  ASSERT_TRUE(client().create(request));
  EXPECT_EQ(body(), R"({"deleteAfterStoppedSeconds":3600,"autoResume":false,"secrets":["TOKEN"],)"
                    R"("git":{"url":"https://h/r","ref":"main","depth":1}})");
}

TEST_F(ClientTest, KeysSecretsAndTokensAreMade) {
  CreateKeyRequest request;
  request.name = "ci";
  request.quota = {.sandboxes = 2, .memory_bytes = 1 << 20, .disk_bytes = 1};
  request.lifetime = std::chrono::seconds(60);
  auto key = client().create_key(request);
  ASSERT_TRUE(key) << key.error().message();
  EXPECT_EQ(body(), R"({"name":"ci","quota":{"sandboxes":2,"memoryMB":1,"diskGB":1},)"
                    R"("expiresInSeconds":60})");
  EXPECT_EQ(key->text, "atoll_x");
  EXPECT_EQ(key->info.quota.cpu_millis, 1500u);

  auto secret = client().set_secret("a/b", "x\ny");
  ASSERT_TRUE(secret);
  EXPECT_EQ(target(), "/v1/secrets/a%2Fb");
  EXPECT_EQ(body(), R"({"value":"x\ny"})");

  auto token = client().create_token("web", {.scope = "session", .session = "s"});
  ASSERT_TRUE(token);
  EXPECT_EQ(body(), R"({"scope":"session","sessionId":"s"})");
  EXPECT_EQ(token->text, "a.b.c");
}

TEST_F(ClientTest, UsageOfAStoppedSandboxHasNoPresent) {
  auto usage = client().usage("web");
  ASSERT_TRUE(usage);
  EXPECT_EQ(usage->metered.cpu_seconds, 1.5);
  EXPECT_EQ(usage->metered.memory_gb_seconds, 2);
  EXPECT_FALSE(usage->present);
  auto account = client().account_usage();
  ASSERT_TRUE(account);
  ASSERT_EQ(account->keys.size(), 1u);
  EXPECT_EQ(account->keys[0].key_id, "");
}

TEST_F(ClientTest, WaitsForAState) {
  auto sandbox = client().wait_for("web", "running", std::chrono::seconds(5));
  ASSERT_TRUE(sandbox);
  EXPECT_THAT(target(), HasSubstr("/v1/sandboxes/web/wait?status=running&timeoutMs="));
}

TEST_F(ClientTest, EventsKnowWhereToGoOn) {
  Client here = client();
  auto reader = here.events();
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->position(), "");
  auto event = reader->next();
  ASSERT_TRUE(event && *event);
  EXPECT_EQ((*event)->type, "sandbox.stopped");
  EXPECT_EQ((*event)->sandbox_name, "web");
  EXPECT_EQ((*event)->reason, "why");
  EXPECT_FALSE(reader->next()->has_value());
  EXPECT_EQ(reader->position(), "5");
  auto again = here.events({.since = "5"});
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->next()->has_value());
}

TEST_F(ClientTest, PathsAreEncodedAndRelativeOnesStartAtTheWorkspace) {
  auto list = client().list_files("web", "a b/ü?");
  ASSERT_TRUE(list);
  EXPECT_TRUE(list->truncated);
  EXPECT_EQ(list->entries[0].kind, FileKind::Directory);
  EXPECT_EQ(list->entries[0].modified_ms, 1'000'000'000'250);
  EXPECT_EQ(target(),
            "/v1/sandboxes/web/runtime/fs/list/workspace/a%20b/%C3%BC%3F?recursive=false&all=true");
}

TEST_F(ClientTest, FilesGoUpAndDown) {
  std::string bytes = std::string("\0\xff", 2) + std::string(700'000, 'x');
  ASSERT_TRUE(client().write_file("web", "/f", bytes, 0755));
  EXPECT_THAT(target(), HasSubstr("/fs/upload/f?mode=0755"));
  EXPECT_EQ(*client().read_file("web", "/f"), bytes);

  http::testing::TempDir dir;
  uint64_t reported = 0;
  auto done = client().download_file("web", "/f", dir.file("f"),
                                     [&](uint64_t count, auto) { reported = count; });
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_EQ(reported, bytes.size());
  EXPECT_EQ(std::filesystem::file_size(dir.file("f")), bytes.size());
  EXPECT_EQ(std::filesystem::status(dir.file("f")).permissions(), std::filesystem::perms(0640));
  ASSERT_TRUE(client().upload_file("web", dir.file("f"), "/g"));
  EXPECT_EQ(*client().read_file("web", "/g"), bytes);
}

TEST_F(ClientTest, ADirectoryGoesUpAndDown) {
  http::testing::TempDir from;
  http::testing::TempDir to;
  std::ofstream(from.file("a")) << "hello";
  std::filesystem::create_directories(from.file("sub"));
  std::ofstream(from.file("sub/b")) << "there";
  auto sent = client().upload_dir("web", from.file(""), "/workspace/d");
  ASSERT_TRUE(sent) << sent.error().message();
  EXPECT_EQ(sent->files, 2u);
  auto got = client().download_dir("web", "/workspace/d", to.file("copy"));
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_TRUE(std::filesystem::exists(to.file("copy/sub/b")));
}

TEST(ClientOptions, ComeFromTheEnvironment) {
  unsetenv("ATOLL_URL");
  unsetenv("ATOLL_SOCKET");
  unsetenv("ATOLL_API_KEY");
  EXPECT_EQ(ClientOptions::from_environment().url, "unix:/run/atoll/atoll.sock");
  setenv("ATOLL_RUN_DIR", "/r", 1);
  EXPECT_EQ(ClientOptions::from_environment().url, "unix:/r/atoll.sock");
  unsetenv("ATOLL_RUN_DIR");
  setenv("ATOLL_SOCKET", "/x.sock", 1);
  EXPECT_EQ(ClientOptions::from_environment().url, "unix:/x.sock");
  setenv("ATOLL_URL", "http://h:1", 1);
  setenv("ATOLL_API_KEY", "k", 1);
  EXPECT_EQ(ClientOptions::from_environment().url, "http://h:1");
  EXPECT_EQ(ClientOptions::from_environment().api_key, "k");
  setenv("ATOLL_TENANT", "acme", 1);
  EXPECT_EQ(ClientOptions::from_environment().tenant, "acme");
  unsetenv("ATOLL_TENANT");
  unsetenv("ATOLL_URL");
  unsetenv("ATOLL_SOCKET");
  unsetenv("ATOLL_API_KEY");
}

TEST(ClientOptions, BadOnesAreRefusedBeforeAnyConnection) {
  ClientOptions options;
  options.url = "ftp://x";
  EXPECT_FALSE(Client::connect(options));
  options.url = "http://h:1";
  options.api_key = "a\r\nb";
  EXPECT_FALSE(Client::connect(options));
}

TEST(ParseTime, ReadsMilliseconds) {
  EXPECT_EQ(client::parse_time_ms("1970-01-01T00:00:01.5Z"), 1500);
  EXPECT_EQ(client::parse_time_ms("1970-01-01T00:00:01Z"), 1000);
  EXPECT_EQ(client::parse_time_ms("soon"), 0);
}

}  // namespace
}  // namespace atl
