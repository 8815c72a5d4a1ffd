// A thin, safe face for SQLite: one connection, prepared statements, errors as Result.
#pragma once

#include <sqlite3.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace atl::store {

class Statement {
 public:
  Statement() = default;
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}

  // Parameters count from 1. The text must live until the step.
  void bind(int index, std::string_view text);
  void bind(int index, int64_t value);
  // True while there are rows.
  Result<bool> step();
  // One without rows, to its end; it can be bound again.
  Result<void> run();
  std::string text(int column) const;
  int64_t integer(int column) const;
  void reset();

 private:
  struct Finalizer {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  std::unique_ptr<sqlite3_stmt, Finalizer> statement_;
};

class Copy;

class Database {
 public:
  static Result<Database> open(const std::string& path);
  Result<Statement> prepare(std::string_view sql);
  Result<void> execute(const std::string& sql);
  bool in_transaction() const { return sqlite3_get_autocommit(handle_.get()) == 0; }

 private:
  friend class Copy;
  struct Closer {
    void operator()(sqlite3* handle) const { sqlite3_close(handle); }
  };
  std::unique_ptr<sqlite3, Closer> handle_;
};

// A new file for its owner alone; SQLite itself would let everybody read it.
Result<Database> create_private_database(const std::string& path);

// A copy of a database that goes on being used, made a piece at a time. What is written meanwhile,
// on the same connection, is in it too.
class Copy {
 public:
  // Both must outlive it. What `to` holds is replaced.
  static Result<Copy> begin(Database& from, Database& to);
  // True while there is more. Not inside a transaction of `from`.
  Result<bool> step(int pages);

 private:
  struct Finisher {
    void operator()(sqlite3_backup* backup) const { sqlite3_backup_finish(backup); }
  };
  explicit Copy(sqlite3_backup* backup) : backup_(backup) {}
  std::unique_ptr<sqlite3_backup, Finisher> backup_;
};

}  // namespace atl::store
