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

class Database {
 public:
  static Result<Database> open(const std::string& path);
  Result<Statement> prepare(std::string_view sql);
  Result<void> execute(const std::string& sql);
  int64_t last_insert_id() const { return sqlite3_last_insert_rowid(handle_.get()); }

 private:
  struct Closer {
    void operator()(sqlite3* handle) const { sqlite3_close(handle); }
  };
  std::unique_ptr<sqlite3, Closer> handle_;
};

}  // namespace atl::store
