#include "code/cell_run.h"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "http/json.h"

namespace atl::code {
namespace {

namespace json = boost::json;

// A new kernel reads its program and its libraries first; one that lives and does not begin is busy
// with what nobody knows of any more, and is interrupted.
constexpr std::chrono::seconds kStartLimit{30};
constexpr std::chrono::seconds kBeginLimit{3};
constexpr size_t kInputPart = 128u << 10;
constexpr size_t kMaxEarly = 4096;
constexpr int kTimedOut = 124;
constexpr int kNoProgram = 127;

std::string text_of(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

// A kernel's results may be nested and keyed as they like, so only this bound of requests is
// theirs.
bool has_too_many_values(std::string_view text) {
  size_t values = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); i++) {
    char c = text[i];
    if (in_string) {
      if (c == '\\') i++;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == ',' || c == '[' || c == '{') {
      if (++values > http::kMaxJsonValues) return true;
    }
  }
  return false;
}

int64_t number_of(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_int64() ? value->get_int64() : 0;
}

}  // namespace

CellRun::CellRun(SessionPtr session, CellOrder order, Listener& listener,
                 std::shared_ptr<Stopper> stopper)
    : session_(std::move(session)),
      order_(std::move(order)),
      listener_(listener),
      stopper_(std::move(stopper)) {}

Task<Result<void>> CellRun::send(ProcessStream& stream, std::string bytes) {
  for (size_t at = 0; at < bytes.size(); at += kInputPart) {
    ATOLL_CO_TRY(co_await stream.write_input(bytes.substr(at, kInputPart)));
  }
  co_return Result<void>();
}

Task<void> CellRun::tell(Event event) {
  if (!wanted_) co_return;
  auto told = co_await listener_.on_event(std::move(event));
  if (told) co_return;
  wanted_ = false;
  stopper_->stop(Stopper::Reason::Unwanted);
}

Task<void> CellRun::take_message(Stream stream, std::string_view text) {
  Side& from = side(stream);
  if (has_too_many_values(text)) {
    Event event{.kind = Event::Kind::Result};
    event.data["text/plain"] = "a result of " + std::to_string(text.size()) +
                               " bytes was left out: it has too many values";
    co_await tell(std::move(event));
    co_return;
  }
  boost::system::error_code bad;
  json::value value = json::parse(text, bad);
  if (bad || !value.is_object()) {
    stopper_->stop(Stopper::Reason::Disturbed);
    co_return;
  }
  json::object& message = value.get_object();
  std::string type = text_of(message, "t");
  if (type == "begin") {
    from.begun = true;
    if (stream == Stream::Stderr) co_return;
    outcome_.begun = true;
    outcome_.number = static_cast<uint64_t>(number_of(message, "n"));
    begun_at_ = std::chrono::steady_clock::now();
    stopper_->begun(order_.timeout);
    co_await tell({.kind = Event::Kind::Begun, .number = outcome_.number});
  } else if (type == "end") {
    from.ended = true;
    if (stream == Stream::Stdout) outcome_.exit_code = static_cast<int>(number_of(message, "code"));
  } else if (type == "error") {
    outcome_.error = CellError{.name = text_of(message, "name"),
                               .value = text_of(message, "value"),
                               .traceback = text_of(message, "traceback")};
  } else if (type == "result") {
    Event event{.kind = Event::Kind::Result};
    if (auto* main = message.if_contains("main")) event.main = main->is_bool() && main->get_bool();
    if (auto* data = message.if_contains("data"); data != nullptr && data->is_object()) {
      event.data = std::move(data->get_object());
    }
    co_await tell(std::move(event));
  }
}

