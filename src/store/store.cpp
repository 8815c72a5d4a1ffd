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
               database.prepare("INSERT INTO events (at_ms, tenant, sandbox, type, data) "
                                "VALUES (?1, ?2, ?3, ?4, ?5)"));
  ATOLL_ASSIGN(made.load_events,
               database.prepare("SELECT seq, at_ms, tenant, sandbox, type, data FROM events "
                                "WHERE seq > ?1 ORDER BY seq LIMIT ?2"));
  ATOLL_ASSIGN(made.erase_events, database.prepare("DELETE FROM events WHERE at_ms < ?1"));
  return made;
}

Store::Store(Database database, Statements statements)
    : database_(std::move(database)),
      statements_(std::move(statements)),
      worker_(std::make_unique<async::WorkerThread>(
          [this](const std::function<void()>& jobs) { return in_transaction(jobs); })) {}

Result<void> Store::in_transaction(const std::function<void()>& jobs) {
  Result<void> begun = database_.execute("BEGIN IMMEDIATE");
  jobs();  // each fails by itself where the transaction could not begin
  if (!begun) return begun;
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

Task<Result<void>> Store::put_sandbox(std::string id, std::string record) {
  auto work = [this, id = std::move(id), record = std::move(record)] {
    return execute(statements_.put_sandbox, id, record);
  };
  co_return co_await worker_->run(std::move(work));
}

Task<Result<void>> Store::erase_sandbox(std::string id) {
  auto work = [this, id = std::move(id)] { return execute(statements_.erase_sandbox, id); };
  co_return co_await worker_->run(std::move(work));
}

Task<Result<void>> Store::put_document(std::string kind, std::string tenant, std::string id,
                                       std::string body) {
  auto work = [this, kind = std::move(kind), tenant = std::move(tenant), id = std::move(id),
               body = std::move(body)] {
    return execute(statements_.put_document, kind, tenant, id, body);
  };
  co_return co_await worker_->run(std::move(work));
}

Task<Result<void>> Store::erase_document(std::string kind, std::string tenant, std::string id) {
  auto work = [this, kind = std::move(kind), tenant = std::move(tenant), id = std::move(id)] {
    return execute(statements_.erase_document, kind, tenant, id);
  };
  co_return co_await worker_->run(std::move(work));
}

Task<Result<int64_t>> Store::append_event(int64_t at_ms, std::string tenant, std::string sandbox,
                                          std::string type, std::string data) {
  auto work = [this, at_ms, tenant = std::move(tenant), sandbox = std::move(sandbox),
               type = std::move(type), data = std::move(data)]() -> Result<int64_t> {
    ATOLL_TRY(execute(statements_.append_event, at_ms, tenant, sandbox, type, data));
    return database_.last_insert_id();
  };
  co_return co_await worker_->run(std::move(work));
}

Task<Result<std::vector<EventRow>>> Store::load_events(int64_t after_seq, size_t limit) {
  auto work = [this, after_seq, limit] {
    Statement& query = statements_.load_events;
    bind_all(query, after_seq, static_cast<int64_t>(limit));
    ScopeExit done([&] { query.reset(); });
    return read_events(query);
  };
  co_return co_await worker_->run(std::move(work));
}

Task<Result<void>> Store::erase_events_before(int64_t at_ms) {
  auto work = [this, at_ms] { return execute(statements_.erase_events, at_ms); };
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
