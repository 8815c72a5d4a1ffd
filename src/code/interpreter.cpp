#include "code/interpreter.h"

#include "async/with_deadline.h"
#include "base/random_id.h"

namespace atl::code {

static tl::unexpected<Error> no_such(const ContextId& id) {
  return fail(Error(ErrorCode::NotFound, "no context '" + id.text() + "'").with_field("context"));
}

Task<Result<Interpreter::Box*>> Interpreter::look_into(const SessionPtr& session) {
  auto executor = co_await boost::asio::this_coro::executor;
  ATOLL_CO_ASSIGN(auto processes, co_await session->processes());
  std::erase_if(boxes_, [](const auto& entry) { return entry.second.session.expired(); });
  Box& box = boxes_[session->id()];
  if (box.session.lock() != session) box = Box{.session = session, .slots = {}};
  for (const ProcessInfo& process : processes) {
    auto label = parse_label(process.label);
    if (!label || !process.running) continue;
    SlotPtr& slot = box.slots[label->id];
    if (slot == nullptr) slot = std::make_shared<Slot>(executor, label->id);
    if (slot->pid == process.pid || slot->turn.is_locked()) continue;
    slot->pid = process.pid;
    slot->root = label->root;
    slot->cwd = process.cwd;
    slot->user = process.user;
  }
  co_return &box;
}

Task<Result<Interpreter::SlotPtr>> Interpreter::slot_of(const SessionPtr& session, ContextId id,
                                                        bool must_exist) {
  auto known = boxes_.find(session->id());
  if (known != boxes_.end() && known->second.session.lock() == session) {
    auto slot = known->second.slots.find(id);
    if (slot != known->second.slots.end()) co_return slot->second;
  }
  ATOLL_CO_ASSIGN(Box * box, co_await look_into(session));
  auto slot = box->slots.find(id);
  if (slot != box->slots.end()) co_return slot->second;
  if (must_exist) co_return no_such(id);
  co_return co_await add_slot(session, std::move(id));
}

Task<Result<Interpreter::SlotPtr>> Interpreter::add_slot(const SessionPtr& session, ContextId id) {
  auto executor = co_await boost::asio::this_coro::executor;
  ATOLL_CO_ASSIGN(Box * box, co_await look_into(session));
  SlotPtr& slot = box->slots[id];
  if (slot != nullptr) co_return slot;
  if (box->slots.size() > kMostContexts) {
    box->slots.erase(id);
    co_return fail(ErrorCode::ResourceExhausted,
                   "the sandbox has " + std::to_string(kMostContexts) +
                       " code contexts, which is as many as there can be: remove one");
  }
  slot = std::make_shared<Slot>(executor, std::move(id));
  co_return slot;
}

Task<Result<void>> Interpreter::find_again(const SessionPtr& session, Slot& slot) {
  ATOLL_CO_ASSIGN(auto processes, co_await session->processes());
  for (const ProcessInfo& process : processes) {
    auto label = parse_label(process.label);
    if (!process.running || !label || label->id != slot.id) continue;
    slot.pid = process.pid;
    slot.root = label->root;
  }
  co_return Result<void>();
}

Task<Result<CellOrder>> Interpreter::prepare(const SessionPtr& session, Slot& slot) {
  CellOrder order;
  if (slot.pid == 0) ATOLL_CO_TRY(co_await find_again(session, slot));
  if (slot.pid != 0) {
    auto process = co_await session->process(slot.pid);
    if (process && process->running && parse_label(process->label)) {
      order.kernel = process_of(slot);
      order.stdout_offset = process->stdout_bytes;
      order.stderr_offset = process->stderr_bytes;
      co_return order;
    }
    slot.pid = 0;
    slot.root.clear();
  }
  SpawnOptions options = kernel_command(slot.id.language);
  options.label = label_of(slot.id);
  options.cwd = slot.cwd;
  options.user = slot.user;
  auto process = co_await session->spawn(std::move(options));
  if (!process && process.error().code() == ErrorCode::NotFound &&
      process.error().field() == "command") {
    co_return fail(missing_program(slot.id.language));
  }
  if (!process) co_return fail(std::move(process).error());
  slot.pid = process->pid;
  slot.cwd = process->cwd;
  order.kernel = process_of(slot);
  order.program = kernel_program(slot.id.language);
  co_return order;
}

Task<Result<Outcome>> Interpreter::run(SessionPtr session, RunOrder wanted, Listener& listener,
                                       std::shared_ptr<Cancellation> cancellation) {
  auto self = shared_from_this();
  auto executor = co_await boost::asio::this_coro::executor;
  ATOLL_CO_ASSIGN(SlotPtr slot, co_await slot_of(session, wanted.context, wanted.must_exist));
  auto turn = co_await slot->turn.lock();
  if (slot->removed) co_return no_such(slot->id);
  if (slot->cwd.empty()) slot->cwd = wanted.cwd;
  if (slot->user.empty()) slot->user = wanted.user;
  // A kernel that had ended while nobody looked is not the code's fault: one more attempt.
  for (int attempt = 0;; attempt++) {
    if (cancellation->cancelled()) co_return fail(ErrorCode::Cancelled, "nobody waits for it");
    ATOLL_CO_ASSIGN(CellOrder order, co_await prepare(session, *slot));
    order.cell = wanted.cell;
    order.timeout = wanted.timeout;
    auto stopper = std::make_shared<Stopper>(executor, session, order.kernel);
    cancellation->follow(stopper);
    CellRun run(session, std::move(order), listener, stopper);
    auto outcome = co_await run.run();
    stopper->finish();
    if (!outcome) slot->pid = 0;
    if (outcome && outcome->kernel_ended) {
      slot->pid = 0;
      slot->root.clear();
      if (!outcome->begun && attempt == 0) continue;
    }
    co_return outcome;
  }
}

Task<Result<ContextInfo>> Interpreter::create(SessionPtr session, NewContext wanted) {
  auto self = shared_from_this();
  ContextId id{.language = wanted.language, .session = wanted.session};
  if (id.session.empty()) id.session = random_id("", 16);
  ATOLL_CO_ASSIGN(SlotPtr slot, co_await add_slot(session, id));
  auto turn = co_await slot->turn.lock();
  if (slot->pid != 0) {
    co_return fail(Error(ErrorCode::Conflict, "there is a context '" + id.text() + "' already")
                       .with_field("sessionId"));
  }
  slot->cwd = std::move(wanted.cwd);
  slot->user = std::move(wanted.user);
  auto order = co_await prepare(session, *slot);
  if (!order) {
    slot->removed = true;
    boxes_[session->id()].slots.erase(id);
    co_return fail(std::move(order).error());
  }
  // An empty cell: the answer comes when the kernel is there.
  struct Silent : Listener {
    Task<Result<void>> on_event(Event) override { co_return Result<void>(); }
  } silent;
  auto executor = co_await boost::asio::this_coro::executor;
  auto stopper = std::make_shared<Stopper>(executor, session, order->kernel);
  CellRun first(session, std::move(*order), silent, stopper);
  auto outcome = co_await first.run();
  stopper->finish();
  if (!outcome) {
    slot->removed = true;
    boxes_[session->id()].slots.erase(id);
    co_return fail(std::move(outcome).error());
  }
  co_return info_of(*slot);
}

Task<Result<std::vector<ContextInfo>>> Interpreter::list(SessionPtr session) {
  auto self = shared_from_this();
  ATOLL_CO_ASSIGN(Box * box, co_await look_into(session));
  std::vector<ContextInfo> all;
  for (const auto& [id, slot] : box->slots) all.push_back(info_of(*slot));
  co_return all;
}

Task<Result<ContextInfo>> Interpreter::find(SessionPtr session, ContextId id) {
  auto self = shared_from_this();
  ATOLL_CO_ASSIGN(SlotPtr slot, co_await slot_of(session, std::move(id), true));
  co_return info_of(*slot);
}

Task<Result<void>> Interpreter::end(const SessionPtr& session, Slot& slot) {
  if (slot.pid == 0) co_return Result<void>();
  ATOLL_CO_TRY(co_await end_kernel(session, process_of(slot)));
  slot.pid = 0;
  slot.root.clear();
  co_return Result<void>();
}

Task<Result<void>> Interpreter::remove(SessionPtr session, ContextId id) {
  auto self = shared_from_this();
  ATOLL_CO_ASSIGN(SlotPtr slot, co_await slot_of(session, id, true));
  slot->removed = true;  // what waits for its turn hears of it
  boxes_[session->id()].slots.erase(id);
  co_return co_await end(session, *slot);
}

Task<Result<void>> Interpreter::restart(SessionPtr session, ContextId id) {
  auto self = shared_from_this();
  ATOLL_CO_ASSIGN(SlotPtr slot, co_await slot_of(session, id, true));
  ATOLL_CO_TRY(co_await end(session, *slot));
  auto turn = co_await slot->turn.lock();
  co_return Result<void>();
}

}  // namespace atl::code