Task<void> CellRun::take(Stream stream, std::string_view bytes) {
  Side& from = side(stream);
  auto items = from.frames.feed(bytes);
  if (!items) {
    stopper_->stop(Stopper::Reason::Disturbed);
    co_return;
  }
  for (FrameReader::Item& item : *items) {
    if (from.ended) co_return;  // what comes after the end belongs to nobody
    if (item.kind == FrameReader::Item::Kind::Message) {
      co_await take_message(stream, item.bytes);
    } else if (from.begun) {
      Event event{.kind = stream == Stream::Stderr ? Event::Kind::Stderr : Event::Kind::Stdout};
      event.text = std::move(item.bytes);
      co_await tell(std::move(event));
    } else if (from.early.size() < kMaxEarly) {
      from.early += item.bytes;
    }
  }
}

// What the end means, where it did not come by itself.
void CellRun::judge() {
  auto reason = stopper_->reason();
  if (reason == Stopper::Reason::TimeUp) {
    outcome_.timed_out = true;
    outcome_.exit_code = kTimedOut;
    std::string limit = std::to_string(order_.timeout.count());
    outcome_.error = CellError{
        .name = "TimeoutError",
        .value = "the code ran for longer than " + limit + " ms and was interrupted" +
                 (outcome_.kernel_ended
                      ? "; it did not heed that, so its kernel was ended: its variables are lost"
                      : "; its kernel goes on with its variables"),
        .traceback = outcome_.error ? outcome_.error->traceback : ""};
  } else if (outcome_.kernel_ended && !outcome_.error) {
    outcome_.error = CellError{
        .name = "KernelDied",
        .value = reason == Stopper::Reason::Disturbed
                     ? "the code disturbed its kernel's channel, so the kernel was ended; the next "
                       "call starts a new one, without its variables"
                     : "the kernel ended (status " + std::to_string(outcome_.exit_code) +
                           ") while the code ran; the next call starts a new one, without its "
                           "variables",
        .traceback = ""};
  }
}

Task<Result<Outcome>> CellRun::ended(const ProcessInfo& process) {
  if (!outcome_.begun && !order_.program.empty()) {
    if (process.exit_code == kNoProgram) co_return fail(missing_program(order_.kernel.id.language));
    co_return fail(ErrorCode::Unavailable, "the kernel did not start (status " +
                                               std::to_string(process.exit_code) +
                                               "): " + stderr_.early.substr(0, 1000));
  }
  for (Stream stream : {Stream::Stdout, Stream::Stderr}) {
    std::string rest = side(stream).frames.rest();
    if (rest.empty() || !side(stream).begun || side(stream).ended) continue;
    co_await tell({.kind = stream == Stream::Stderr ? Event::Kind::Stderr : Event::Kind::Stdout,
                   .text = std::move(rest)});
  }
  outcome_.kernel_ended = true;
  outcome_.exit_code = process.exit_code;
  co_return std::move(outcome_);
}

Task<Result<Outcome>> CellRun::run() {
  AttachOptions options;
  options.stdout_offset = order_.stdout_offset;
  options.stderr_offset = order_.stderr_offset;
  options.take_input = true;
  ATOLL_CO_ASSIGN(auto stream, co_await session_->attach(order_.kernel.pid, options));
  bool is_new = !order_.program.empty();
  stopper_->expect_within(is_new ? kStartLimit : kBeginLimit, Stopper::Reason::NotBegun);
  ATOLL_CO_TRY(co_await send(
      *stream, order_.program + run_request(order_.kernel.id.language, order_.cell, mark_)));
  order_.cell.code.clear();
  while (!stdout_.ended || !stderr_.ended) {
    ATOLL_CO_ASSIGN(OutputEvent event, co_await stream->next());
    if (event.kind == OutputEvent::Kind::Data) co_await take(event.stream, event.data);
    if (event.kind != OutputEvent::Kind::Exited) continue;
    ATOLL_CO_ASSIGN(outcome_, co_await ended(event.process));
    break;
  }
  stopper_->finish();
  outcome_.duration = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now() - begun_at_);
  if (!outcome_.begun) outcome_.duration = {};
  judge();
  if (outcome_.error) co_await tell({.kind = Event::Kind::Error, .error = *outcome_.error});
  co_return std::move(outcome_);
}

}  // namespace atl::code
