// Templates: what there is, and making more of them.
#include <fcntl.h>
#include <sys/stat.h>

#include <boost/json.hpp>

#include "base/whole_file.h"
#include "client/client_impl.h"
#include "client/decode.h"
#include "client/tar_pack.h"
#include "http/base64.h"
#include "http/status.h"
#include "http/target.h"

namespace atl {
namespace {

namespace json = boost::json;
using client::parse_answer;

Result<json::object> to_json(const TemplateRequest::Seed& seed) {
  struct stat info {};
  if (stat(seed.from.c_str(), &info) != 0) return fail_errno("read", seed.from);
  if (!S_ISDIR(info.st_mode)) {
    ATOLL_ASSIGN(std::string content, read_whole_file(seed.from));
    return json::object{{"path", seed.to}, {"content", content}};
  }
  std::string archive;
  ByteSink collect = [&](std::string_view bytes) -> Result<void> {
    archive.append(bytes);
    return {};
  };
  ATOLL_TRY(client::pack_tar(seed.from, collect));
  return json::object{{"path", seed.to}, {"archive", http::base64_encode(archive)}};
}

void put_settings(json::object& body, const TemplateSettings& settings) {
  json::object env;
  for (const auto& [name, value] : settings.env) env[name] = value;
  if (!env.empty()) body["env"] = std::move(env);
  if (!settings.workdir.empty()) body["workdir"] = settings.workdir;
  if (!settings.user.empty()) body["user"] = settings.user;
  if (!settings.network.empty()) {
    boost::system::error_code error;
    body["network"] = json::parse(settings.network, error);
  }
  json::object resources = client::resources_body(settings.limits);
  if (!resources.empty()) body["resources"] = std::move(resources);
}

Result<json::object> to_json(const TemplateRequest& request) {
  json::object body{{"name", request.name}};
  if (!request.base.empty()) body["from"] = request.base;
  if (!request.snapshot.empty()) body["snapshot"] = request.snapshot;
  if (!request.bootstrap.empty()) body["bootstrap"] = request.bootstrap;
  if (request.timeout) body["timeoutSeconds"] = static_cast<int64_t>(request.timeout->count());
  json::array seeds;
  for (const TemplateRequest::Seed& seed : request.seeds) {
    ATOLL_ASSIGN(json::object item, to_json(seed));
    seeds.push_back(std::move(item));
  }
  if (!seeds.empty()) body["seed"] = std::move(seeds);
  put_settings(body, request.settings);
  return body;
}

Result<MadeTemplate> to_made(std::string_view text) {
  ATOLL_ASSIGN(json::value value, parse_answer(text));
  return MadeTemplate{.info = client::to_template(value),
                      .reused = client::flag_of(value, "reused"),
                      .json = json::serialize(value)};
}

}  // namespace

Result<MadeTemplate> Client::create_template(const TemplateRequest& request,
                                             const std::function<void(std::string_view)>& log) {
  ATOLL_ASSIGN(json::object body, to_json(request));
  http::Headers headers = impl_->headers;
  headers.set("Accept", "text/event-stream");
  headers.set("Content-Type", "application/json");
  ATOLL_ASSIGN(http::ResponseStream response,
               impl_->open("POST", "/v1/templates", headers, json::serialize(body)));
  for (;;) {
    ATOLL_ASSIGN(auto event, response.next_event());
    if (!event) return fail(ErrorCode::Unavailable, "the server went away during the build");
    if (event->event == "complete") return to_made(event->data);
    if (event->data.empty()) continue;
    ATOLL_ASSIGN(json::value value, parse_answer(event->data));
    if (event->event == "error") {
      ErrorCode code = http::error_code_of(0, client::text_of(value, "code"));
      return fail(code, client::text_of(value, "message"));
    }
    if (event->event == "log" && log) log(client::text_of(value, "text"));
  }
}

Result<MadeTemplate> Client::update_template(std::string_view reference,
                                             const TemplateSettings& settings) {
  json::object body;
  put_settings(body, settings);
  std::string target = "/v1/templates/" + http::percent_encode(reference);
  ATOLL_ASSIGN(std::string answer,
               impl_->call(impl_->quick, "PATCH", target, json::serialize(body)));
  return to_made(answer);
}

Result<void> Client::remove_template(std::string_view reference) {
  std::string target = "/v1/templates/" + http::percent_encode(reference);
  ATOLL_TRY(impl_->call(impl_->quick, "DELETE", target, {}));
  return {};
}
Result<void> Client::tag_template(std::string_view reference, std::string_view tag) {
  std::string target =
      "/v1/templates/" + http::percent_encode(reference) + "/tags/" + http::percent_encode(tag);
  ATOLL_TRY(impl_->call(impl_->quick, "PUT", target, {}));
  return {};
}

Result<std::vector<TemplateInfo>> Client::templates(bool all_versions) {
  std::string target = all_versions ? "/v1/templates?all=true" : "/v1/templates";
  ATOLL_ASSIGN(std::string answer, impl_->call(impl_->quick, "GET", target, {}));
  ATOLL_ASSIGN(json::value value, parse_answer(answer));
  return client::list_of(client::member(value, "templates"), client::to_template);
}

}  // namespace atl
