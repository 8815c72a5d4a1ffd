#include "api/code_shapes.h"

#include <boost/json/serialize.hpp>

#include "base/json_escape.h"
#include "http/base64.h"

namespace atl::api {
namespace {

namespace json = boost::json;

constexpr std::string_view kDataFrame = "application/x-atoll-dataframe+json";
// Text is in memory as it came and as an answer.
constexpr size_t kCopies = 3;

const json::string* text_in(const json::object& data, std::string_view type) {
  const json::value* value = data.if_contains(type);
  return value != nullptr && value->is_string() ? &value->get_string() : nullptr;
}

json::object image(std::string_view format, std::string data) {
  return {{"type", "image"}, {"format", format}, {"data", std::move(data)}};
}

}  // namespace

json::object error_json(const code::CellError& error) {
  return {{"name", to_valid_utf8(error.name)},
          {"message", to_valid_utf8(error.value)},
          {"traceback", to_valid_utf8(error.traceback)}};
}

json::object part_json(const code::Event& event) {
  const json::object& data = event.data;
  if (const json::value* frame = data.if_contains(kDataFrame); frame && frame->is_object()) {
    json::object part{{"type", "dataframe"}};
    for (const auto& field : frame->get_object()) part[field.key()] = field.value();
    return part;
  }
  if (auto* png = text_in(data, "image/png")) return image("png", std::string(*png));
  if (auto* jpeg = text_in(data, "image/jpeg")) return image("jpeg", std::string(*jpeg));
  if (auto* svg = text_in(data, "image/svg+xml")) return image("svg", http::base64_encode(*svg));
  if (auto* html = text_in(data, "text/html")) return {{"type", "html"}, {"value", *html}};
  if (auto* value = data.if_contains("application/json")) {
    return {{"type", "json"}, {"value", *value}};
  }
  for (std::string_view type : {"text/markdown", "text/latex", "text/plain"}) {
    if (auto* text = text_in(data, type)) return {{"type", "text"}, {"value", *text}};
  }
  return {{"type", "json"}, {"value", data}};
}

json::object context_json(const code::ContextInfo& context) {
  return {{"id", context.id.text()},
          {"sessionId", context.id.session},
          {"language", code::name_of(context.id.language)},
          {"cwd", context.cwd},
          {"running", context.running}};
}

json::object outcome_json(const code::Outcome& outcome, const code::ContextId& context) {
  json::object object{
      {"exitCode", outcome.exit_code},    {"durationMs", outcome.duration.count() / 1000},
      {"timedOut", outcome.timed_out},    {"kernelEnded", outcome.kernel_ended},
      {"executionCount", outcome.number}, {"contextId", context.text()}};
  if (outcome.error) object["error"] = error_json(*outcome.error);
  return object;
}

void CellCollector::add_text(Text& to, const std::string& text) {
  size_t room = to.kept.size() < kMaxText ? kMaxText - to.kept.size() : 0;
  size_t size = std::min(room, text.size());
  if (size > 0 && !memory_.take(kCopies * size)) size = 0;
  to.kept.append(text, 0, size);
  to.lost += text.size() - size;
}

void CellCollector::add_result(const code::Event& event) {
  json::object part = part_json(event);
  size_t size = json::serialize(part).size();
  if (results_bytes_ + size > kMaxResults || !memory_.take(kCopies * size)) {
    part = {{"type", "text"},
            {"value", "a result of " + std::to_string(size) + " bytes was left out: too much"}};
    size = 64;
  }
  results_bytes_ += size;
  results_.push_back(std::move(part));
}

Task<Result<void>> CellCollector::on_event(code::Event event) {
  switch (event.kind) {
    case code::Event::Kind::Begun:
      break;
    case code::Event::Kind::Stdout:
      add_text(stdout_, event.text);
      break;
    case code::Event::Kind::Stderr:
      add_text(stderr_, event.text);
      break;
    case code::Event::Kind::Result:
      add_result(event);
      break;
    case code::Event::Kind::Error: {
      json::object part = error_json(event.error);
      part["type"] = "error";
      results_.push_back(std::move(part));
      break;
    }
  }
  co_return Result<void>();
}

json::object CellCollector::result(const code::Outcome& outcome, const code::ContextId& context) {
  json::object object = outcome_json(outcome, context);
  object["stdout"] = to_valid_utf8(stdout_.kept);
  object["stderr"] = to_valid_utf8(stderr_.kept);
  object["stdoutLost"] = stdout_.lost;
  object["stderrLost"] = stderr_.lost;
  object["results"] = std::move(results_);
  return object;
}

}  // namespace atl::api
