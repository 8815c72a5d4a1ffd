#include "api/e2b/build_body.h"

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "auth/digest.h"

namespace atl::api::e2b {
namespace {

namespace json = boost::json;
using http::JsonObjectReader;

// E2B's own image is what our base template stands for.
constexpr std::string_view kOwnImage = "e2bdev/base";
constexpr size_t kMaxSteps = 1000;

Error bad(std::string_view field, std::string message) {
  return Error(ErrorCode::InvalidArgument, std::move(message)).with_field(field);
}

Result<void> refuse(JsonObjectReader& reader, std::string_view name, std::string_view why) {
  const json::value* value = reader.any(name);
  if (value == nullptr || value->is_null()) return {};
  if (value->is_string() && value->get_string().empty()) return {};
  return fail(
      Error(ErrorCode::NotSupported,
            "'" + std::string(name) + "' is not supported by this server: " + std::string(why))
          .with_field(name));
}

Result<void> read_origin(JsonObjectReader& reader, BuildPlan& plan) {
  ATOLL_ASSIGN(auto image, reader.optional_string("fromImage"));
  ATOLL_ASSIGN(auto of, reader.optional_string("fromTemplate"));
  if (image && of) return fail(bad("fromTemplate", "give either fromImage or fromTemplate"));
  plan.from_field = of ? "fromTemplate" : "fromImage";
  plan.from = of.value_or(image.value_or("base"));
  if (!of && plan.from.starts_with(kOwnImage)) plan.from = "base";
  return {};
}

class PlanReader {
 public:
  explicit PlanReader(BuildPlan& plan) : plan_(plan) {}

  Result<void> step(JsonObjectReader& reader, const std::string& field) {
    number_++;
    ATOLL_ASSIGN(std::string type, reader.require_string("type"));
    ATOLL_ASSIGN(auto args, reader.string_array("args"));
    ATOLL_ASSIGN(auto hash, reader.optional_string("filesHash"));
    ATOLL_TRY(reader.optional_bool("force"));  // nothing is cached: every step always runs
    ATOLL_TRY(reader.optional_bool("forceUpload"));
    ATOLL_TRY(reader.finish());
    if (type == "ENV") return environment(args, field);
    if (type == "WORKDIR") return directory(args, field);
    if (type == "USER") return user(args, field);
    if (type == "RUN") return run(args, field);
    if (type == "COPY") return copy(args, hash.value_or(""), field);
    return fail(Error(ErrorCode::NotSupported, "no step '" + type + "' is known here")
                    .with_field(field + ".type"));
  }

 private:
  Result<void> environment(const std::vector<std::string>& args, const std::string& field) {
    if (args.size() % 2 != 0) return fail(bad(field, "ENV has names and values in turn"));
    for (size_t at = 0; at < args.size(); at += 2) plan_.env[args[at]] = args[at + 1];
    return {};
  }

  Result<void> directory(const std::vector<std::string>& args, const std::string& field) {
    if (args.empty() || args[0].empty()) return fail(bad(field, "WORKDIR has a path"));
    plan_.workdir = resolved(args[0]);
    BuildStep step = next(BuildStep::Kind::Run);
    step.command = "mkdir -p \"$ATOLL_WORKDIR\" && chown \"$ATOLL_OWNER\" \"$ATOLL_WORKDIR\"";
    step.env["ATOLL_WORKDIR"] = plan_.workdir;
    step.env["ATOLL_OWNER"] = plan_.user.empty() ? "user" : plan_.user;
    step.user = "root";
    step.workdir = "/";
    plan_.steps.push_back(std::move(step));
    return {};
  }

  Result<void> user(const std::vector<std::string>& args, const std::string& field) {
    if (args.empty() || args[0].empty()) return fail(bad(field, "USER has a name"));
    plan_.user = args[0];
    return {};
  }

  Result<void> run(const std::vector<std::string>& args, const std::string& field) {
    if (args.empty() || args[0].empty()) return fail(bad(field, "RUN has a command"));
    BuildStep step = next(BuildStep::Kind::Run);
    step.command = args[0];
    if (args.size() > 1 && !args[1].empty()) step.user = args[1];
    plan_.steps.push_back(std::move(step));
    return {};
  }

