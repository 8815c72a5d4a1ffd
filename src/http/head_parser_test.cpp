#include "http/head_parser.h"

#include <gtest/gtest.h>

namespace atl::http {
namespace {

const HeadLimits kLimits;

Parsed<RequestHead> parse(std::string_view text) {
  HeadScanner scanner;
  auto length = scanner.scan(text, kLimits);
  if (!length) return tl::unexpected(length.error());
  if (!*length) return tl::unexpected(ProtocolError{0, "incomplete"});
  return parse_request_head(text.substr(0, **length), kLimits);
}

int status_for(std::string_view text) {
  auto head = parse(text);
  return head ? 200 : head.error().status;
}

TEST(HeadParser, ReadsAnOrdinaryRequest) {
  auto head =
      parse("PUT /a%20b?x=1 HTTP/1.1\r\nHost: h\r\nContent-Length: 12\r\nX-Y:  padded \r\n\r\n");
  ASSERT_TRUE(head) << head.error().message;
  EXPECT_EQ(head->request.method, "PUT");
  EXPECT_EQ(head->request.target, "/a%20b?x=1");
  EXPECT_EQ(head->request.path, "/a b");
  EXPECT_EQ(head->encoded_path, "/a%20b");
  EXPECT_EQ(head->request.query.get("x"), "1");
  EXPECT_EQ(head->request.headers.get("x-y"), "padded");
  EXPECT_EQ(head->framing.length, 12u);
  EXPECT_TRUE(head->keep_alive);
}

TEST(HeadParser, WaitsForTheBlankLineHoweverTheBytesAreCut) {
  constexpr std::string_view kText = "GET / HTTP/1.1\r\nHost: h\r\n\r\nGET";
  HeadScanner scanner;
  for (size_t size = 0; size < kText.size() - 3; size++) {
    auto length = scanner.scan(kText.substr(0, size), kLimits);
    ASSERT_TRUE(length);
    ASSERT_FALSE(*length) << size;
  }
  EXPECT_EQ(**scanner.scan(kText, kLimits), kText.size() - 3);
}

struct Refused {
  const char* name;
  std::string text;
  int status;
};

class Refusal : public ::testing::TestWithParam<Refused> {};

TEST_P(Refusal, IsAnsweredWithItsStatus) {
  EXPECT_EQ(status_for(GetParam().text), GetParam().status) << GetParam().text;
}

std::string post(const std::string& fields) {
  return "POST / HTTP/1.1\r\nHost: h\r\n" + fields + "\r\n";
}

INSTANTIATE_TEST_SUITE_P(
    Smuggling, Refusal,
    ::testing::Values(
        Refused{"LengthAndCoding", post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
                400},
        Refused{"CodingAndLength", post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"),
                400},
        Refused{"TwoLengths", post("Content-Length: 5\r\nContent-Length: 6\r\n"), 400},
        Refused{"TwoEqualLengths", post("Content-Length: 5\r\nContent-Length: 5\r\n"), 400},
        Refused{"ListOfLengths", post("Content-Length: 5, 5\r\n"), 400},
        Refused{"SignedLength", post("Content-Length: +5\r\n"), 400},
        Refused{"NegativeLength", post("Content-Length: -5\r\n"), 400},
        Refused{"HexLength", post("Content-Length: 0x5\r\n"), 400},
        Refused{"EmptyLength", post("Content-Length:\r\n"), 400},
        Refused{"HugeLength", post("Content-Length: 18446744073709551616\r\n"), 400},
        Refused{"TwoCodings", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n"), 400},
        Refused{"TwiceChunked", post("Transfer-Encoding: chunked, chunked\r\n"), 501},
        Refused{"CodingThatEndsOtherwise", post("Transfer-Encoding: chunked, identity\r\n"), 501},
        Refused{"UnknownCoding", post("Transfer-Encoding: xchunked\r\n"), 501},
        Refused{"QuotedCoding", post("Transfer-Encoding: \"chunked\"\r\n"), 501},
        Refused{"CodingInOldHttp",
                "POST / HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        Refused{"BlankBeforeColon", post("Content-Length : 5\r\n"), 400},
        Refused{"FoldedLine", post("X: a\r\n b\r\n"), 400},
        Refused{"FoldedFirstField", "GET / HTTP/1.1\r\n Host: h\r\n\r\n", 400},
        Refused{"BareLineFeed", "GET / HTTP/1.1\nHost: h\n\n", 400},
        Refused{"BareLineFeedInField", post("X: a\nY: b\r\n"), 400},
        Refused{"BareCarriageReturn", post("X: a\rY: b\r\n"), 400},
        Refused{"NulInField", post(std::string("X: a\0b\r\n", 8)), 400},
        Refused{"NulInTarget", std::string("GET /a\0b HTTP/1.1\r\nHost: h\r\n\r\n", 30), 400},
        Refused{"ControlInField", post("X: a\x01\r\n"), 400},
        Refused{"NoColon", post("nonsense\r\n"), 400}, Refused{"EmptyName", post(": x\r\n"), 400}),
    [](const auto& test) { return test.param.name; });

INSTANTIATE_TEST_SUITE_P(
    RequestLines, Refusal,
    ::testing::Values(
        Refused{"NoHost", "GET / HTTP/1.1\r\n\r\n", 400},
        Refused{"TwoHosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
        Refused{"HttpTwo", "GET / HTTP/2.0\r\nHost: h\r\n\r\n", 505},
        Refused{"HttpOneTwo", "GET / HTTP/1.2\r\nHost: h\r\n\r\n", 505},
        Refused{"NoVersion", "GET /\r\n\r\n", 400},
        Refused{"TwoBlanks", "GET  / HTTP/1.1\r\nHost: h\r\n\r\n", 400},
        Refused{"BlankInTarget", "GET /a b HTTP/1.1\r\nHost: h\r\n\r\n", 400},
        Refused{"BadPercent", "GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n", 400},
        Refused{"BadPercentInQuery", "GET /?a=%0 HTTP/1.1\r\nHost: h\r\n\r\n", 400},
        Refused{"EncodedNul", "GET /%00 HTTP/1.1\r\nHost: h\r\n\r\n", 400},
        Refused{"Asterisk", "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", 400},
        Refused{"UnknownExpectation", post("Expect: tea\r\n"), 417},
        Refused{"LongTarget", "GET /" + std::string(9000, 'a') + " HTTP/1.1\r\nHost: h\r\n\r\n",
                414},
        Refused{"EndlessTarget", "GET /" + std::string(20000, 'a'), 414},
        Refused{"LongFields", post("X: " + std::string(17000, 'a') + "\r\n"), 431},
        Refused{"EndlessField", "GET / HTTP/1.1\r\nX: " + std::string(17000, 'a'), 431}),
    [](const auto& test) { return test.param.name; });

TEST(HeadParser, RefusesMoreFieldsThanAnybodySends) {
  std::string fields;
  for (int i = 0; i < 200; i++) fields += "X: y\r\n";
  EXPECT_EQ(status_for(post(fields)), 431);
}

TEST(HeadParser, OldHttpClosesUnlessAskedNotTo) {
  EXPECT_FALSE(parse("GET / HTTP/1.0\r\n\r\n")->keep_alive);
  EXPECT_TRUE(parse("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")->keep_alive);
  EXPECT_FALSE(parse("GET / HTTP/1.1\r\nHost: h\r\nConnection: Close\r\n\r\n")->keep_alive);
}

TEST(HeadParser, ReadsResponses) {
  constexpr std::string_view kText = "HTTP/1.1 206 Partial Content\r\nContent-Length: 3\r\n\r\n";
  auto head = parse_response_head(kText);
  ASSERT_TRUE(head);
  EXPECT_EQ(head->status, 206);
  EXPECT_EQ(head->framing.length, 3u);
  EXPECT_FALSE(parse_response_head("HTTP/1.1 abc\r\n\r\n"));
}

}  // namespace
}  // namespace atl::http
