#include "store/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <filesystem>

#include "store/schema.h"

namespace atl::store {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

class StoreTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/atoll-store-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    dir_ = name;
    path_ = dir_ + "/atoll.db";
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  std::unique_ptr<Store> open() {
    auto store = Store::open(path_);
    EXPECT_TRUE(store) << store.error().message();
    return store ? std::move(*store) : nullptr;
  }

  template <class T>
  T await(Task<T> task) {
    std::optional<T> result;
    boost::asio::co_spawn(io_, std::move(task),
                          [&](std::exception_ptr, T value) { result = std::move(value); });
    io_.restart();
    io_.run();
    return std::move(*result);
  }

  int64_t append(Store& store, int64_t at_ms, std::string type) {
    if (seq_ == 0) seq_ = *store.last_event();
    Write write;
    write.events.push_back({++seq_, at_ms, "acme", "sandbox-1", std::move(type), "{}"});
    EXPECT_TRUE(await(store.write(std::move(write))));
    return seq_;
  }

  bool put_sandbox(Store& store, std::string id, std::string record) {
    Write write;
    write.put_sandbox = {std::move(id), std::move(record)};
    return await(store.write(std::move(write))).has_value();
  }

  bool erase_sandbox(Store& store, std::string id) {
    return await(store.write({.erase_sandbox = std::move(id)})).has_value();
  }

  bool put_document(Store& store, std::string kind, std::string tenant, std::string id,
                    std::string body) {
    Write write;
    write.put_documents.push_back(
        {std::move(kind), std::move(tenant), std::move(id), std::move(body)});
    return await(store.write(std::move(write))).has_value();
  }

  bool erase_document(Store& store, std::string kind, std::string tenant, std::string id) {
    Write write;
    write.erase_documents.push_back({std::move(kind), std::move(tenant), std::move(id), ""});
    return await(store.write(std::move(write))).has_value();
  }

  std::vector<std::string> tables() {
    auto database = Database::open(path_);
    auto query = database->prepare("SELECT name FROM sqlite_schema ORDER BY name");
    std::vector<std::string> names;
    while (*query->step()) names.push_back(query->text(0));
    return names;
  }

  std::string dir_;
  std::string path_;
  int64_t seq_ = 0;
  boost::asio::io_context io_;  // outlives every store: its thread posts here
};

TEST_F(StoreTest, KeepsSandboxesAcrossServers) {
  ASSERT_TRUE(put_sandbox(*open(), "a", "one"));
  {
    auto store = open();
    ASSERT_TRUE(put_sandbox(*store, "a", "two"));
    ASSERT_TRUE(put_sandbox(*store, "b", "three"));
    ASSERT_TRUE(erase_sandbox(*store, "b"));
    ASSERT_TRUE(erase_sandbox(*store, "never there"));
  }
  EXPECT_THAT(*open()->load_sandboxes(), ElementsAre(testing::Pair("a", "two")));
}

TEST_F(StoreTest, KeepsDocumentsByKindTenantAndId) {
  {
    auto store = open();
    ASSERT_TRUE(put_document(*store, "key", "acme", "k1", "old"));
    ASSERT_TRUE(put_document(*store, "key", "acme", "k1", "new"));
    ASSERT_TRUE(put_document(*store, "key", "zebra", "k1", "theirs"));
    ASSERT_TRUE(put_document(*store, "secret", "acme", "k1", "other kind"));
    ASSERT_TRUE(put_document(*store, "key", "acme", "k2", "gone"));
    ASSERT_TRUE(erase_document(*store, "key", "acme", "k2"));
    ASSERT_TRUE(erase_document(*store, "key", "zebra", "k2"));
  }
  auto documents = open()->load_documents("key");
  ASSERT_TRUE(documents);
  EXPECT_THAT(*documents, ElementsAre(testing::FieldsAre("key", "acme", "k1", "new"),
                                      testing::FieldsAre("key", "zebra", "k1", "theirs")));
  EXPECT_THAT(*open()->load_documents("nothing"), IsEmpty());
}

TEST_F(StoreTest, KeepsBytesThatAreNotText) {
  std::string bytes("a\0\xff\"b", 5);
  ASSERT_TRUE(put_document(*open(), "key", "t", "id", bytes));
  EXPECT_EQ(open()->load_documents("key")->front().body, bytes);
}

TEST_F(StoreTest, NumbersEventsAndReadsThemInOrder) {
  auto store = open();
  EXPECT_EQ(*store->last_event(), 0);
  EXPECT_EQ(append(*store, 100, "created"), 1);
  EXPECT_EQ(append(*store, 200, "stopped"), 2);
  EXPECT_EQ(append(*store, 300, "deleted"), 3);
  auto events = await(store->load_events(1, "", 10));
  ASSERT_TRUE(events);
  EXPECT_THAT(*events,
              ElementsAre(testing::FieldsAre(2, 200, "acme", "sandbox-1", "stopped", "{}"),
                          testing::FieldsAre(3, 300, "acme", "sandbox-1", "deleted", "{}")));
  EXPECT_THAT(*await(store->load_events(0, "", 2)),
              ElementsAre(Field(&EventRow::seq, 1), Field(&EventRow::seq, 2)));
}

TEST_F(StoreTest, ReadsTheEventsOfOneSandbox) {
  auto store = open();
  append(*store, 100, "created");
  Write other;
  other.events.push_back({++seq_, 150, "acme", "sandbox-2", "created", "{}"});
  ASSERT_TRUE(await(store->write(std::move(other))));
  append(*store, 200, "stopped");
  EXPECT_THAT(*await(store->load_events(0, "sandbox-1", 10)),
              ElementsAre(Field(&EventRow::seq, 1), Field(&EventRow::seq, 3)));
}

