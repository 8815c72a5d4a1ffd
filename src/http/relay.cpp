#include "http/relay.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <memory>

#include "http/chunked.h"
#include "http/forwarding.h"
#include "http/head_writer.h"
#include "http/input_buffer.h"

namespace atl::http {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using Way = TunnelMeter::Way;

constexpr HeadLimits kHeadLimits{.head_bytes = 64 * 1024, .target_bytes = 16 * 1024};
constexpr size_t kPieceBytes = 64 * 1024;
constexpr size_t kHeadReadBytes = 8 * 1024;
constexpr auto kWritePatience = 2min;
constexpr auto kAnswerPatience = 10min;
constexpr auto kSilence = 1h;  // within a body, whose next event may be long in coming

class Relay : public std::enable_shared_from_this<Relay> {
 public:
  Relay(RelayEnds ends, RelayPlan plan)
      : request_(ends.request),
        writer_(ends.writer),
        upstream_(ends.upstream),
        meter_(ends.meter),
        plan_(std::move(plan)),
        upload_ended_(ends.upstream.executor(), asio::steady_timer::time_point::max()) {}

  Task<Result<void>> run() {
    has_body_ = request_.body->content_length().value_or(1) > 0;
    plan_.upgrade = plan_.upgrade && !has_body_;
    ATOLL_CO_TRY(co_await send_head());
    if (has_body_) start_upload();
    // Dropped only when the handler returns, which may be later than this.
    writer_.on_closed([weak = weak_from_this()] {
      if (auto self = weak.lock()) self->upstream_.abort();
    });
    auto done = co_await pass_answer();
    // What is still coming of the request is for nobody.
    if (uploading_) upstream_.abort();
    co_await upload_over();
    co_return done;
  }

 private:
  Task<Result<void>> send_head() {
    RequestHeadOptions options;
    options.method = request_.method;
    options.target = plan_.target;
    auto length = request_.body->content_length();
    if (has_body_) options.body = length ? BodyKind::Length : BodyKind::Chunked;
    options.length = length.value_or(0);
    // Without a body most methods need no length, but those that usually have one do.
    bool says_none = !has_body_ && (request_.method == "POST" || request_.method == "PUT");
    if (says_none) options.body = BodyKind::Length;
    plan_.headers.set("Connection", plan_.upgrade ? "Upgrade" : "close");
    ATOLL_CO_ASSIGN(std::string head, format_request_head(options, plan_.headers));
    meter_.moved(Way::Out, head.size());
    WriteParts parts{head};
    co_return co_await upstream_.write(parts, kWritePatience);
  }

  // Beside the answer, which a server may begin before it has everything.
  void start_upload() {
    uploading_ = true;
    auto work = [this]() -> Task<void> {
      auto sent = co_await upload();
      // A client that is gone is not answered; a server that reads no more may have answered.
      if (!sent && client_broke_) upstream_.abort();
      uploading_ = false;
      upload_ended_.cancel();
    };
    asio::co_spawn(upstream_.executor(), work, asio::detached);
  }

  Task<Result<void>> upload() {
    bool chunked = !request_.body->content_length();
    std::string piece(kPieceBytes, '\0');
    for (;;) {
      auto got = co_await request_.body->read(piece);
      client_broke_ = !got;
      if (!got) co_return fail(std::move(got).error());
      if (*got == 0) break;
      meter_.moved(Way::Out, *got);
      std::string_view bytes(piece.data(), *got);
      ChunkHeader header(bytes.size());
      WriteParts parts{bytes};
      if (chunked) parts = {header.text(), bytes, kChunkEnd};
      ATOLL_CO_TRY(co_await upstream_.write(parts, kWritePatience));
    }
    if (!chunked) co_return Result<void>();
    WriteParts last{kLastChunk};
    co_return co_await upstream_.write(last, kWritePatience);
  }

