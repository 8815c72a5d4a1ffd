// Durable state. What a caller has awaited survives kill -9; writes that pile up share a commit.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/worker_thread.h"
#include "atoll/result.h"
#include "atoll/task.h"
#include "store/sqlite.h"

namespace atl::store {

// A JSON text that its owner understands: a key, a secret, a share.
struct Document {
  std::string kind;
  std::string tenant;
  std::string id;
  std::string body;
};

struct EventRow {
  int64_t seq = 0;
  int64_t at_ms = 0;
  std::string tenant;
  std::string sandbox;
  std::string type;
  std::string data;
};

// Changes that become durable together or not at all.
struct Write {
  struct Sandbox {
    std::string id;
    std::string record;
  };
  std::optional<Sandbox> put_sandbox;
  std::optional<std::string> erase_sandbox;
  std::vector<EventRow> events;  // numbered by the caller, upwards
  std::vector<Document> put_documents;
  std::vector<Document> erase_documents;  // their bodies do not matter
};

class Store {
 public:
  // Refuses a damaged database and one from a newer version; never overwrites either.
  static Result<std::unique_ptr<Store>> open(const std::string& path);

  // These three read at once, on the caller's thread: call them before the first write.
  Result<std::map<std::string, std::string>> load_sandboxes();  // records by id
  Result<std::vector<Document>> load_documents(std::string_view kind);
  Result<int64_t> last_event();  // the greatest seq ever given, even if that event is gone

  Task<Result<void>> write(Write write);

  // Oldest first; of one sandbox, or of all where `sandbox` is empty.
  Task<Result<std::vector<EventRow>>> load_events(int64_t after_seq, std::string sandbox,
                                                  size_t limit);
  Task<Result<void>> erase_events_before(int64_t at_ms);

  // A consistent copy in the new file `path`, on the disk when this returns. Writes go on meanwhile
  // and wait for a few milliseconds at most.
  Task<Result<void>> backup_to(std::string path);

 private:
  struct Statements {
    Statement put_sandbox, erase_sandbox;
    Statement put_document, erase_document;
    Statement append_event, load_events, load_sandbox_events, erase_events;
    Statement savepoint, release, roll_back;
  };
  static Result<Statements> prepare(Database& database);

  Store(Database database, Statements statements);
  Result<void> apply(const Write& write);
  Result<void> write_in_savepoint(const Write& write);
  Result<void> in_transaction(const std::function<void()>& jobs);

  // Exactly one connection: SQLite before 3.51.3 can corrupt a WAL that two connections reset.
  Database database_;
  Statements statements_;
  std::optional<Error> refusal_;  // why the present transaction takes no writes
  std::unique_ptr<async::WorkerThread> worker_;
};

}  // namespace atl::store