TEST_F(StoreTest, WritesAllOfAChangeOrNothing) {
  auto store = open();
  append(*store, 100, "created");
  Write twice;
  twice.put_sandbox = {"a", "one"};
  twice.events.push_back({1, 200, "acme", "a", "created", "{}"});  // a number that is taken
  EXPECT_FALSE(await(store->write(std::move(twice))));
  EXPECT_THAT(*store->load_sandboxes(), IsEmpty());
}

TEST_F(StoreTest, NeverGivesAnEventsNumberTwice) {
  {
    auto store = open();
    append(*store, 100, "a");
    append(*store, 200, "b");
    ASSERT_TRUE(await(store->erase_events_before(201)));
    EXPECT_THAT(*await(store->load_events(0, "", 10)), IsEmpty());
  }
  auto store = open();
  EXPECT_EQ(*store->last_event(), 2);
  EXPECT_EQ(append(*store, 300, "c"), 3);
}

TEST_F(StoreTest, ForgetsOnlyEventsBeforeTheTime) {
  auto store = open();
  append(*store, 100, "a");
  append(*store, 200, "b");
  ASSERT_TRUE(await(store->erase_events_before(200)));
  EXPECT_THAT(*await(store->load_events(0, "", 10)), ElementsAre(Field(&EventRow::type, "b")));
}

TEST_F(StoreTest, ACopyIsWholeWhileWritesGoOn) {
  auto store = open();
  std::string body(1 << 20, 'x');  // more than one step
  for (int i = 0; i < 12; i++) {
    ASSERT_TRUE(put_document(*store, "old", "t", std::to_string(i), body));
  }
  std::optional<Result<void>> copied;
  int written = 0, written_at_end = 0;
  boost::asio::co_spawn(io_, store->backup_to(dir_ + "/copy.db"),
                        [&](std::exception_ptr, Result<void> result) {
                          copied = std::move(result);
                          written_at_end = written;
                        });
  auto write = [&]() -> Task<void> {
    for (int i = 0; !copied; i++) {
      Write one;
      one.put_documents.push_back({"new", "t", std::to_string(i), "body"});
      auto put = co_await store->write(std::move(one));
      EXPECT_TRUE(put);
      written++;
    }
  };
  boost::asio::co_spawn(io_, write, boost::asio::detached);
  io_.restart();
  io_.run();
  ASSERT_TRUE(copied && *copied) << copied->error().message();
  EXPECT_GT(written_at_end, 1) << "writes waited for the whole copy";
  struct stat info {};
  ASSERT_EQ(stat((dir_ + "/copy.db").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  auto copy = Store::open(dir_ + "/copy.db");
  ASSERT_TRUE(copy) << copy.error().message();
  EXPECT_EQ((*copy)->load_documents("old")->size(), 12u);
  EXPECT_LE((*copy)->load_documents("new")->size(), static_cast<size_t>(written));
}

TEST_F(StoreTest, ACopyReplacesNothing) {
  auto store = open();
  auto refused = await(store->backup_to(path_));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().sys_errno(), EEXIST);
  ASSERT_TRUE(put_sandbox(*store, "a", "one")) << "the store goes on";
  EXPECT_FALSE(await(store->backup_to(dir_ + "/nowhere/copy.db")));
}

// state_v1.db was written by the first version.
TEST_F(StoreTest, WalksFromTheFirstVersionToTheNewest) {
  std::filesystem::copy_file(ATOLL_SOURCE_DIR "/tests/data/state_v1.db", path_);
  EXPECT_THAT(tables(), ElementsAre("sandboxes"));
  {
    auto store = open();
    ASSERT_NE(store, nullptr);
    EXPECT_THAT(*store->load_sandboxes(),
                ElementsAre(testing::Pair("sandbox-636c496fdd9a", HasSubstr(R"("name":"idle")")),
                            testing::Pair("sandbox-f1a29a63d3ef", HasSubstr(R"("name":"web")"))));
    EXPECT_EQ(append(*store, 1, "created"), 1);
    ASSERT_TRUE(put_document(*store, "key", "t", "id", "body"));
  }
  std::vector<std::string> walked = tables();
  auto database = Database::open(path_);
  EXPECT_EQ(*schema_of(*database), newest_schema());
  std::filesystem::remove(path_);
  open();
  EXPECT_EQ(walked, tables()) << "a new database has other tables than one that has come the way";
}

TEST_F(StoreTest, AStepThatFailsLeavesTheVersionBeforeIt) {
  std::filesystem::copy_file(ATOLL_SOURCE_DIR "/tests/data/state_v1.db", path_);
  ASSERT_TRUE(Database::open(path_)->execute("CREATE TABLE events (in_the_way)"));
  auto refused = Store::open(path_);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("to schema 2"));
  EXPECT_THAT(tables(), ElementsAre("events", "sandboxes"));
  auto database = Database::open(path_);
  EXPECT_EQ(*schema_of(*database), 1);
}

TEST_F(StoreTest, RefusesADatabaseOfANewerProgram) {
  ASSERT_TRUE(Database::open(path_)->execute("PRAGMA user_version = 99"));
  auto refused = Store::open(path_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::NotSupported);
  EXPECT_THAT(refused.error().message(), HasSubstr("newer Atoll (schema 99)"));
}

}  // namespace
}  // namespace atl::store
