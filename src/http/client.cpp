#include "http/client.h"

#include <cstdlib>

#include "http/client_connection.h"

namespace atl::http {
namespace {

// Repeating these changes nothing more (RFC 9110 9.2.2).
bool is_idempotent(std::string_view method) {
  return method == "GET" || method == "HEAD" || method == "PUT" || method == "DELETE" ||
         method == "OPTIONS";
}

}  // namespace

ResponseStream::ResponseStream(std::unique_ptr<ClientConnection> connection,
                               std::shared_ptr<ClientPool> pool)
    : connection_(std::move(connection)), pool_(std::move(pool)) {}
ResponseStream::ResponseStream(ResponseStream&&) noexcept = default;
ResponseStream& ResponseStream::operator=(ResponseStream&&) noexcept = default;
ResponseStream::~ResponseStream() = default;

Result<void> ResponseStream::read_head() {
  ATOLL_ASSIGN(ResponseHead head, connection_->read_head());
  status_ = head.status;
  headers_ = std::move(head.headers);
  give_back_if_done();
  return {};
}

void ResponseStream::give_back_if_done() {
  if (connection_->body_complete()) pool_->release(std::move(connection_));
}

Result<size_t> ResponseStream::read(std::span<char> into) {
  if (!connection_) return size_t{0};
  auto got = connection_->read_body(into);
  if (got) give_back_if_done();
  return got;
}

Result<std::string> ResponseStream::read_all(size_t limit) {
  constexpr size_t kStep = 64 * 1024;
  std::string all;
  size_t used = 0;
  while (connection_) {
    if (all.size() - used < kStep / 2) all.resize(std::max(all.size() * 2, kStep));
    ATOLL_ASSIGN(size_t got, read(std::span(all).subspan(used)));
    used += got;
    if (used > limit) return fail(ErrorCode::TooLarge, "the response is too large");
    if (got == 0) break;
  }
  all.resize(used);
  return all;
}

Result<std::optional<Event>> ResponseStream::next_event() {
  while (true) {
    if (auto event = events_.next()) return event;
    std::string bytes(16 * 1024, '\0');
    ATOLL_ASSIGN(size_t got, read(bytes));
    if (got == 0) return std::optional<Event>();
    ATOLL_TRY(events_.feed(std::string_view(bytes).substr(0, got)));
  }
}

void ResponseStream::set_timeout(std::chrono::milliseconds timeout) {
  if (connection_) connection_->socket().set_timeout(timeout);
}
int ResponseStream::fd() const { return connection_ ? connection_->socket().fd() : -1; }
bool ResponseStream::pending() const {
  return !connection_ || connection_->pending() || events_.has_next();
}

RequestStream::RequestStream(std::unique_ptr<ClientConnection> connection,
                             std::shared_ptr<ClientPool> pool)
    : connection_(std::move(connection)), pool_(std::move(pool)) {}
RequestStream::RequestStream(RequestStream&&) noexcept = default;
RequestStream& RequestStream::operator=(RequestStream&&) noexcept = default;
RequestStream::~RequestStream() = default;

Result<void> RequestStream::write(std::string_view bytes) {
  auto written = connection_->write_body(bytes);
  if (!written && written.error().code() == ErrorCode::Unavailable) broken_ = true;
  return written;
}

Result<ResponseStream> RequestStream::finish() {
  // After a failed write the connection may still hold the answer that explains it; a body that is
  // merely short of its length would leave both sides waiting.
  if (!broken_) {
    auto finished = connection_->finish_body();
    if (!finished && finished.error().code() != ErrorCode::Unavailable) {
      return tl::unexpected(std::move(finished).error());
    }
  }
  ResponseStream response(std::move(connection_), pool_);
  ATOLL_TRY(response.read_head());
  return response;
}

Result<Client> Client::create(std::string_view endpoint, ClientOptions options) {
  ATOLL_ASSIGN(Endpoint parsed, Endpoint::parse(endpoint));
  std::shared_ptr<TlsClientContext> tls;
  if (parsed.tls) {
    const char* from_environment = getenv("ATOLL_CA_FILE");
    if (options.ca_file.empty() && from_environment != nullptr) options.ca_file = from_environment;
    ATOLL_ASSIGN(tls, TlsClientContext::create(options.ca_file));
  }
  return Client(
      std::make_shared<ClientPool>(std::move(parsed), std::move(options), std::move(tls)));
}

Result<ResponseStream> Client::attempt(std::unique_ptr<ClientConnection> connection,
                                       std::string_view method, std::string_view target,
                                       const Headers& headers, std::string_view body,
                                       bool& repeatable) {
  RequestHeadOptions options;
  options.method = method;
  options.target = target;
  bool has_body = !body.empty() || method == "POST" || method == "PUT" || method == "PATCH";
  options.body = has_body ? BodyKind::Length : BodyKind::None;
  options.length = body.size();
  bool kept = connection->was_used();
  auto sent = connection->send_head(options, headers, body);
  // A refusal may have come before the body was all sent.
  if (!sent && sent.error().code() != ErrorCode::Unavailable) {
    return tl::unexpected(std::move(sent).error());
  }
  ResponseStream response(std::move(connection), pool_);
  auto head = response.read_head();
  if (head) return response;
  bool silent = !response.connection_->answered();
  repeatable =
      kept && silent && is_idempotent(method) && head.error().code() == ErrorCode::Unavailable;
  return tl::unexpected(std::move(head).error());
}

Result<ResponseStream> Client::open(std::string_view method, std::string_view target,
                                    const Headers& headers, std::string_view body) {
  ATOLL_ASSIGN(auto connection, pool_->acquire());
  bool repeatable = false;
  auto response = attempt(std::move(connection), method, target, headers, body, repeatable);
  if (response || !repeatable) return response;
  ATOLL_ASSIGN(auto fresh, pool_->acquire(true));
  return attempt(std::move(fresh), method, target, headers, body, repeatable);
}

Result<ClientResponse> Client::request(std::string_view method, std::string_view target,
                                       const Headers& headers, std::string_view body) {
  ATOLL_ASSIGN(ResponseStream stream, open(method, target, headers, body));
  ClientResponse response;
  response.status = stream.status();
  ATOLL_ASSIGN(response.body, stream.read_all());
  response.headers = stream.headers();
  return response;
}

Result<RequestStream> Client::start(std::string_view method, std::string_view target,
                                    const Headers& headers, std::optional<uint64_t> length) {
  ATOLL_ASSIGN(auto connection, pool_->acquire());
  RequestHeadOptions options;
  options.method = method;
  options.target = target;
  options.body = length ? BodyKind::Length : BodyKind::Chunked;
  options.length = length.value_or(0);
  ATOLL_TRY(connection->send_head(options, headers));
  return RequestStream(std::move(connection), pool_);
}

Result<ResponseStream> Client::upload(std::string_view method, std::string_view target,
                                      const Headers& headers, std::optional<uint64_t> length,
                                      const BodySource& source) {
  constexpr size_t kBlock = 256 * 1024;
  ATOLL_ASSIGN(RequestStream request, start(method, target, headers, length));
  auto block = std::make_unique_for_overwrite<char[]>(kBlock);
  while (true) {
    ATOLL_ASSIGN(size_t got, source(std::span(block.get(), kBlock)));
    if (got == 0) break;
    auto written = request.write({block.get(), got});
    if (!written && written.error().code() != ErrorCode::Unavailable) {
      return tl::unexpected(std::move(written).error());
    }
    if (!written) break;
  }
  return request.finish();
}

}  // namespace atl::http
