#include "wire/codec.h"

#include <gtest/gtest.h>

#include "wire/agent_messages.h"
#include "wire/file_messages.h"
#include "wire/frame.h"
#include "wire/launcher_messages.h"

namespace atl::wire {
namespace {

ExecRequest sample_exec() {
  return {.argv = {"/bin/sh", "-c", std::string("a\0b", 3)},
          .env = {"A=1", "B="},
          .cwd = "/workspace",
          .user = "user",
          .timeout_ms = 1500,
          .wait = true,
          .pty = true,
          .cols = 132,
          .rows = 43};
}

TEST(Codec, AMessageComesBackAsItWasSent) {
  auto decoded = decode<ExecRequest>(encode(sample_exec()));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->argv, sample_exec().argv);
  EXPECT_EQ(decoded->env, sample_exec().env);
  EXPECT_EQ(decoded->timeout_ms, 1500u);
  EXPECT_TRUE(decoded->wait);
  EXPECT_TRUE(decoded->pty);
  EXPECT_EQ(decoded->cols, 132);
}

TEST(Codec, NestedListsComeBack) {
  ProcessList list;
  list.processes.push_back({.pid = 7, .label = "x"});
  list.processes.push_back({.pid = 8, .running = true});
  auto decoded = decode<ProcessList>(encode(list));
  ASSERT_TRUE(decoded);
  ASSERT_EQ(decoded->processes.size(), 2u);
  EXPECT_EQ(decoded->processes[1].pid, 8);
  EXPECT_TRUE(decoded->processes[1].running);
}

TEST(Codec, EveryTruncationIsRefused) {
  std::string bytes = encode(sample_exec());
  for (size_t size = 0; size < bytes.size(); size++) {
    EXPECT_FALSE(decode<ExecRequest>(std::string_view(bytes).substr(0, size))) << size;
  }
}

TEST(Codec, TrailingBytesAreRefused) {
  EXPECT_FALSE(decode<ExecRequest>(encode(sample_exec()) + "x"));
}

TEST(Codec, ALyingCountAllocatesNothing) {
  std::string bytes("\xff\xff\xff\xff", 4);
  EXPECT_FALSE(decode<ProcessList>(bytes));
  EXPECT_FALSE(decode<Failure>(std::string("\x01\x00\x00\x00\x00\xff\xff\xff\x7f", 9)));
}

TEST(FrameBuffer, HandsOutFramesHoweverTheyAreCut) {
  std::string bytes;
  append_frame(bytes, 1, ControlHello{});
  append_frame(bytes, 2, sample_exec());
  for (size_t step : {1u, 3u, 12u, 1000u}) {
    FrameBuffer buffer;
    std::vector<uint32_t> ids;
    for (size_t at = 0; at < bytes.size(); at += step) {
      size_t size = std::min(step, bytes.size() - at);
      memcpy(buffer.prepare(size), bytes.data() + at, size);
      buffer.commit(size);
      for (;;) {
        auto frame = buffer.next();
        ASSERT_TRUE(frame);
        if (!*frame) break;
        ids.push_back((*frame)->id);
      }
    }
    EXPECT_EQ(ids, (std::vector<uint32_t>{1, 2})) << step;
    EXPECT_TRUE(buffer.empty());
  }
}

TEST(FrameBuffer, RefusesAnOversizedFrame) {
  std::string header;
  append_header(header, {.size = kMaxPayload + 1, .type = 1});
  FrameBuffer buffer;
  memcpy(buffer.prepare(header.size()), header.data(), header.size());
  buffer.commit(header.size());
  EXPECT_FALSE(buffer.next());
}

TEST(Codec, LauncherMessagesComeBack) {
  BuildRequest request{
      .sandbox = "box", .layers = {"a", "b"}, .limits = {.memory_bytes = 5, .pids = 9}};
  auto decoded = decode<BuildRequest>(encode(request));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->layers, request.layers);
  EXPECT_EQ(decoded->limits, request.limits);
}

}  // namespace
}  // namespace atl::wire
