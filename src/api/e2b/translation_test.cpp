// The values that cross between E2B's words and ours.
#include <gmock/gmock.h>

#include "api/e2b/call.h"
#include "api/e2b/connect.h"
#include "api/e2b/errors.h"
#include "api/e2b/list_query.h"
#include "api/e2b/process_body.h"
#include "api/e2b/shapes.h"
#include "api/e2b/watches.h"

namespace atl::api::e2b {
namespace {

using testing::HasSubstr;

TEST(E2bConnect, EnvelopesHaveTheirLength) {
  using namespace std::string_literals;
  EXPECT_EQ(envelope("{}"), "\0\0\0\0\2{}"s);
  EXPECT_EQ(end_envelope(nullptr), "\2\0\0\0\2{}"s);
  Error missing(ErrorCode::NotFound, "no such file");
  EXPECT_THAT(end_envelope(&missing), HasSubstr(R"("code":"not_found")"));
}

TEST(E2bErrors, SayNothingAboutWhatAStrangerMayNotKnow) {
  http::Request request;
  request.path = "/health";
  request.params.add("id", "sb-1");
  auto stranger = sandbox_error(request, Error(ErrorCode::Unauthenticated, "wrong token"));
  auto gone = sandbox_error(request, Error(ErrorCode::InvalidState, "the sandbox is stopped"));
  EXPECT_EQ(stranger.status, 502);
  EXPECT_EQ(stranger.body, gone.body);
  EXPECT_THAT(stranger.body, HasSubstr("The sandbox was not found"));
}

TEST(E2bErrors, HaveTheShapeOfTheirProtocol) {
  http::Request call;
  call.path = "/filesystem.Filesystem/Stat";
  auto unary = sandbox_error(call, Error(ErrorCode::NotFound, "no"));
  EXPECT_EQ(unary.status, 404);
  EXPECT_EQ(unary.body, R"({"code":"not_found","message":"no"})");
  call.headers.add("Content-Type", "application/connect+json");
  EXPECT_EQ(sandbox_error(call, Error(ErrorCode::NotFound, "no")).status, 200);
  http::Request files;
  files.path = "/files";
  EXPECT_EQ(sandbox_error(files, Error(ErrorCode::NoSpace, "full")).status, 507);
  auto control = control_error(files, Error(ErrorCode::NotSupported, "no").with_field("mcp"));
  EXPECT_THAT(control.body, HasSubstr(R"("fields":["mcp"])"));
}

TEST(E2bProcesses, StartAsAsked) {
  auto document = http::JsonDocument::parse(
      R"({"process":{"cmd":"/bin/bash","args":["-l","-c","ls"],"envs":{"A":"b"}},"stdin":false})");
  auto options = read_start(*document);
  ASSERT_TRUE(options);
  EXPECT_EQ(options->argv, (std::vector<std::string>{"/bin/bash", "-l", "-c", "ls"}));
  EXPECT_EQ(options->label, "ls");
  EXPECT_EQ(options->env.at("A"), "b");
  EXPECT_FALSE(options->stdin_open);
  EXPECT_FALSE(options->pty);
}

TEST(E2bProcesses, RefuseWhatIsUnknownByName) {
  auto tagged = http::JsonDocument::parse(R"({"process":{"cmd":"x"},"tag":"t"})");
  EXPECT_EQ(read_start(*tagged).error().field(), "tag");
  auto foreign = http::JsonDocument::parse(R"({"process":{"cmd":"x","nice":1}})");
  EXPECT_EQ(read_start(*foreign).error().field(), "process.nice");
}

TEST(E2bProcesses, EndInGosWords) {
  EXPECT_EQ(end_json({.exit_code = 0}),
            R"({"event":{"end":{"exitCode":0,"exited":true,"status":"exit status 0"}}})");
  EXPECT_THAT(end_json({.exit_code = 3}), HasSubstr(R"("error":"exit status 3")"));
  auto killed = end_json({.exit_code = 137, .exit_signal = 9});
  EXPECT_THAT(killed, HasSubstr(R"("exitCode":-1,"exited":false,"status":"signal: killed")"));
}

TEST(E2bFiles, EntriesOfLinksHaveTheTypeOfTheirTarget) {
  FileEntry link{.path = "/a/link", .link_target = "/etc", .kind = FileKind::Symlink};
  link.target_kind = FileKind::Directory;
  link.mode = 0777;
  auto object = entry_json(link);
  EXPECT_EQ(object.at("type").as_string(), "FILE_TYPE_DIRECTORY");
  EXPECT_EQ(object.at("symlinkTarget").as_string(), "/etc");
  EXPECT_EQ(object.at("name").as_string(), "link");
  FileEntry file{.path = "/a/f", .mode = 0640};
  EXPECT_EQ(permissions_text(file), "-rw-r-----");
}

TEST(E2bFiles, TemporaryNamesAreKnown) {
  for (const char* name : {"/w/.atoll-991137f0cdee284c", "/w/#281"}) {
    EXPECT_TRUE(is_temporary(name)) << name;
  }
  for (const char* name : {"/w/f", "/w/#notes", "/w/#", "/.atoll-x/f"}) {
    EXPECT_FALSE(is_temporary(name)) << name;
  }
}

TEST(E2bUsers, HaveTheHomesOfTheirPasswdFile) {
  std::string_view passwd =
      "root:x:0:0:root:/root:/bin/bash\nuser:x:1:1::/home/user:/bin/sh\nu:x:2";
  EXPECT_EQ(home_in_passwd(passwd, "user"), "/home/user");
  EXPECT_EQ(home_in_passwd(passwd, "use"), "");
  EXPECT_EQ(home_in_passwd(passwd, "u"), "");
}

TEST(E2bUsers, StandInTheHeaderOrTheQuery) {
  http::Request request;
  EXPECT_EQ(*named_user(request), "");
  request.headers.add("Authorization", "Basic cm9vdDo=");
  EXPECT_EQ(*named_user(request), "root");
  request.query.add("username", "user");
  EXPECT_EQ(*named_user(request), "user");
}

TEST(E2bLists, ReadTimesWithAndWithoutOffsets) {
  EXPECT_EQ(*parse_time("1970-01-01T00:00:01Z", "t"), 1000);
  EXPECT_EQ(*parse_time("1970-01-01T01:00:01.25+01:00", "t"), 1250);
  EXPECT_EQ(*parse_time("1969-12-31T23:00:00-01:00", "t"), 0);
  EXPECT_FALSE(parse_time("yesterday", "t"));
  EXPECT_FALSE(parse_time("1970-01-01T00:00:01", "t"));
}

TEST(E2bLists, FiltersMayBeEncodedTwice) {
  http::Request request;
  request.query.add("metadata", "a%20b=c%2526d&e=f");
  request.query.add("state", "running,paused");
  auto query = read_list_query(request);
  ASSERT_TRUE(query);
  EXPECT_EQ(query->metadata.at("a b"), "c&d");
  EXPECT_EQ(query->states.size(), 2u);
}

}  // namespace
}  // namespace atl::api::e2b
