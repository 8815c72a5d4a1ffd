#include "store/store.h"

#include "base/scope_exit.h"
#include "store/schema.h"

namespace atl::store {
namespace {

// 4 MiB: so long, at most, do others wait for a step.
constexpr int kPagesAStep = 1024;

template <class... Values>
void bind_all(Statement& statement, const Values&... values) {
  int index = 0;
  (statement.bind(++index, values), ...);
}

// For a statement without rows.
template <class... Values>
Result<void> execute(Statement& statement, const Values&... values) {
  bind_all(statement, values...);
  auto stepped = statement.step();
  statement.reset();
  if (!stepped) return fail(std::move(stepped).error());
  return {};
}

Result<std::vector<EventRow>> read_events(Statement& query) {
  std::vector<EventRow> events;
  for (;;) {
    ATOLL_ASSIGN(bool more, query.step());
    if (!more) return events;
    events.push_back({.seq = query.integer(0),
                      .at_ms = query.integer(1),
                      .tenant = query.text(2),
                      .sandbox = query.text(3),
                      .type = query.text(4),
                      .data = query.text(5)});
  }
}

}  // namespace

Result<std::unique_ptr<Store>> Store::open(const std::string& path) {
  ATOLL_ASSIGN(Database database, Database::open(path));
  ATOLL_TRY(check_intact(database, path));
  ATOLL_TRY(database.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"));
  ATOLL_TRY(migrate(database, path));
  ATOLL_ASSIGN(Statements statements, prepare(database));
  return std::unique_ptr<Store>(new Store(std::move(database), std::move(statements)));
}

Result<Store::Statements> Store::prepare(Database& database) {
  Statements made;
  ATOLL_ASSIGN(made.put_sandbox,
               database.prepare("INSERT INTO sandboxes (id, record) VALUES (?1, ?2) "
                                "ON CONFLICT (id) DO UPDATE SET record = excluded.record"));
  ATOLL_ASSIGN(made.erase_sandbox, database.prepare("DELETE FROM sandboxes WHERE id = ?1"));
  ATOLL_ASSIGN(made.put_document,
               database.prepare("INSERT INTO documents (kind, tenant, id, body) "
                                "VALUES (?1, ?2, ?3, ?4) ON CONFLICT (kind, tenant, id) "
                                "DO UPDATE SET body = excluded.body"));
  ATOLL_ASSIGN(made.erase_document,
               database.prepare("DELETE FROM documents "
                                "WHERE kind = ?1 AND tenant = ?2 AND id = ?3"));
  ATOLL_ASSIGN(made.append_event,
               database.prepare("INSERT INTO events (seq, at_ms, tenant, sandbox, type, data) "
                                "VALUES (?1, ?2, ?3, ?4, ?5, ?6)"));
  ATOLL_ASSIGN(made.load_events,
               database.prepare("SELECT seq, at_ms, tenant, sandbox, type, data FROM events "
                                "WHERE seq > ?1 ORDER BY seq LIMIT ?2"));
  ATOLL_ASSIGN(made.load_sandbox_events,
               database.prepare("SELECT seq, at_ms, tenant, sandbox, type, data FROM events "
                                "WHERE seq > ?1 AND sandbox = ?3 ORDER BY seq LIMIT ?2"));
  ATOLL_ASSIGN(made.erase_events, database.prepare("DELETE FROM events WHERE at_ms < ?1"));
  ATOLL_ASSIGN(made.savepoint, database.prepare("SAVEPOINT one"));
  ATOLL_ASSIGN(made.release, database.prepare("RELEASE one"));
  ATOLL_ASSIGN(made.roll_back, database.prepare("ROLLBACK TO one"));
  return made;
}

Store::Store(Database database, Statements statements)
    : database_(std::move(database)),
      statements_(std::move(statements)),
      worker_(std::make_unique<async::WorkerThread>(
          [this](const std::function<void()>& jobs) { return in_transaction(jobs); })) {}

Result<void> Store::in_transaction(const std::function<void()>& jobs) {
  refusal_.reset();
  Result<void> begun = database_.execute("BEGIN IMMEDIATE");
  if (!begun) refusal_ = begun.error();
  jobs();
  if (refusal_) return fail(*refusal_);
  Result<void> committed = database_.execute("COMMIT");
  if (!committed) (void)database_.execute("ROLLBACK");
  return committed;
}

Result<std::map<std::string, std::string>> Store::load_sandboxes() {
  ATOLL_ASSIGN(Statement query, database_.prepare("SELECT id, record FROM sandboxes"));
  std::map<std::string, std::string> records;
  for (;;) {
    ATOLL_ASSIGN(bool more, query.step());
    if (!more) return records;
    records[query.text(0)] = query.text(1);
  }
}

Result<std::vector<Document>> Store::load_documents(std::string_view kind) {
  ATOLL_ASSIGN(Statement query,
               database_.prepare("SELECT tenant, id, body FROM documents WHERE kind = ?1"));
  query.bind(1, kind);
  std::vector<Document> documents;
  for (;;) {
    ATOLL_ASSIGN(bool more, query.step());
    if (!more) return documents;
    documents.push_back({.kind = std::string(kind),
                         .tenant = query.text(0),
                         .id = query.text(1),
                         .body = query.text(2)});
  }
}

Result<int64_t> Store::last_event() {
  ATOLL_ASSIGN(Statement query,
               database_.prepare("SELECT seq FROM sqlite_sequence WHERE name = 'events'"));
  ATOLL_ASSIGN(bool any, query.step());
  return any ? query.integer(0) : 0;
}

Result<void> Store::apply(const Write& write) {
  Statements& use = statements_;
  if (write.put_sandbox) {
    ATOLL_TRY(execute(use.put_sandbox, write.put_sandbox->id, write.put_sandbox->record));
  }
  if (write.erase_sandbox) ATOLL_TRY(execute(use.erase_sandbox, *write.erase_sandbox));
  for (const EventRow& event : write.events) {
    ATOLL_TRY(execute(use.append_event, event.seq, event.at_ms, event.tenant, event.sandbox,
                      event.type, event.data));
  }
  for (const Document& document : write.put_documents) {
    ATOLL_TRY(
        execute(use.put_document, document.kind, document.tenant, document.id, document.body));
  }
  for (const Document& document : write.erase_documents) {
    ATOLL_TRY(execute(use.erase_document, document.kind, document.tenant, document.id));
  }
  return {};
}

// A savepoint of its own, since writes of other callers share the transaction. Where there is none,
// a savepoint would be one by itself, and hold although its caller is told that it does not.
Result<void> Store::write_in_savepoint(const Write& write) {
  if (refusal_) return fail(*refusal_);
  ATOLL_TRY(execute(statements_.savepoint));
  auto applied = apply(write);
  if (!applied && !database_.in_transaction()) {  // a full disk takes back all of it
    refusal_ = applied.error();
    return applied;
  }
  if (!applied) (void)execute(statements_.roll_back);
  auto released = execute(statements_.release);
  return applied ? released : applied;
}

Task<Result<void>> Store::write(Write write) {
  auto work = [this, write = std::move(write)] { return write_in_savepoint(write); };
  co_return co_await worker_->run(std::move(work));
}

Task<Result<std::vector<EventRow>>> Store::load_events(int64_t after_seq, std::string sandbox,
                                                       size_t limit) {
  auto work = [this, after_seq, sandbox = std::move(sandbox), limit] {
    bool all = sandbox.empty();
    Statement& query = all ? statements_.load_events : statements_.load_sandbox_events;
    bind_all(query, after_seq, static_cast<int64_t>(limit));
    if (!all) query.bind(3, sandbox);
    ScopeExit done([&] { query.reset(); });
    return read_events(query);
  };
  co_return co_await worker_->run(std::move(work), async::Company::Alone);
}

Task<Result<void>> Store::erase_events_before(int64_t at_ms) {
  auto work = [this, at_ms]() -> Result<void> {
    if (refusal_) return fail(*refusal_);
    auto erased = execute(statements_.erase_events, at_ms);
    // As in write_in_savepoint(): a full disk takes back all of it.
    if (!erased && !database_.in_transaction()) refusal_ = erased.error();
    return erased;
  };
  co_return co_await worker_->run(std::move(work));
}

Task<Result<void>> Store::backup_to(std::string path) {
  // Used on the worker alone, and kept until the last step is over.
  struct Target {
    std::optional<Database> database;
    std::optional<Copy> copy;
  };
  auto target = std::make_shared<Target>();
  auto step = [this, target, path = std::move(path)]() -> Result<bool> {
    if (!target->copy) {
      ATOLL_ASSIGN(target->database, create_private_database(path));
      ATOLL_ASSIGN(target->copy, Copy::begin(database_, *target->database));
    }
    auto more = target->copy->step(kPagesAStep);
    if (!more || !*more) {
      target->copy.reset();  // first: a connection in use would not close
      target->database.reset();
    }
    return more;
  };
  for (;;) {
    ATOLL_CO_ASSIGN(bool more, co_await worker_->run(step, async::Company::Alone));
    if (!more) co_return Result<void>();
  }
}

}  // namespace atl::store
