// A branch of a live kernel: it forks, and its second half lives on the streams of a process that
// the agent has started for it (src/kernels/branch.py).
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "async/with_deadline.h"
#include "base/random_id.h"
#include "code/interpreter.h"

namespace atl::code {
namespace {

constexpr std::chrono::seconds kBranchLimit{15};

// What the kernel says to one request that is not a cell: the next message on its output.
class Answers {
 public:
  Answers(ProcessStream& stream, const std::string& mark) : stream_(stream), frames_(mark) {}

  Task<Result<boost::json::object>> until(std::string_view type) {
    for (;;) {
      while (!waiting_.empty()) {
        boost::json::object message = std::move(waiting_.front());
        waiting_.erase(waiting_.begin());
        const auto* found = message.if_contains("t");
        if (found != nullptr && found->is_string() && found->get_string() == type)
          co_return message;
      }
      ATOLL_CO_ASSIGN(OutputEvent event, co_await stream_.next());
      if (event.kind == OutputEvent::Kind::Exited) {
        co_return fail(ErrorCode::Unavailable, "the kernel ended while it was branched");
      }
      if (event.kind != OutputEvent::Kind::Data || event.stream != Stream::Stdout) continue;
      ATOLL_CO_ASSIGN(auto items, frames_.feed(event.data));
      for (const auto& item : items) {
        if (item.kind != FrameReader::Item::Kind::Message) continue;
        boost::system::error_code bad;
        boost::json::value value = boost::json::parse(item.bytes, bad);
        if (!bad && value.is_object()) waiting_.push_back(std::move(value.get_object()));
      }
    }
  }

 private:
  ProcessStream& stream_;
  FrameReader frames_;
  std::vector<boost::json::object> waiting_;
};

}  // namespace

Task<Result<int32_t>> Interpreter::branch(SessionPtr session, SlotPtr parent, ContextId id) {
  auto self = shared_from_this();
  ATOLL_CO_ASSIGN(ProcessInfo process, co_await session->process(parent->pid));
  AttachOptions options;
  options.stdout_offset = process.stdout_bytes;
  options.stderr_offset = process.stderr_bytes;
  options.take_input = true;
  ATOLL_CO_ASSIGN(auto stream, co_await session->attach(parent->pid, options));
  std::string mark = make_mark();
  std::string door = random_id("atoll-kernel-", 32);
  ATOLL_CO_TRY(co_await stream->write_input(fork_request(door, mark)));
  Answers answers(*stream, mark);
  ATOLL_CO_TRY(co_await answers.until("listening"));
  SpawnOptions guest = branch_command(door);
  guest.label = label_of(id, parent->root.empty() ? parent->id.text() : parent->root);
  guest.cwd = parent->cwd;
  guest.user = parent->user;
  ATOLL_CO_ASSIGN(ProcessInfo made, co_await session->spawn(std::move(guest)));
  ATOLL_CO_ASSIGN(auto end, co_await answers.until("end"));
  const auto* code = end.if_contains("code");
  if (code == nullptr || !code->is_int64() || code->get_int64() != 0) {
    co_return fail(ErrorCode::Unavailable, "the kernel could not be branched");
  }
  co_return made.pid;
}

Task<Result<ContextInfo>> Interpreter::fork(SessionPtr session, ContextId id,
                                            std::string new_session) {
  auto self = shared_from_this();
  if (id.language != Language::Python) {
    co_return fail(Error(ErrorCode::NotSupported, "only Python's kernels can be branched")
                       .with_field("context"));
  }
  ATOLL_CO_ASSIGN(SlotPtr parent, co_await slot_of(session, id, true));
  ContextId made{.language = id.language, .session = std::move(new_session)};
  if (made.session.empty()) made.session = random_id("", 16);
  ATOLL_CO_ASSIGN(SlotPtr slot, co_await add_slot(session, made));
  auto own_turn = co_await slot->turn.lock();
  if (slot->pid != 0 || slot == parent) {
    co_return fail(Error(ErrorCode::Conflict, "there is a context '" + made.text() + "' already")
                       .with_field("sessionId"));
  }
  auto turn = co_await parent->turn.lock();
  Result<int32_t> pid = fail(ErrorCode::InvalidState, "the context has no kernel: run code first");
  if (parent->pid != 0) {
    pid = co_await async::with_deadline(branch(session, parent, made), kBranchLimit,
                                        "the kernel did not branch in time");
  }
  if (!pid) {
    slot->removed = true;
    boxes_[session->id()].slots.erase(made);
    co_return fail(std::move(pid).error());
  }
  slot->pid = *pid;
  slot->root = parent->root.empty() ? parent->id.text() : parent->root;
  slot->cwd = parent->cwd;
  slot->user = parent->user;
  co_return info_of(*slot);
}

}  // namespace atl::code
