// What cells show, as the API says it.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <string>

#include "code/interpreter.h"
#include "http/memory_budget.h"

namespace atl::api {

// One result as the richest of the forms that it has: a data frame, an image, HTML, JSON, text.
boost::json::object part_json(const code::Event& event);
boost::json::object error_json(const code::CellError& error);
boost::json::object context_json(const code::ContextInfo& context);
// Everything but output and results.
boost::json::object outcome_json(const code::Outcome& outcome, const code::ContextId& context);

// Gathers all that a cell shows, within bounds.
class CellCollector : public code::Listener {
 public:
  static constexpr size_t kMaxText = 8u << 20;      // of each stream
  static constexpr size_t kMaxResults = 48u << 20;  // together

  explicit CellCollector(http::MemoryShare memory) : memory_(std::move(memory)) {}
  Task<Result<void>> on_event(code::Event event) override;
  // A CodeExecutionResult.
  boost::json::object result(const code::Outcome& outcome, const code::ContextId& context);

 private:
  struct Text {
    std::string kept;
    uint64_t lost = 0;
  };
  void add_text(Text& to, const std::string& text);
  void add_result(const code::Event& event);

  http::MemoryShare memory_;
  Text stdout_;
  Text stderr_;
  boost::json::array results_;
  size_t results_bytes_ = 0;
};

}  // namespace atl::api
