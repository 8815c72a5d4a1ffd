#include "http/client_connection.h"

#include <algorithm>

namespace atl::http {
namespace {

constexpr size_t kReadBytes = 16 * 1024;
constexpr HeadLimits kResponseLimits{256 * 1024, 256 * 1024};
constexpr size_t kMaxIdle = 8;

tl::unexpected<Error> cut_short() {
  return fail(ErrorCode::Unavailable, "the server closed the connection");
}
tl::unexpected<Error> malformed(const ProtocolError& error) {
  return fail(ErrorCode::Internal, "malformed response: " + error.message);
}

}  // namespace

ClientConnection::ClientConnection(BlockingSocket socket, std::string authority)
    : socket_(std::move(socket)), authority_(std::move(authority)) {}

Result<void> ClientConnection::send_head(RequestHeadOptions options, const Headers& headers,
                                         std::string_view body) {
  options.host = authority_;
  ATOLL_ASSIGN(std::string head, format_request_head(options, headers));
  method_ = options.method;
  request_body_ = options.body;
  request_left_ = options.body == BodyKind::Length ? options.length - body.size() : 0;
  request_sent_ = request_body_ != BodyKind::Chunked && request_left_ == 0;
  answered_ = false;
  response_ended_ = false;
  return socket_.write(WriteParts{head, body});
}

Result<void> ClientConnection::write_body(std::string_view bytes) {
  if (bytes.empty()) return {};
  if (request_body_ == BodyKind::Chunked) {
    ChunkHeader header(bytes.size());
    return socket_.write(WriteParts{header.text(), bytes, kChunkEnd});
  }
  if (bytes.size() > request_left_) {
    return fail(ErrorCode::InvalidArgument, "the body is longer than announced");
  }
  ATOLL_TRY(socket_.write(WriteParts{bytes}));
  request_left_ -= bytes.size();
  return {};
}

Result<void> ClientConnection::finish_body() {
  if (request_sent_) return {};
  if (request_left_ > 0)
    return fail(ErrorCode::InvalidArgument, "the body is shorter than announced");
  if (request_body_ == BodyKind::Chunked) ATOLL_TRY(socket_.write(WriteParts{kLastChunk}));
  request_sent_ = true;
  return {};
}

Result<size_t> ClientConnection::fill() {
  std::span<char> room = input_.prepare(kReadBytes);
  ATOLL_ASSIGN(size_t got, socket_.read(room));
  input_.commit(got);
  answered_ = answered_ || got > 0;
  return got;
}

Result<ResponseHead> ClientConnection::read_head() {
  HeadScanner scanner;
  while (true) {
    auto length = scanner.scan(input_.view(), kResponseLimits);
    if (!length) return malformed(length.error());
    if (!*length) {
      ATOLL_ASSIGN(size_t got, fill());
      if (got == 0) return cut_short();
      continue;
    }
    auto head = parse_response_head(input_.view().substr(0, **length));
    if (!head) return malformed(head.error());
    input_.consume(**length);
    scanner.reset();
    // Interim responses precede the one that counts; a 101 is final.
    if (head->status < 200 && head->status != 101) continue;
    choose_framing(*head);
    return std::move(*head);
  }
}

void ClientConnection::choose_framing(const ResponseHead& head) {
  keep_alive_ = head.keep_alive;
  chunks_ = ChunkedDecoder();
  response_left_ = 0;
  bool no_body = method_ == "HEAD" || head.status < 200 || head.status == 204 || head.status == 304;
  if (no_body) {
    response_body_ = BodyKind::None;
  } else if (head.framing.chunked) {
    response_body_ = BodyKind::Chunked;
  } else if (head.framing.length) {
    response_body_ = BodyKind::Length;
    response_left_ = *head.framing.length;
  } else {
    response_body_ = BodyKind::UntilClose;
    keep_alive_ = false;
  }
}

bool ClientConnection::body_complete() const {
  switch (response_body_) {
    case BodyKind::None:
      return true;
    case BodyKind::Length:
      return response_left_ == 0;
    case BodyKind::Chunked:
      return chunks_.done();
    case BodyKind::UntilClose:
      return response_ended_;
  }
  return true;
}

Result<size_t> ClientConnection::read_body(std::span<char> into) {
  if (response_body_ == BodyKind::Chunked) {
    while (!chunks_.done() && chunks_.data_left() == 0) {
      ATOLL_ASSIGN(size_t used, chunks_.feed(input_.view()));
      input_.consume(used);
      if (chunks_.done() || chunks_.data_left() > 0) break;
      ATOLL_ASSIGN(size_t got, fill());
      if (got == 0) return cut_short();
    }
  }
  if (body_complete() || into.empty()) return size_t{0};
  if (response_body_ == BodyKind::UntilClose) {
    ATOLL_ASSIGN(size_t got, read_plain(into, into.size()));
    response_ended_ = got == 0;
    return got;
  }
  bool chunked = response_body_ == BodyKind::Chunked;
  ATOLL_ASSIGN(size_t got, read_plain(into, chunked ? chunks_.data_left() : response_left_));
  if (got == 0) return cut_short();
  if (chunked) {
    chunks_.consume_data(got);
  } else {
    response_left_ -= got;
  }
  return got;
}

Result<size_t> ClientConnection::read_plain(std::span<char> into, uint64_t limit) {
  into = into.first(static_cast<size_t>(std::min<uint64_t>(into.size(), limit)));
  // Little is wanted: reading ahead saves a call for what follows it, such as the next chunk's
  // head.
  if (input_.empty() && into.size() < kReadBytes) {
    ATOLL_ASSIGN(size_t got, fill());
    if (got == 0) return size_t{0};
  }
  if (!input_.empty()) return input_.take(into);
  return socket_.read(into);
}

bool ClientConnection::reusable() const {
  return keep_alive_ && request_sent_ && body_complete() && input_.empty();
}

std::string ClientConnection::take_input() {
  std::string bytes(input_.view());
  input_.consume(bytes.size());
  return bytes;
}

Result<std::unique_ptr<ClientConnection>> ClientPool::acquire(bool fresh) {
  if (!fresh) {
    std::lock_guard lock(mutex_);
    while (!idle_.empty()) {
      auto connection = std::move(idle_.back());
      idle_.pop_back();
      if (connection->socket().readable_now()) continue;
      connection->mark_used();
      return connection;
    }
  }
  ATOLL_ASSIGN(BlockingSocket socket,
               BlockingSocket::connect(endpoint_, options_.connect_timeout, tls_.get()));
  socket.set_timeout(options_.io_timeout);
  return std::make_unique<ClientConnection>(std::move(socket), endpoint_.authority());
}

void ClientPool::release(std::unique_ptr<ClientConnection> connection) {
  if (!connection || !connection->reusable()) return;
  connection->socket().set_timeout(options_.io_timeout);
  std::lock_guard lock(mutex_);
  if (idle_.size() < kMaxIdle) idle_.push_back(std::move(connection));
}

}  // namespace atl::http