  Result<void> copy(std::vector<std::string> args, const std::string& hash,
                    const std::string& field) {
    args.resize(std::max<size_t>(4, args.size()));
    if (args[0].empty() || args[1].empty())
      return fail(bad(field, "COPY has a source and a target"));
    if (hash.size() != 64 || !auth::is_lower_hex(hash)) {
      return fail(bad(field + ".filesHash", "COPY has the SHA-256 of its files"));
    }
    BuildStep step = next(BuildStep::Kind::Copy);
    step.source = args[0];
    step.target = resolved(args[1]);
    step.owner = args[2].empty() ? (plan_.user.empty() ? "user" : plan_.user) : args[2];
    step.mode = args[3];
    step.files_hash = hash;
    plan_.steps.push_back(std::move(step));
    return {};
  }

  BuildStep next(BuildStep::Kind kind) const {
    BuildStep step;
    step.kind = kind;
    step.number = number_;
    step.env = plan_.env;
    step.user = plan_.user;
    step.workdir = plan_.workdir;
    return step;
  }

  std::string resolved(const std::string& path) const {
    if (path.starts_with('/')) return path;
    std::string home = plan_.user == "root" ? "/root" : "/home/user";
    return (plan_.workdir.empty() ? home : plan_.workdir) + "/" + path;
  }

  BuildPlan& plan_;
  size_t number_ = 0;
};

}  // namespace

Result<BuildPlan> read_plan(const http::JsonDocument& document) {
  ATOLL_ASSIGN(const json::object* object, document.object());
  JsonObjectReader reader(*object);
  BuildPlan plan;
  ATOLL_TRY(read_origin(reader, plan));
  ATOLL_TRY(refuse(reader, "fromImageRegistry", "import the image first (atoll template import)"));
  ATOLL_TRY(refuse(reader, "startCmd", "start the command in each sandbox"));
  ATOLL_TRY(refuse(reader, "readyCmd", "there is no start command to wait for"));
  ATOLL_TRY(reader.optional_bool("force"));
  ATOLL_ASSIGN(auto steps, reader.object_array("steps"));
  ATOLL_TRY(reader.finish());
  if (steps.size() > kMaxSteps) return fail(bad("steps", "at most 1000 steps"));
  PlanReader read(plan);
  for (size_t at = 0; at < steps.size(); at++) {
    ATOLL_TRY(read.step(steps[at], "steps[" + std::to_string(at) + "]"));
  }
  return plan;
}

Result<BuildOrder> read_order(const http::JsonDocument& document) {
  ATOLL_ASSIGN(const json::object* object, document.object());
  JsonObjectReader reader(*object);
  BuildOrder order;
  ATOLL_ASSIGN(auto name, reader.optional_string("name"));
  ATOLL_ASSIGN(auto alias, reader.optional_string("alias"));
  ATOLL_ASSIGN(order.tags, reader.string_array("tags"));
  ATOLL_ASSIGN(auto cores, reader.optional_integer("cpuCount", 1, 1024));
  ATOLL_ASSIGN(auto memory, reader.optional_integer("memoryMB", 8, 16 << 20));
  ATOLL_TRY(reader.optional_string("teamID"));
  ATOLL_TRY(refuse(reader, "minFreeDiskMB", "a sandbox has the disk that its limit says"));
  ATOLL_TRY(reader.finish());
  order.name = name.value_or(alias.value_or(""));
  if (size_t colon = order.name.find(':'); colon != std::string::npos) {
    order.tags.push_back(order.name.substr(colon + 1));
    order.name.erase(colon);
  }
  bool good = !order.name.empty() && order.name.size() <= 64 &&
              std::all_of(order.name.begin(), order.name.end(), [](unsigned char c) {
                return isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
              });
  if (!good) return fail(bad("name", "a name has 1 to 64 letters, digits, '-', '_' and '.'"));
  order.cpu_millis = static_cast<uint32_t>(cores.value_or(0)) * 1000;
  order.memory_bytes = static_cast<uint64_t>(memory.value_or(0)) << 20;
  return order;
}

}  // namespace atl::api::e2b
