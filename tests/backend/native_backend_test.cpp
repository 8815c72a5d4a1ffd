// The contract of SandboxBackend and SandboxSession, on the native backend.
#include <gmock/gmock.h>

#include <boost/asio/detached.hpp>

#include "native_fixture.h"

namespace atl::test {
namespace {

Task<Result<std::string>> read_all(SandboxSession& session, std::string path,
                                   ReadOptions options = {}) {
  ATOLL_CO_ASSIGN(auto reader, co_await session.read_file(std::move(path), options));
  std::string text;
  for (;;) {
    ATOLL_CO_ASSIGN(std::string_view part, co_await reader->read());
    if (part.empty()) co_return text;
    text.append(part);
  }
}

Task<Result<bool>> write_text(SandboxSession& session, std::string path, std::string text) {
  ATOLL_CO_ASSIGN(auto writer, co_await session.write_file(std::move(path), WriteOptions{}));
  ATOLL_CO_TRY(co_await writer->write(text));
  ATOLL_CO_TRY(co_await writer->finish());
  co_return true;
}

RunOptions shell(std::string command) {
  RunOptions options;
  options.argv = {"/bin/sh", "-c", std::move(command)};
  return options;
}

using Backend = NativeFixture;

TEST_F(Backend, AMissingTemplateIsAnErrorOfItsOwn) {
  auto handle = run(backend().create(input("one", "nowhere")));
  ASSERT_FALSE(handle);
  EXPECT_EQ(handle.error().code(), ErrorCode::TemplateMissing);
}

TEST_F(Backend, ConcurrentCreatesWithOneKeyGiveOneSandbox) {
  std::vector<std::string> slots;
  int finished = 0;
  for (int i = 0; i < 8; i++) {
    boost::asio::co_spawn(
        io(),
        [&]() -> Task<void> {
          auto handle = co_await backend().create(input("same"));
          EXPECT_TRUE(handle);
          if (handle) slots.push_back((*handle)->capture_state().metadata.at("slot"));
          if (++finished == 8) io().stop();
        },
        boost::asio::detached);
  }
  io().restart();
  io().run();
  ASSERT_EQ(slots.size(), 8u);
  EXPECT_THAT(slots, testing::Each(slots.front()));
  auto handle = run(backend().create(input("same")));
  EXPECT_TRUE(run((*handle)->destroy()));
}

TEST_F(Backend, DisposeKeepsFilesAndCreateFindsThemAgain) {
  auto first = run(backend().create(input("kept")));
  ASSERT_TRUE(first) << first.error().message();
  ASSERT_TRUE(run(write_text((*first)->session(), "note", "hello")));
  ASSERT_TRUE(run((*first)->dispose()));
  auto second = run(backend().create(input("kept")));
  ASSERT_TRUE(second) << second.error().message();
  EXPECT_NE((*first)->capture_state().metadata, (*second)->capture_state().metadata);
  EXPECT_EQ(*run(read_all((*second)->session(), "/workspace/note")), "hello");
  EXPECT_TRUE(run((*second)->destroy()));
  auto third = run(backend().create(input("kept")));
  ASSERT_TRUE(third);
  EXPECT_EQ(run((*third)->session().exists("/workspace/note")), false);
  EXPECT_TRUE(run((*third)->destroy()));
}

TEST_F(Backend, PrewarmBuildsOnceAndSaysWhenItReused) {
  int bootstraps = 0;
  PrewarmInput wanted;
  wanted.template_key = "with-tools";
  wanted.seed_files = {{"seed.txt", "seeded"}, {"/opt/tool/conf", "x=1"}};
  wanted.bootstrap = [&](SandboxSession& session) -> Task<Result<void>> {
    bootstraps++;
    ATOLL_CO_ASSIGN(RunResult result, co_await session.run(shell("echo built > /opt/built")));
    EXPECT_EQ(result.process.exit_code, 0);
    co_return Result<void>();
  };
  auto first = run(backend().prewarm(wanted));
  ASSERT_TRUE(first) << first.error().message();
  EXPECT_FALSE(first->reused);
  auto second = run(backend().prewarm(wanted));
  ASSERT_TRUE(second);
  EXPECT_TRUE(second->reused);
  EXPECT_EQ(bootstraps, 1);
  auto handle = run(backend().create(input("user", "with-tools")));
  ASSERT_TRUE(handle) << handle.error().message();
  EXPECT_EQ(*run(read_all((*handle)->session(), "seed.txt")), "seeded");
  EXPECT_EQ(*run(read_all((*handle)->session(), "/opt/built")), "built\n");
  EXPECT_TRUE(run((*handle)->destroy()));
}

TEST_F(Backend, AFailedBootstrapLeavesNoTemplate) {
  PrewarmInput wanted;
  wanted.template_key = "broken";
  wanted.bootstrap = [](SandboxSession&) -> Task<Result<void>> {
    co_return fail(ErrorCode::Internal, "no luck");
  };
  EXPECT_FALSE(run(backend().prewarm(wanted)));
  auto handle = run(backend().create(input("one", "broken")));
  ASSERT_FALSE(handle);
  EXPECT_EQ(handle.error().code(), ErrorCode::TemplateMissing);
}

TEST_F(Backend, RelativePathsStartAtTheWorkspace) {
  auto handle = run(backend().create(input("paths")));
  ASSERT_TRUE(handle);
  SandboxSession& session = (*handle)->session();
  EXPECT_EQ(session.resolve_path("a/b"), "/workspace/a/b");
  EXPECT_EQ(session.resolve_path("/a"), "/a");
  EXPECT_EQ(run(session.run(shell("pwd")))->stdout_data, "/workspace\n");
  EXPECT_TRUE(run((*handle)->destroy()));
}

TEST_F(Backend, LineRangesAreInclusiveAndMayReachPastTheEnd) {
  auto handle = run(backend().create(input("lines")));
  ASSERT_TRUE(handle);
  SandboxSession& session = (*handle)->session();
  ASSERT_TRUE(run(write_text(session, "f", "one\ntwo\nthree\nfour")));
  ReadOptions middle;
  middle.first_line = 2;
  middle.last_line = 3;
  EXPECT_EQ(*run(read_all(session, "f", middle)), "two\nthree\n");
  ReadOptions beyond;
  beyond.first_line = 4;
  beyond.last_line = 99;
  EXPECT_EQ(*run(read_all(session, "f", beyond)), "four");
  EXPECT_TRUE(run((*handle)->destroy()));
}

TEST_F(Backend, ACommandKeepsItsPartialOutputWhenItsTimeIsUp) {
  auto handle = run(backend().create(input("slow")));
  ASSERT_TRUE(handle);
  RunOptions options = shell("echo early; sleep 100 & sleep 100");
  options.timeout = std::chrono::milliseconds(200);
  auto result = run((*handle)->session().run(options));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->stdout_data, "early\n");
  EXPECT_EQ(result->process.exit_code, 124);
  EXPECT_TRUE(result->process.timed_out);
  auto left = run((*handle)->session().run(shell("pgrep -c sleep; true")));
  EXPECT_EQ(left->stdout_data, "0\n");
  EXPECT_TRUE(run((*handle)->destroy()));
}

}  // namespace
}  // namespace atl::test
