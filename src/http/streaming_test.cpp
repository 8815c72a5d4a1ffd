// Large bodies, both ways, chunked and not.
#include "http/http_test_support.h"

namespace atl::http {
namespace {

using testing::TestServer;

constexpr size_t kTotal = 64 * 1024 * 1024;

// Bytes that differ by position, so that a lost or doubled block shows.
void fill_pattern(std::span<char> block, uint64_t offset) {
  for (size_t i = 0; i < block.size(); i++) block[i] = static_cast<char>((offset + i) % 251);
}

class PatternCheck {
 public:
  void add(std::string_view bytes) {
    for (char c : bytes) {
      if (c != static_cast<char>(total_ % 251)) wrong_++;
      total_++;
    }
  }
  uint64_t total() const { return wrong_ == 0 ? total_ : 0; }

 private:
  uint64_t total_ = 0;
  uint64_t wrong_ = 0;
};

Task<void> send_pattern(ResponseWriter& writer, std::optional<uint64_t> length, size_t block_size) {
  std::string block(block_size, '\0');
  auto result = co_await writer.start(200, {}, length);
  for (uint64_t sent = 0; result && sent < kTotal;) {
    auto piece = std::span(block).first(std::min<uint64_t>(block.size(), kTotal - sent));
    fill_pattern(piece, sent);
    result = co_await writer.write({piece.data(), piece.size()});
    sent += piece.size();
  }
  if (result) co_await writer.finish();
}

void add_routes(Router& router) {
  router.add("GET", "/length", [](Request&, ResponseWriter& writer) -> Task<void> {
    co_await send_pattern(writer, kTotal, 251 * 1024);
  });
  router.add("GET", "/chunked", [](Request&, ResponseWriter& writer) -> Task<void> {
    co_await send_pattern(writer, std::nullopt, 300'001);
  });
  router.add("PUT", "/upload", [](Request& request, ResponseWriter& writer) -> Task<void> {
    PatternCheck check;
    std::string block(200'000, '\0');
    while (true) {
      auto got = co_await request.body->read(block);
      if (!got || *got == 0) break;
      check.add({block.data(), *got});
    }
    co_await writer.send(Response::text(std::to_string(check.total())));
  });
}

uint64_t download(TestServer& server, const std::string& target) {
  auto client = server.client();
  auto stream = client.open("GET", target);
  if (!stream) return 0;
  PatternCheck check;
  std::string block(256 * 1024, '\0');
  while (true) {
    auto got = stream->read(block);
    if (!got || *got == 0) break;
    check.add({block.data(), *got});
  }
  return check.total();
}

std::string upload(TestServer& server, std::optional<uint64_t> length, size_t block_size) {
  auto client = server.client();
  uint64_t sent = 0;
  auto source = [&](std::span<char> into) -> Result<size_t> {
    size_t count = std::min<uint64_t>(std::min(into.size(), block_size), kTotal - sent);
    fill_pattern(into.first(count), sent);
    sent += count;
    return count;
  };
  auto stream = client.upload("PUT", "/upload", {}, length, source);
  if (!stream) return stream.error().message();
  return *stream->read_all();
}

TEST(Streaming, DownloadsWithLength) {
  TestServer server(add_routes);
  EXPECT_EQ(download(server, "/length"), kTotal);
}

TEST(Streaming, DownloadsInChunks) {
  TestServer server(add_routes);
  EXPECT_EQ(download(server, "/chunked"), kTotal);
}

TEST(Streaming, UploadsWithLength) {
  TestServer server(add_routes);
  EXPECT_EQ(upload(server, kTotal, SIZE_MAX), std::to_string(kTotal));
}

TEST(Streaming, UploadsInChunks) {
  TestServer server(add_routes);
  EXPECT_EQ(upload(server, std::nullopt, 77'777), std::to_string(kTotal));
}

TEST(Streaming, SmallChunksArriveWhole) {
  TestServer server([](Router& router) {
    router.add("GET", "/small", [](Request&, ResponseWriter& writer) -> Task<void> {
      co_await writer.start(200, {});
      for (int i = 0; i < 10'000; i++) {
        std::string piece = std::to_string(i) + ",";
        if (!co_await writer.write(piece)) co_return;
      }
      co_await writer.finish();
    });
  });
  std::string expected;
  for (int i = 0; i < 10'000; i++) expected += std::to_string(i) + ",";
  EXPECT_EQ(server.client().request("GET", "/small")->body, expected);
}

}  // namespace
}  // namespace atl::http
