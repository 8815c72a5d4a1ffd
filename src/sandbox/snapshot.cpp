#include "sandbox/snapshot.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace atl::sandbox {

namespace json = boost::json;

Snapshot describe_snapshot(const Sandbox& sandbox, SnapshotInput input, std::string id) {
  Snapshot snapshot;
  snapshot.id = std::move(id);
  snapshot.source = sandbox.record;
  snapshot.parent = sandbox.record.snapshot;
  snapshot.message = std::move(input.message);
  snapshot.tags = std::move(input.tags);
  snapshot.automatic = input.automatic;
  snapshot.created_at_ms = wall_clock_ms();
  if (input.keep_s != 0) snapshot.expires_at_ms = snapshot.created_at_ms + input.keep_s * 1000;
  return snapshot;
}

Result<std::string> encode_snapshot(const Snapshot& snapshot, const PolicySeal& seal) {
  ATOLL_ASSIGN(std::string source, encode_record(snapshot.source, seal));
  json::object object{
      {"id", snapshot.id},
      {"source", source},
      {"parent", snapshot.parent},
      {"message", snapshot.message},
      {"tags", json::array(snapshot.tags.begin(), snapshot.tags.end())},
      {"createdAtMs", snapshot.created_at_ms},
      {"expiresAtMs", snapshot.expires_at_ms},
      {"frozenUs", snapshot.frozen_us},
      {"totalUs", snapshot.total_us},
      {"bytes", snapshot.bytes},
      {"automatic", snapshot.automatic},
      {"number", snapshot.number},
      {"memory", snapshot.memory},
      {"memoryBytes", snapshot.memory_bytes},
  };
  return json::serialize(object);
}

Result<Snapshot> decode_snapshot(std::string_view text, const PolicySeal& seal) {
  Snapshot snapshot;
  try {
    json::object object = json::parse(text).as_object();
    snapshot.id = object.at("id").as_string();
    ATOLL_ASSIGN(snapshot.source, decode_record(object.at("source").as_string(), seal));
    snapshot.parent = object.at("parent").as_string();
    snapshot.message = object.at("message").as_string();
    for (const json::value& tag : object.at("tags").as_array()) {
      snapshot.tags.emplace_back(tag.as_string());
    }
    snapshot.created_at_ms = object.at("createdAtMs").to_number<int64_t>();
    snapshot.expires_at_ms = object.at("expiresAtMs").to_number<int64_t>();
    snapshot.frozen_us = object.at("frozenUs").to_number<uint32_t>();
    snapshot.total_us = object.at("totalUs").to_number<uint32_t>();
    snapshot.bytes = object.at("bytes").to_number<uint64_t>();
    snapshot.automatic = object.at("automatic").as_bool();
    if (object.contains("number")) snapshot.number = object.at("number").to_number<uint32_t>();
    if (object.contains("memory")) {
      snapshot.memory = object.at("memory").as_bool();
      snapshot.memory_bytes = object.at("memoryBytes").to_number<uint64_t>();
    }
  } catch (const std::exception& error) {
    return fail(ErrorCode::Internal, std::string("the record of a snapshot: ") + error.what());
  }
  return snapshot;
}

SnapshotPtr SnapshotIndex::find(const Caller& caller, const std::string& id_or_tag) const {
  auto found = by_id_.find(id_or_tag);
  if (found != by_id_.end()) {
    return caller.may_see(found->second->source) ? found->second : nullptr;
  }
  SnapshotPtr newest;
  for (const auto& [id, snapshot] : by_id_) {
    const auto& tags = snapshot->tags;
    bool tagged = std::find(tags.begin(), tags.end(), id_or_tag) != tags.end();
    if (!tagged || snapshot->source.owner.tenant != caller.owner.tenant) continue;
    if (newest == nullptr || snapshot->created_at_ms > newest->created_at_ms) newest = snapshot;
  }
  return newest;
}

std::vector<SnapshotPtr> SnapshotIndex::list(const Caller& caller,
                                             const std::string& sandbox) const {
  std::vector<SnapshotPtr> found;
  for (const auto& [id, snapshot] : by_id_) {
    bool wanted = sandbox.empty() || snapshot->source.id == sandbox;
    if (wanted && caller.may_see(snapshot->source)) found.push_back(snapshot);
  }
  std::sort(found.begin(), found.end(), [](const SnapshotPtr& a, const SnapshotPtr& b) {
    return std::pair(a->created_at_ms, a->id) < std::pair(b->created_at_ms, b->id);
  });
  return found;
}

std::vector<SnapshotPtr> SnapshotIndex::expired(int64_t now_ms) const {
  std::vector<SnapshotPtr> found;
  for (const auto& [id, snapshot] : by_id_) {
    if (snapshot->expires_at_ms != 0 && snapshot->expires_at_ms <= now_ms) {
      found.push_back(snapshot);
    }
  }
  return found;
}

uint64_t SnapshotIndex::memory_bytes() const {
  uint64_t sum = 0;
  for (const auto& [id, snapshot] : by_id_) sum += snapshot->memory_bytes;
  return sum;
}

}  // namespace atl::sandbox
