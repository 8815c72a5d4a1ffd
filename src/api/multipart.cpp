#include "api/multipart.h"

namespace atl::api {
namespace {

constexpr size_t kMaxParts = 64;

std::string attribute(std::string_view header, std::string_view name) {
  std::string wanted = std::string(name) + "=";
  for (size_t at = header.find(wanted); at != header.npos; at = header.find(wanted, at + 1)) {
    bool starts = at == 0 || header[at - 1] == ' ' || header[at - 1] == ';';
    if (!starts) continue;
    std::string_view rest = header.substr(at + wanted.size());
    if (rest.starts_with('"')) {
      rest.remove_prefix(1);
      return std::string(rest.substr(0, rest.find('"')));
    }
    return std::string(rest.substr(0, rest.find_first_of("; \r\n")));
  }
  return {};
}

Error damaged(std::string_view what) {
  return Error(ErrorCode::InvalidArgument, "the multipart body is malformed: " + std::string(what));
}

Result<Part> parse_part(std::string_view text) {
  size_t blank = text.find("\r\n\r\n");
  if (blank == text.npos) return fail(damaged("a part without headers"));
  std::string_view headers = text.substr(0, blank);
  Part part;
  part.name = attribute(headers, "name");
  part.file_name = attribute(headers, "filename");
  part.data = text.substr(blank + 4);
  if (part.name.empty()) return fail(damaged("a part without a name"));
  return part;
}

}  // namespace

Result<std::vector<Part>> parse_multipart(std::string_view content_type, std::string_view body) {
  std::string boundary = attribute(content_type, "boundary");
  if (!boundary.empty()) boundary.insert(0, "--");
  if (boundary.empty()) boundary = body.substr(0, body.find("\r\n"));
  if (boundary.size() < 3 || boundary.size() > 200 || !body.starts_with(boundary)) {
    return fail(damaged("no boundary"));
  }
  std::vector<Part> parts;
  std::string separator = "\r\n" + boundary;
  body.remove_prefix(boundary.size());
  while (!body.starts_with("--")) {
    if (!body.starts_with("\r\n")) return fail(damaged("text after a boundary"));
    body.remove_prefix(2);
    size_t end = body.find(separator);
    if (end == body.npos) return fail(damaged("no closing boundary"));
    if (parts.size() == kMaxParts) return fail(damaged("too many parts"));
    ATOLL_ASSIGN(Part part, parse_part(body.substr(0, end)));
    parts.push_back(std::move(part));
    body.remove_prefix(end + separator.size());
  }
  return parts;
}

}  // namespace atl::api
