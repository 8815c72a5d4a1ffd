#include "http/head_parser.h"

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <charconv>
#include <limits>

namespace atl::http {
namespace {

namespace beast = boost::beast::http;
using boost::beast::error_code;
using boost::core::string_view;

constexpr size_t kMaxFields = 100;
constexpr size_t kLineExtra = 64;  // the request line around its target

tl::unexpected<ProtocolError> refuse(int status, std::string message) {
  return tl::unexpected(ProtocolError{status, std::move(message)});
}

// The two directions differ only in the first line.
template <bool kRequest>
class Parser final : public beast::basic_parser<kRequest> {
 public:
  Parser() {
    this->eager(false);
    this->header_limit(std::numeric_limits<uint32_t>::max());
    this->body_limit(boost::none);
    headers.reserve(8);
  }

  std::string method;
  std::string target;
  int status = 0;
  int version = 0;
  Headers headers;

 private:
  void on_request_impl(beast::verb, string_view method_text, string_view target_text,
                       int version_number, error_code&) override {
    method.assign(method_text.data(), method_text.size());
    target.assign(target_text.data(), target_text.size());
    version = version_number;
  }
  void on_response_impl(int code, string_view, int version_number, error_code&) override {
    status = code;
    version = version_number;
  }
  void on_field_impl(beast::field, string_view name, string_view value,
                     error_code& error) override {
    if (headers.size() >= kMaxFields) error = beast::error::header_limit;
    headers.add(std::string(name), std::string(value));
  }
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  size_t on_body_impl(string_view body, error_code&) override { return body.size(); }
  void on_chunk_header_impl(std::uint64_t, string_view, error_code&) override {}
  size_t on_chunk_body_impl(std::uint64_t, string_view body, error_code&) override {
    return body.size();
  }
  void on_finish_impl(error_code&) override {}
};

template <bool kRequest>
Parsed<void> run(Parser<kRequest>& parser, std::string_view head) {
  error_code error;
  size_t used = parser.put(boost::asio::buffer(head.data(), head.size()), error);
  if (error == beast::error::header_limit) return refuse(431, "too many header fields");
  // Beast says the same of a target with a blank in it, which is merely malformed.
  std::string_view first_line = head.substr(0, head.find('\r'));
  if (error == beast::error::bad_version && std::ranges::count(first_line, ' ') == 2) {
    return refuse(505, "HTTP version not supported");
  }
  if (error) return refuse(400, "malformed message head: " + error.message());
  if (!parser.is_header_done() || used != head.size()) return refuse(400, "malformed message head");
  if (parser.version != 10 && parser.version != 11) {
    return refuse(505, "HTTP version not supported");
  }
  return {};
}

// Digits only: no sign, no list, no blanks.
Parsed<std::optional<uint64_t>> content_length(const Headers& headers) {
  size_t count = headers.count("Content-Length");
  if (count == 0) return std::nullopt;
  if (count > 1) return refuse(400, "more than one Content-Length");
  std::string_view text = *headers.get("Content-Length");
  uint64_t length = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
  if (error != std::errc() || end != text.data() + text.size()) {
    return refuse(400, "malformed Content-Length");
  }
  return length;
}

Parsed<Framing> framing_of(const Headers& headers, int version) {
  auto length = content_length(headers);
  if (!length) return tl::unexpected(length.error());
  Framing framing{false, *length};
  size_t codings = headers.count("Transfer-Encoding");
  if (codings == 0) return framing;
  // RFC 9112 6.1: either may be an attempt at smuggling; nobody honest sends both.
  if (framing.length) return refuse(400, "Content-Length with Transfer-Encoding");
  if (version == 10) return refuse(400, "Transfer-Encoding in HTTP/1.0");
  if (codings > 1 || !equals_ignoring_case(*headers.get("Transfer-Encoding"), "chunked")) {
    return refuse(501, "transfer coding not supported");
  }
  framing.chunked = true;
  return framing;
}

bool wants_keep_alive(const Headers& headers, int version) {
  if (headers.has_token("Connection", "close")) return false;
  return version == 11 || headers.has_token("Connection", "keep-alive");
}

Parsed<void> check_host(const Headers& headers, int version) {
  size_t hosts = headers.count("Host");
  if (hosts > 1) return refuse(400, "more than one Host");
  if (hosts == 0 && version == 11) return refuse(400, "Host is missing");
  return {};
}

Parsed<void> take_target(RequestHead& head, const HeadLimits& limits) {
  Request& request = head.request;
  if (request.target.size() > limits.target_bytes) return refuse(414, "target is too long");
  auto split = split_target(request.target);
  if (!split) return refuse(400, split.error().message());
  auto path = percent_decode(split->path);
  if (!path) return refuse(400, path.error().message());
  auto query = Query::parse(split->query);
  if (!query) return refuse(400, query.error().message());
  head.encoded_path = split->path;
  request.path = std::move(*path);
  request.query = std::move(*query);
  return {};
}

Parsed<void> take_expectation(RequestHead& head) {
  auto expect = head.request.headers.get("Expect");
  if (!expect) return {};
  if (!equals_ignoring_case(*expect, "100-continue")) return refuse(417, "unknown expectation");
  head.expects_continue = head.request.minor_version == 1;
  return {};
}

constexpr std::array<bool, 256> make_special_table() {
  std::array<bool, 256> table{};
  for (size_t c = 0; c < 0x20; c++) table[c] = c != '\t';
  table[0x7f] = true;
  return table;
}
constexpr auto kSpecial = make_special_table();

}  // namespace

Parsed<std::optional<size_t>> HeadScanner::scan(std::string_view input, const HeadLimits& limits) {
  for (; checked_ < input.size(); checked_++) {
    char c = input[checked_];
    bool line_starts = checked_ == line_start_;
    if (line_starts && (c == ' ' || c == '\t')) return refuse(400, "folded header line");
    if (!kSpecial[static_cast<unsigned char>(c)]) {
      if (!line_starts && input[checked_ - 1] == '\r') return refuse(400, "CR without LF");
      // Of the bytes up to the next special one nothing more is asked.
      while (checked_ + 1 < input.size() &&
             !kSpecial[static_cast<unsigned char>(input[checked_ + 1])]) {
        checked_++;
      }
      continue;
    }
    if (c == '\r') {
      if (!line_starts && input[checked_ - 1] == '\r') return refuse(400, "CR without LF");
      continue;
    }
    if (c != '\n') return refuse(400, "control character in the head");
    if (line_starts || input[checked_ - 1] != '\r') return refuse(400, "LF without CR");
    if (line_start_ == 0 && checked_ > limits.target_bytes + kLineExtra) break;
    bool blank = checked_ - line_start_ == 1;
    line_start_ = checked_ + 1;
    if (blank) {
      if (line_start_ > limits.head_bytes) break;
      return std::optional<size_t>(line_start_);
    }
  }
  // A first line that does not end is a long target, anything after that long fields.
  bool too_long = std::max(input.size(), line_start_) > limits.head_bytes;
  if (line_start_ == 0 && (too_long || input.size() > limits.target_bytes + kLineExtra)) {
    return refuse(414, "target is too long");
  }
  if (too_long) return refuse(431, "request head is too large");
  return std::optional<size_t>();
}

Parsed<RequestHead> parse_request_head(std::string_view text, const HeadLimits& limits) {
  Parser<true> parser;
  if (auto parsed = run(parser, text); !parsed) return tl::unexpected(parsed.error());
  RequestHead head;
  head.request.method = std::move(parser.method);
  head.request.target = std::move(parser.target);
  head.request.minor_version = parser.version - 10;
  head.request.headers = std::move(parser.headers);
  const Headers& headers = head.request.headers;
  if (auto host = check_host(headers, parser.version); !host) return tl::unexpected(host.error());
  auto framing = framing_of(headers, parser.version);
  if (!framing) return tl::unexpected(framing.error());
  head.framing = *framing;
  if (!head.framing.chunked && !head.framing.length) head.framing.length = 0;
  head.keep_alive = wants_keep_alive(headers, parser.version);
  if (auto target = take_target(head, limits); !target) return tl::unexpected(target.error());
  if (auto expect = take_expectation(head); !expect) return tl::unexpected(expect.error());
  return head;
}

Parsed<ResponseHead> parse_response_head(std::string_view text) {
  Parser<false> parser;
  if (auto parsed = run(parser, text); !parsed) return tl::unexpected(parsed.error());
  ResponseHead head;
  head.status = parser.status;
  head.headers = std::move(parser.headers);
  auto framing = framing_of(head.headers, parser.version);
  if (!framing) return tl::unexpected(framing.error());
  head.framing = *framing;
  head.keep_alive = wants_keep_alive(head.headers, parser.version);
  return head;
}

}  // namespace atl::http