  Task<void> upload_over() {
    while (uploading_) {
      boost::system::error_code ignored;
      co_await upload_ended_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
  }

  Task<Result<ResponseHead>> read_head() {
    HeadScanner scanner;
    for (;;) {
      auto length = scanner.scan(input_.view(), kHeadLimits);
      if (!length) co_return no_answer(length.error().message);
      if (*length) {
        auto head = parse_response_head(input_.view().substr(0, **length));
        input_.consume(**length);
        if (!head) co_return no_answer(head.error().message);
        co_return std::move(*head);
      }
      auto got = co_await upstream_.read(input_.prepare(kHeadReadBytes), kAnswerPatience);
      if (!got) co_return fail(std::move(got).error());
      if (*got == 0) co_return no_answer("it hung up without an answer");
      input_.commit(*got);
      meter_.moved(Way::Back, *got);
    }
  }

  static tl::unexpected<Error> no_answer(std::string why) {
    return fail(ErrorCode::Unavailable, "what listens there gave no answer: " + std::move(why));
  }

  Task<Result<void>> pass_answer() {
    ResponseHead head;
    do {
      ATOLL_CO_ASSIGN(head, co_await read_head());
    } while (head.status < 200 && head.status != 101);
    if (head.status == 101) co_return co_await pass_switch(std::move(head));
    framing_ = head.framing;
    bool bodiless = head.status == 204 || head.status == 304 || writer_.head_only();
    Headers all = std::move(head.headers);
    head.headers = passed_on(all);
    plan_.on_head(head);
    ATOLL_CO_TRY(co_await writer_.start(head.status, std::move(head.headers), head.framing.length));
    if (!bodiless) ATOLL_CO_TRY(co_await pass_body());
    co_return co_await writer_.finish();
  }

  static Headers passed_on(const Headers& all) {
    Headers kept;
    for (const Field& field : all) {
      if (!is_hop_by_hop(field.name, all)) kept.add(field.name, field.value);
    }
    return kept;
  }

  // By length, by chunks, or (neither) until the server ends.
  Task<Result<void>> pass_body() {
    ChunkedDecoder chunks;
    uint64_t left = framing_.length.value_or(0);
    bool by_end = !framing_.chunked && !framing_.length;
    for (;;) {
      if (framing_.chunked) {
        ATOLL_CO_ASSIGN(size_t used, chunks.feed(input_.view()));
        input_.consume(used);
        if (chunks.done()) break;
        left = chunks.data_left();
      }
      if (framing_.length && left == 0) break;
      if (input_.empty()) {
        auto got = co_await upstream_.read(input_.prepare(kPieceBytes), kSilence);
        if (!got) co_return fail(std::move(got).error());
        if (*got == 0 && by_end) break;
        if (*got == 0) co_return no_answer("it hung up within its answer");
        input_.commit(*got);
        meter_.moved(Way::Back, *got);
        continue;
      }
      size_t part =
          by_end ? input_.size() : static_cast<size_t>(std::min<uint64_t>(left, input_.size()));
      ATOLL_CO_TRY(co_await writer_.write(input_.view().substr(0, part)));
      input_.consume(part);
      if (framing_.chunked) chunks.consume_data(part);
      if (framing_.length) left -= part;
    }
    co_return Result<void>();
  }

  Task<Result<void>> pass_switch(ResponseHead head) {
    if (!plan_.upgrade) co_return no_answer("it changed the protocol unasked");
    Headers all = std::move(head.headers);
    head.headers = passed_on(all);
    plan_.on_head(head);
    head.headers.set("Connection", "Upgrade");
    head.headers.set("Upgrade", std::string(all.get("Upgrade").value_or("")));
    ATOLL_CO_ASSIGN(SwitchedConnection client,
                    co_await writer_.switch_protocols(std::move(head.headers)));
    if (!input_.empty()) {
      WriteParts parts{input_.view()};
      ATOLL_CO_TRY(co_await client.socket->write(parts, kWritePatience));
    }
    input_ = InputBuffer();
    if (!client.early.empty()) {
      WriteParts parts{client.early};
      ATOLL_CO_TRY(co_await upstream_.write(parts, kWritePatience));
    }
    co_await tunnel(*client.socket, upstream_, meter_);
    co_return Result<void>();
  }

  Request& request_;
  ResponseWriter& writer_;
  Socket& upstream_;
  TunnelMeter& meter_;
  RelayPlan plan_;
  InputBuffer input_;  // of the server's answer
  Framing framing_;
  bool has_body_ = false;
  bool uploading_ = false;
  bool client_broke_ = false;
  asio::steady_timer upload_ended_;
};

}  // namespace

Task<Result<void>> relay(RelayEnds ends, RelayPlan plan) {
  co_await ignore_cancellation();
  auto work = std::make_shared<Relay>(ends, std::move(plan));
  auto done = co_await work->run();
  co_await hear_cancellation();
  co_return done;
}

}  // namespace atl::http
