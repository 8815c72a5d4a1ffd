#include "sandbox_api.h"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

namespace atl::bench {
namespace {

namespace json = boost::json;

tl::unexpected<Error> unexpected_answer(std::string_view what, const std::string& body) {
  return fail(ErrorCode::Internal,
              std::string(what) + ": unexpected answer: " + body.substr(0, 300));
}

Result<json::value> parse(const std::string& text) {
  json::error_code error;
  json::value value = json::parse(text, error);
  if (error) return unexpected_answer("json", text);
  return value;
}

}  // namespace

double find_number(std::string_view json, std::string_view key) {
  std::string wanted = "\"" + std::string(key) + "\":";
  size_t at = json.find(wanted);
  if (at == json.npos) return 0;
  return std::strtod(std::string(json.substr(at + wanted.size(), 24)).c_str(), nullptr);
}

std::string find_text(std::string_view json, std::string_view key) {
  std::string wanted = "\"" + std::string(key) + "\":\"";
  size_t at = json.find(wanted);
  if (at == json.npos) return {};
  json.remove_prefix(at + wanted.size());
  return std::string(json.substr(0, json.find('"')));
}

std::vector<std::string> find_ids(std::string_view json) {
  constexpr std::string_view kWanted = R"("id":"sandbox-)";
  std::set<std::string> ids;
  for (size_t at = json.find(kWanted); at != json.npos; at = json.find(kWanted, at + 1)) {
    ids.insert(find_text(json.substr(at), "id"));
  }
  return {ids.begin(), ids.end()};
}

std::string runtime_path(const std::string& id, std::string_view rest) {
  return "/v1/sandboxes/" + id + "/runtime" + std::string(rest);
}

Result<SandboxApi> SandboxApi::connect(const std::string& endpoint) {
  ATOLL_ASSIGN(http::Client client, http::Client::create(endpoint));
  return SandboxApi(std::move(client));
}

Result<std::string> SandboxApi::call(std::string_view method, const std::string& target,
                                     std::string_view body) {
  static const http::Headers kJson{{"content-type", "application/json"}};
  static const http::Headers kNone;
  auto response = client_.request(method, target, body.empty() ? kNone : kJson, body);
  if (!response) {
    return fail(std::move(response).error().context(std::string(method) + " " + target));
  }
  if (!response->ok()) {
    return fail(ErrorCode::Internal, std::string(method) + " " + target + ": status " +
                                         std::to_string(response->status) + ": " +
                                         response->body.substr(0, 300));
  }
  return std::move(response->body);
}

// Looked for rather than parsed: this is inside the clock of a whole cycle.
Result<Created> SandboxApi::create(std::string_view body) {
  return create_by("/v1/sandboxes", body);
}

Result<std::string> SandboxApi::post(const std::string& target, std::string_view body) {
  return call("POST", target, body);
}

Result<void> SandboxApi::remove_checkpoint(const std::string& answer) {
  ATOLL_TRY(call("DELETE", "/v1/checkpoints/" + find_text(answer, "checkpointId"), ""));
  return {};
}

Result<void> SandboxApi::remove_template(const std::string& name) {
  ATOLL_TRY(call("DELETE", "/v1/templates/" + name, {}));
  return {};
}

Result<void> SandboxApi::remove_snapshot(const std::string& answer) {
  ATOLL_TRY(call("DELETE", "/v1/snapshots/" + find_text(answer, "snapshotId"), {}));
  return {};
}

Result<Created> SandboxApi::create_by(const std::string& target, std::string_view body) {
  ATOLL_ASSIGN(std::string answer, call("POST", target, body));
  constexpr std::string_view kId = R"("id":")";
  size_t begin = answer.find(kId);
  size_t end = begin == answer.npos ? begin : answer.find('"', begin + kId.size());
  if (end == answer.npos) return unexpected_answer("create", answer);
  begin += kId.size();
  return Created{answer.substr(begin, end - begin),
                 answer.find(R"("source":"pool")") != answer.npos,
                 find_number(answer, "totalMicroseconds")};
}

Result<void> SandboxApi::remove(const std::string& id) {
  ATOLL_TRY(call("DELETE", "/v1/sandboxes/" + id, {}));
  return {};
}

Result<void> SandboxApi::remove_all() {
  ATOLL_ASSIGN(std::string answer, call("GET", "/v1/sandboxes?limit=10000", {}));
  ATOLL_ASSIGN(json::value value, parse(answer));
  boost::system::error_code error;
  const json::value* list = value.find_pointer("/sandboxes", error);
  if (list == nullptr || !list->is_array()) return unexpected_answer("list", answer);
  for (const json::value& item : list->as_array()) {
    const json::value* id = item.find_pointer("/id", error);
    if (id == nullptr || !id->is_string()) return unexpected_answer("list", answer);
    ATOLL_TRY(remove(std::string(id->as_string())));
  }
  return {};
}

Result<std::string> SandboxApi::exec(const std::string& id, std::string_view body) {
  ATOLL_ASSIGN(std::string answer, call("POST", runtime_path(id, "/terminals/commands"), body));
  if (answer.find(R"("exitCode":0,)") == answer.npos) return unexpected_answer("exec", answer);
  return answer;
}

Result<std::string> SandboxApi::exec_output(const std::string& id, std::string_view body) {
  ATOLL_ASSIGN(std::string answer, exec(id, body));
  ATOLL_ASSIGN(json::value value, parse(answer));
  boost::system::error_code error;
  const json::value* output = value.find_pointer("/result/stdout", error);
  if (output == nullptr || !output->is_string()) return unexpected_answer("exec", answer);
  return std::string(output->as_string());
}

Result<unsigned> SandboxApi::pool_size() {
  ATOLL_ASSIGN(std::string answer, call("GET", "/v1/system", {}));
  ATOLL_ASSIGN(json::value value, parse(answer));
  boost::system::error_code error;
  const json::value* size = value.find_pointer("/pool/base", error);
  if (size == nullptr) return 0u;
  return size->to_number<unsigned>(error);
}

Result<unsigned> SandboxApi::sandbox_count() {
  ATOLL_ASSIGN(std::string answer, call("GET", "/v1/system", {}));
  ATOLL_ASSIGN(json::value value, parse(answer));
  boost::system::error_code error;
  const json::value* size = value.find_pointer("/sandboxes", error);
  if (size == nullptr) return unexpected_answer("system", answer);
  return size->to_number<unsigned>(error);
}

Result<void> SandboxApi::upload_program(const std::string& id, const std::string& local,
                                        const std::string& path) {
  std::ifstream file(local, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  if (!file || bytes.str().empty()) return fail(ErrorCode::NotFound, "cannot read " + local);
  ATOLL_TRY(call("PUT", runtime_path(id, "/fs/upload" + path + "?mode=0755"), bytes.str()));
  return {};
}

}  // namespace atl::bench
