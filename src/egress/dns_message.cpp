#include "egress/dns_message.h"

#include <algorithm>
#include <cstring>

#include "egress/name.h"

namespace atl::egress {
namespace {

constexpr size_t kHeader = 12;
constexpr uint16_t kClassIn = 1;
constexpr uint16_t kPointerToQuestion = 0xc00c;
constexpr size_t kMostBytes = 512;
constexpr int kMaxPointers = 16;

class Cursor {
 public:
  explicit Cursor(std::string_view message, size_t at = 0) : message_(message), at_(at) {}

  uint16_t u16() {
    if (at_ + 2 > message_.size()) return stop();
    auto value = static_cast<uint16_t>(byte(at_) << 8 | byte(at_ + 1));
    at_ += 2;
    return value;
  }
  uint32_t u32() {
    uint32_t high = u16();
    return high << 16 | u16();
  }
  std::string_view bytes(size_t count) {
    if (at_ + count > message_.size()) {
      stop();
      return {};
    }
    std::string_view found = message_.substr(at_, count);
    at_ += count;
    return found;
  }
  // A name with pointers followed, as text.
  std::string name() {
    std::string text;
    size_t at = at_;
    bool jumped = false;
    for (int pointers = 0; ok_;) {
      if (at >= message_.size()) return stop(), text;
      uint8_t size = byte(at);
      if ((size & 0xc0) == 0xc0) {
        if (at + 2 > message_.size() || ++pointers > kMaxPointers) return stop(), text;
        size_t target = static_cast<size_t>(size & 0x3f) << 8 | byte(at + 1);
        if (!jumped) at_ = at + 2;
        jumped = true;
        if (target >= at) return stop(), text;  // only backwards, so it ends
        at = target;
        continue;
      }
      if (size > 63 || at + 1 + size > message_.size() || text.size() + size > 254) {
        return stop(), text;
      }
      at += 1;
      if (size == 0) break;
      if (!text.empty()) text.push_back('.');
      std::string_view label = message_.substr(at, size);
      // A dot inside a label would read as two labels.
      if (label.find('.') != label.npos) return stop(), text;
      text.append(label);
      at += size;
    }
    if (!jumped) at_ = at;
    return text;
  }
  size_t at() const { return at_; }
  bool ok() const { return ok_; }

 private:
  uint8_t byte(size_t at) const { return static_cast<uint8_t>(message_[at]); }
  uint16_t stop() {
    ok_ = false;
    at_ = message_.size();
    return 0;
  }

