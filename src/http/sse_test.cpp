#include "http/sse.h"

#include "http/http_test_support.h"
#include "http/sse_parser.h"

namespace atl::http {
namespace {

using testing::TestServer;

TEST(ServerSentEvents, FormatHasOneDataLineAndLineFeedsOnly) {
  EXPECT_EQ(*format_event("exit", "{\"code\":0}"), "event: exit\ndata: {\"code\":0}\n\n");
  EXPECT_EQ(*format_event("e", "d", "7"), "id: 7\nevent: e\ndata: d\n\n");
  EXPECT_FALSE(format_event("e", "two\nlines"));
  EXPECT_FALSE(format_event("e\r", "d"));
}

TEST(SseParser, ReadsEventsHoweverTheBytesAreCut) {
  constexpr std::string_view kText =
      ": comment\nevent: a\nid: 1\ndata: x\n\r\ndata:y\r\ndata: z\r\n\r\n\n\nevent: only\n\n";
  for (size_t step = 1; step <= kText.size(); step++) {
    SseParser parser;
    for (size_t at = 0; at < kText.size(); at += step) {
      ASSERT_TRUE(parser.feed(kText.substr(at, step)));
    }
    auto first = parser.next();
    ASSERT_TRUE(first) << step;
    EXPECT_EQ(first->event, "a");
    EXPECT_EQ(first->id, "1");
    EXPECT_EQ(first->data, "x");
    auto second = parser.next();
    ASSERT_TRUE(second) << step;
    EXPECT_EQ(second->event, "message");
    EXPECT_EQ(second->data, "y\nz");
    EXPECT_FALSE(parser.next());
  }
}

TEST(SseParser, RefusesAnEventWithoutEnd) {
  SseParser parser(100);
  EXPECT_FALSE(parser.feed(std::string(200, 'x')));
}

void stream_events(Router& router) {
  router.add("GET", "/events", [](Request&, ResponseWriter& writer) -> Task<void> {
    EventStream events(writer);
    if (!co_await events.start()) co_return;
    co_await events.send("out", "{\"n\":1}");
    co_await events.heartbeat();
    co_await events.send("out", "{\"n\":2}", "2");
    co_await events.finish();
  });
}

TEST(EventStream, EachEventIsOneChunk) {
  TestServer server(stream_events);
  auto raw = server.connect();
  raw.send("GET /events HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  std::string head = raw.read_until("\r\n\r\n");
  EXPECT_NE(head.find("Content-Type: text/event-stream\r\n"), std::string::npos) << head;
  EXPECT_EQ(raw.read_to_end(),
            "1a\r\nevent: out\ndata: {\"n\":1}\n\n\r\n"
            "d\r\n: heartbeat\n\n\r\n"
            "20\r\nid: 2\nevent: out\ndata: {\"n\":2}\n\n\r\n0\r\n\r\n");
}

TEST(EventStream, ClientIteratesEvents) {
  TestServer server(stream_events);
  auto client = server.client();
  auto stream = client.open("GET", "/events");
  ASSERT_TRUE(stream);
  auto first = *stream->next_event();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->data, "{\"n\":1}");
  auto second = *stream->next_event();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->id, "2");
  EXPECT_FALSE(*stream->next_event());
}

}  // namespace
}  // namespace atl::http
