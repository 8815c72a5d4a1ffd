// What a backup consists of. The manifest is the archive's last entry, so a cut-off archive has
// none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace atl::backup {

inline constexpr std::string_view kManifestName = "manifest.json";
inline constexpr std::string_view kDatabaseName = "state/atoll.db";
inline constexpr std::string_view kApiKeyName = "api-key";

enum class Owner : uint8_t { Server, Root };

struct File {
  std::string path;  // below the data directory
  uint64_t bytes = 0;
  std::string sha256;
  uint32_t mode = 0600;
  Owner owner = Owner::Server;
};

struct Manifest {
  std::string version;     // of the program that made it
  int64_t schema = 0;      // of the database
  std::string created_at;  // RFC 3339
  uint64_t sandboxes = 0;
  std::vector<File> files;
};

std::string encode_manifest(const Manifest& manifest);
Result<Manifest> decode_manifest(std::string_view text);

// Whether a file of this name belongs into a backup: the API key, or something below state/ or
// audit/ that leads nowhere else and is not SQLite's own beside the database.
bool is_state_file(std::string_view path);

std::string timestamp_now();

}  // namespace atl::backup