  std::string_view message_;
  size_t at_;
  bool ok_ = true;
};

void put16(char* at, uint16_t value) {
  at[0] = static_cast<char>(value >> 8);
  at[1] = static_cast<char>(value & 0xff);
}

void append16(std::string& out, uint16_t value) {
  char bytes[2];
  put16(bytes, value);
  out.append(bytes, 2);
}

struct Record {
  std::string owner;
  uint16_t type = 0;
  uint32_t ttl = 0;
  std::string target;  // of an alias
  std::string_view data;
};

Record read_record(Cursor& cursor, std::string_view message) {
  Record record;
  record.owner = canonical_name(cursor.name()).value_or("");
  record.type = cursor.u16();
  cursor.u16();  // class
  record.ttl = cursor.u32();
  uint16_t size = cursor.u16();
  size_t at = cursor.at();
  record.data = cursor.bytes(size);
  if (record.type == static_cast<uint16_t>(DnsType::Cname) && cursor.ok()) {
    Cursor inner(message, at);
    record.target = canonical_name(inner.name()).value_or("");
  }
  return record;
}

}  // namespace

std::optional<DnsQuery> parse_dns_query(std::string_view message) {
  if (message.size() < kHeader + 5) return std::nullopt;
  Cursor cursor(message);
  DnsQuery query;
  query.id = cursor.u16();
  uint16_t flags = cursor.u16();
  uint16_t questions = cursor.u16();
  cursor.bytes(6);
  bool is_query = (flags & 0x8000) == 0 && (flags & 0x7800) == 0;
  if (!is_query || questions != 1) return std::nullopt;
  query.recursion_desired = (flags & 0x0100) != 0;
  std::string name = cursor.name();
  query.type = cursor.u16();
  uint16_t klass = cursor.u16();
  if (!cursor.ok() || klass != kClassIn) return std::nullopt;
  query.question_end = cursor.at();
  query.name = canonical_name(name).value_or("");
  return query;
}

size_t write_dns_answer(std::string_view query, const DnsQuery& parsed, DnsCode code,
                        std::span<const IpAddress> addresses, uint32_t ttl, std::span<char> out) {
  size_t at = parsed.question_end;
  if (out.size() < std::max(at, kMostBytes)) return 0;
  memcpy(out.data(), query.data(), at);
  uint16_t flags = 0x8080;  // an answer, recursion available
  if (parsed.recursion_desired) flags |= 0x0100;
  put16(out.data() + 2, static_cast<uint16_t>(flags | static_cast<uint16_t>(code)));
  uint16_t count = 0;
  for (const IpAddress& address : addresses) {
    bool four = address.is_v4();
    uint16_t size = four ? 4 : 16;
    if (at + 12 + size > kMostBytes) break;
    char* to = out.data() + at;
    put16(to, kPointerToQuestion);
    put16(to + 2, static_cast<uint16_t>(four ? DnsType::A : DnsType::Aaaa));
    put16(to + 4, kClassIn);
    put16(to + 6, static_cast<uint16_t>(ttl >> 16));
    put16(to + 8, static_cast<uint16_t>(ttl & 0xffff));
    put16(to + 10, size);
    memcpy(to + 12, four ? address.v4_bytes() : address.bytes().data(), size);
    at += 12u + size;
    count++;
  }
  put16(out.data() + 4, 1);
  put16(out.data() + 6, count);
  put16(out.data() + 8, 0);
  put16(out.data() + 10, 0);
  return at;
}

size_t write_dns_refusal(std::string_view query, DnsCode code, std::span<char> out) {
  if (query.size() < kHeader || out.size() < kHeader) return 0;
  if ((query[2] & 0x80) != 0) return 0;  // an answer wants none
  memset(out.data(), 0, kHeader);
  memcpy(out.data(), query.data(), 2);
  put16(out.data() + 2, static_cast<uint16_t>(0x8080 | static_cast<uint16_t>(code)));
  return kHeader;
}

std::string make_dns_query(uint16_t id, std::string_view name, DnsType type) {
  std::string out;
  append16(out, id);
  append16(out, 0x0100);  // recursion desired
  for (int count : {1, 0, 0, 0}) append16(out, static_cast<uint16_t>(count));
  while (!name.empty()) {
    size_t dot = std::min(name.find('.'), name.size());
    out.push_back(static_cast<char>(dot));
    out.append(name.substr(0, dot));
    name.remove_prefix(std::min(dot + 1, name.size()));
  }
  out.push_back('\0');
  append16(out, static_cast<uint16_t>(type));
  append16(out, kClassIn);
  return out;
}

std::optional<DnsReply> parse_dns_reply(std::string_view message, uint16_t id,
                                        std::string_view name, DnsType type) {
  if (message.size() < kHeader) return std::nullopt;
  Cursor cursor(message);
  uint16_t their_id = cursor.u16();
  uint16_t flags = cursor.u16();
  uint16_t questions = cursor.u16();
  uint16_t answers = cursor.u16();
  cursor.bytes(4);
  if (their_id != id || (flags & 0x8000) == 0 || questions != 1) return std::nullopt;
  auto asked = canonical_name(cursor.name());
  uint16_t asked_type = cursor.u16();
  cursor.u16();
  if (!cursor.ok() || asked != name || asked_type != static_cast<uint16_t>(type)) {
    return std::nullopt;
  }
  DnsReply reply;
  reply.code = static_cast<DnsCode>(flags & 15);
  reply.truncated = (flags & 0x0200) != 0;
  reply.ttl = UINT32_MAX;
  std::string owner(name);
  for (uint16_t i = 0; i < answers; i++) {
    Record record = read_record(cursor, message);
    if (!cursor.ok()) break;
    if (record.owner != owner) continue;
    if (!record.target.empty()) {
      owner = record.target;
      reply.ttl = std::min(reply.ttl, record.ttl);
    }
    if (record.type != static_cast<uint16_t>(type)) continue;
    if (type == DnsType::A && record.data.size() == 4) {
      reply.addresses.push_back(IpAddress::v4(record.data.data()));
    } else if (type == DnsType::Aaaa && record.data.size() == 16) {
      reply.addresses.push_back(IpAddress::v6(record.data.data()));
    }
    reply.ttl = std::min(reply.ttl, record.ttl);
  }
  if (reply.ttl == UINT32_MAX) reply.ttl = 0;
  return reply;
}

}  // namespace atl::egress
